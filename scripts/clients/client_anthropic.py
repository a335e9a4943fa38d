"""Anthropic's SDK for Python."""

import anthropic
from pond import MODEL, PARAMETERS, QUESTION, SCHEMA, URL, idle, ok

client = anthropic.Anthropic(base_url=URL, api_key="none", max_retries=0)
ask = {"model": MODEL, "messages": [{"role": "user", "content": QUESTION}], "max_tokens": 300, "extra_body": {"temperature": 0}}

assert [m.id for m in client.models.list()] == [MODEL]
ok("models")

whole = client.messages.create(**ask)
assert whole.stop_reason in ("end_turn", "max_tokens") and whole.content[0].type == "text"
brief = client.messages.create(**ask, system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}])
count = client.messages.count_tokens(model=MODEL, messages=ask["messages"], system="Be brief.")
assert count.input_tokens == brief.usage.input_tokens + brief.usage.cache_read_input_tokens
ok("message and count")

with client.messages.stream(**ask) as stream:
    text = "".join(stream.text_stream)
    final = stream.get_final_message()
assert text == whole.content[0].text and final.stop_reason == whole.stop_reason
assert final.usage.output_tokens == whole.usage.output_tokens
ok("stream, the same as whole")

thought = client.messages.create(**{**ask, "max_tokens": 400}, thinking={"type": "enabled", "budget_tokens": 40})
assert thought.content[0].type == "thinking"
ok("thinking with a budget")

tools = [{"name": "get_weather", "description": "Get the weather of a city", "input_schema": PARAMETERS}]
with client.messages.stream(**ask, tools=tools, tool_choice={"type": "tool", "name": "get_weather"}) as stream:
    first = stream.get_final_message()
call = next(b for b in first.content if b.type == "tool_use")
assert first.stop_reason == "tool_use" and isinstance(call.input, dict)
history = ask["messages"] + [{"role": "assistant", "content": first.content},
                             {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "Rain, 7 degrees."}]}]
second = client.messages.create(**{**ask, "messages": history}, tools=tools)
assert second.usage.cache_read_input_tokens > 0
ok("tools, and back")

structured = client.messages.create(**{**ask, "extra_body": {"temperature": 0, "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}})
assert '"degrees"' in structured.content[0].text
ok("structured output")

with client.messages.stream(**{**ask, "max_tokens": 3000, "extra_body": {"temperature": 1}}) as stream:
    next(iter(stream))
idle()
ok("cancellation")

for change, kind, status in [({"model": "claude-sonnet"}, anthropic.NotFoundError, 404), ({"max_tokens": 0}, anthropic.BadRequestError, 400)]:
    try:
        client.messages.create(**{**ask, **change})
        raise AssertionError(f"no error for {change}")
    except kind as error:
        assert error.status_code == status and error.body["type"] == "error", error
ok("errors")
