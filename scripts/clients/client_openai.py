"""The official OpenAI SDK for Python."""

import json

import openai
from pond import MODEL, PARAMETERS, QUESTION, SCHEMA, URL, idle, ok

client = openai.OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)
ask = {"model": MODEL, "messages": [{"role": "user", "content": QUESTION}], "temperature": 0, "seed": 1, "max_completion_tokens": 300}

assert [m.id for m in client.models.list()] == [MODEL]
ok("models")

whole = client.chat.completions.create(**ask, reasoning_effort="low")
assert whole.choices[0].finish_reason in ("stop", "length") and whole.usage.total_tokens > 0
ok("chat")

text, reasoning, usage = "", "", None
for chunk in client.chat.completions.create(**ask, reasoning_effort="low", stream=True, stream_options={"include_usage": True}):
    if chunk.choices:
        text += chunk.choices[0].delta.content or ""
        reasoning += getattr(chunk.choices[0].delta, "reasoning_content", None) or ""
    usage = chunk.usage or usage
assert text == (whole.choices[0].message.content or ""), (text, whole.choices[0].message.content)
assert usage.completion_tokens == whole.usage.completion_tokens
ok("stream, the same as whole")

tools = [{"type": "function", "function": {"name": "get_weather", "description": "Get the weather of a city", "parameters": PARAMETERS}}]
first = client.chat.completions.create(**ask, tools=tools, tool_choice="required", parallel_tool_calls=False)
call = first.choices[0].message.tool_calls[0]
assert first.choices[0].finish_reason == "tool_calls" and isinstance(json.loads(call.function.arguments), dict)
history = ask["messages"] + [first.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "Rain, 7 degrees."}]
second = client.chat.completions.create(**{**ask, "messages": history}, tools=tools)
assert second.usage.prompt_tokens_details.cached_tokens > 0
ok("tools, and back")

structured = client.chat.completions.create(**ask, reasoning_effort="none",
    response_format={"type": "json_schema", "json_schema": {"name": "weather", "strict": True, "schema": SCHEMA}})
value = json.loads(structured.choices[0].message.content)
assert set(value) == {"city", "degrees"} and isinstance(value["degrees"], int)
ok("structured output")

with client.chat.completions.create(**{**ask, "temperature": 2, "max_completion_tokens": 3000}, stream=True) as stream:
    next(iter(stream))
idle()
ok("cancellation")

for change, kind, status, param in [({"model": "gpt-4o"}, openai.NotFoundError, 404, "model"), ({"temperature": 9}, openai.BadRequestError, 400, "temperature"),
                                    ({"prediction": {"type": "content", "content": "x"}}, openai.BadRequestError, 400, "prediction")]:
    try:
        client.chat.completions.create(**{**ask, **change})
        raise AssertionError(f"no error for {change}")
    except kind as error:
        assert error.status_code == status and error.param == param, error
ok("errors")

response = client.responses.create(model=MODEL, input=QUESTION, max_output_tokens=200, temperature=0, reasoning={"effort": "none"})
assert response.status in ("completed", "incomplete") and response.output_text
again = client.responses.create(model=MODEL, input="And tomorrow?", previous_response_id=response.id, max_output_tokens=20, temperature=0, reasoning={"effort": "none"})
assert again.usage.input_tokens > response.usage.input_tokens
kinds = []
with client.responses.stream(model=MODEL, input=QUESTION, max_output_tokens=200, temperature=0, reasoning={"effort": "none"}) as stream:
    for event in stream:
        kinds.append(event.type)
    assert stream.get_final_response().output_text == response.output_text
assert kinds[0] == "response.created" and kinds[-1] in ("response.completed", "response.incomplete")
assert len(client.responses.input_items.list(response.id).data) == 1
client.responses.delete(response.id)
later = client.responses.create(model=MODEL, input="Tell a long story.", background=True, max_output_tokens=3000)
assert client.responses.cancel(later.id).status == "cancelled"
idle()
ok("responses")
