"""LangChain's OpenAI integration."""

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from openai import NotFoundError
from pydantic import BaseModel, Field
from pond import MODEL, QUESTION, URL, idle, ok

llm = ChatOpenAI(model=MODEL, base_url=URL + "/v1", api_key="none", temperature=0, seed=1, max_tokens=300, max_retries=0, reasoning_effort="none", use_responses_api=False)

whole = llm.invoke(QUESTION)
assert whole.usage_metadata["total_tokens"] > 0
ok("chat")

text = "".join(chunk.content for chunk in llm.stream(QUESTION))
assert text == whole.content
ok("stream, the same as whole")


@tool
def get_weather(city: str) -> str:
    """Get the weather of a city"""
    return "Rain, 7 degrees."


bound = llm.bind_tools([get_weather], tool_choice="get_weather")
first = bound.invoke(QUESTION)
call = first.tool_calls[0]
assert call["name"] == "get_weather"
llm.bind_tools([get_weather]).invoke([HumanMessage(QUESTION), first, ToolMessage("Rain, 7 degrees.", tool_call_id=call["id"])])
ok("tools, and back")


class Weather(BaseModel):
    city: str = Field(max_length=20)
    degrees: int = Field(ge=-60, le=60)


value = llm.with_structured_output(Weather, method="json_schema").invoke(QUESTION)
assert isinstance(value, Weather)
ok("structured output")

stream = llm.stream("Tell a long story.", max_tokens=3000, temperature=1.5)
next(stream)
stream.close()
idle()
ok("cancellation")

try:
    ChatOpenAI(model="gpt-4o", base_url=URL + "/v1", api_key="none", max_retries=0).invoke("x")
    raise AssertionError("no error")
except NotFoundError as error:
    assert "pond" in str(error)
ok("errors")
