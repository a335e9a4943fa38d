package openai

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const hi = `"messages":[{"role":"user","content":"hi"}]`

// withField is a chat request with one more field.
func withField(field string) string { return `{` + hi + `,` + field + `}` }

func mustChat(t *testing.T, body string) *ChatRequest {
	t.Helper()
	req, err := DecodeChat([]byte(body))
	if err != nil {
		t.Fatalf("%s\ngot error %v, want none", body, err)
	}
	return req
}

// SDKs that write out every option send null for those that are not set.
func TestNullIsAbsent(t *testing.T) {
	plain := mustChat(t, `{`+hi+`}`)
	var nulls []string
	for _, name := range []string{"model", "temperature", "top_p", "top_k", "min_p", "max_tokens", "max_completion_tokens", "stop", "seed", "tools",
		"tool_choice", "response_format", "stream", "stream_options", "n", "logprobs", "top_logprobs", "logit_bias", "presence_penalty",
		"frequency_penalty", "repetition_penalty", "parallel_tool_calls", "reasoning_effort", "chat_template_kwargs", "enable_thinking",
		"user", "metadata", "store", "audio", "modalities", "prediction", "functions", "function_call", "service_tier", "verbosity", "no_such_field"} {
		nulls = append(nulls, `"`+name+`": null`)
	}
	got := mustChat(t, withField(strings.Join(nulls, ",")))
	if diff := cmp.Diff(plain, got); diff != "" {
		t.Errorf("null fields change the request (-absent +null):\n%s", diff)
	}
	for _, name := range []string{"name", "tool_calls", "tool_call_id", "reasoning", "reasoning_content", "refusal", "audio", "function_call", "annotations"} {
		got := mustChat(t, `{"messages":[{"role":"user","content":"hi","`+name+`":null}]}`)
		if diff := cmp.Diff(plain, got); diff != "" {
			t.Errorf("message field %s null changes the request:\n%s", name, diff)
		}
	}
}

// Clients write out the defaults of the API; they ask for nothing.
func TestNeutralValues(t *testing.T) {
	plain := mustChat(t, `{`+hi+`}`)
	for _, field := range []string{`"n":1`, `"n":1.0`, `"response_format":{ "type": "text" }`, `"tool_choice":"auto"`, `"tool_choice":"none"`,
		`"parallel_tool_calls":true`, `"parallel_tool_calls":false`, `"logprobs":false`, `"top_logprobs":0`, `"store":false`, `"modalities":["text"]`,
		`"functions":[]`, `"function_call":"none"`, `"service_tier":"auto"`, `"verbosity":"medium"`, `"stop":""`, `"stop":[]`, `"stream":false`,
		`"stream_options":{"include_obfuscation":false}`, `"user":"u-1"`, `"metadata":{"a":"b"}`, `"metadata":{}`, `"prompt_cache_key":"k"`,
		`"safety_identifier":"s"`, `"chat_template_kwargs":{}`, `"preserve_thinking":false`, `"ignore_eos":false`} {
		req, err := DecodeChat([]byte(withField(field)))
		if err != nil {
			t.Errorf("%s: got error %v, want none", field, err)
			continue
		}
		if diff := cmp.Diff(plain.Generation, req.Generation); diff != "" {
			t.Errorf("%s changes the request:\n%s", field, diff)
		}
	}
}

func TestChatErrors(t *testing.T) {
	message := func(m string) string { return `{"messages":[{"role":"user","content":"hi"},` + m + `]}` }
	for _, c := range []struct{ body, param, code, says string }{
		{``, "", CodeInvalidJSON, "empty"},
		{`{`, "", CodeInvalidJSON, "not valid JSON"},
		{`{} x`, "", CodeInvalidJSON, "not valid JSON"},
		{`[]`, "", CodeInvalidType, "got a list, want a JSON object"},
		{`null`, "", CodeInvalidType, "want a JSON object"},
		{"{\"model\":\"\xff\"}", "", CodeInvalidJSON, "UTF-8"},
		{`{}`, "messages", CodeMissing, "at least one message"},
		{`{"messages":[]}`, "messages", CodeMissing, "at least one message"},
		{`{"messages":"hi"}`, "messages", CodeInvalidType, "got a string, want a list"},
		{`{"messages":["hi"]}`, "messages[0]", CodeInvalidType, "want an object"},
		{message(`{"content":"x"}`), "messages[1].role", CodeMissing, "missing"},
		{message(`{"role":"bot","content":"x"}`), "messages[1].role", CodeInvalidValue, `got "bot"`},
		{message(`{"role":"function","name":"f","content":"x"}`), "messages[1].role", CodeUnsupported, "tool"},
		{message(`{"role":"user","content":null}`), "messages[1].content", CodeMissing, "missing: want a string or a list of parts"},
		{message(`{"role":"user"}`), "messages[1].content", CodeMissing, "missing"},
		{message(`{"role":"user","content":[]}`), "messages[1].content", CodeInvalidValue, "got an empty list"},
		{message(`{"role":"user","content":["a",null]}`), "messages[1].content[1]", CodeInvalidType, "got null, want an object"},
		{message(`{"role":"user","content":7}`), "messages[1].content", CodeInvalidType, "got the number 7, want a string or a list of parts"},
		{message(`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"x"}}]}`), "messages[1].content[1].type", CodeUnsupported, "text only"},
		{message(`{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}`), "messages[1].content[0].type", CodeUnsupported, "text only"},
		{message(`{"role":"user","content":[{"type":"text"}]}`), "messages[1].content[0].text", CodeMissing, "missing"},
		{message(`{"role":"user","content":[{}]}`), "messages[1].content[0].type", CodeMissing, "missing"},
		{message(`{"role":"user","content":"x","tool_calls":[{"function":{"name":"f"}}]}`), "messages[1].tool_calls", CodeInvalidValue, "assistant"},
		{message(`{"role":"assistant","tool_calls":[{"function":{}}]}`), "messages[1].tool_calls[0].function.name", CodeMissing, "name"},
		{message(`{"role":"assistant","tool_calls":[{"type":"custom","name":"f"}]}`), "messages[1].tool_calls[0].type", CodeUnsupported, "function"},
		{message(`{"role":"assistant","function_call":{"name":"f"}}`), "messages[1].function_call", CodeUnsupported, "tool_calls"},
		{message(`{"role":"assistant","reasoning":["x"]}`), "messages[1].reasoning", CodeInvalidType, "got a list, want a string"},
		{withField(`"temperature":"hot"`), "temperature", CodeInvalidType, "got a string, want a number"},
		{withField(`"temperature":2.5`), "temperature", CodeInvalidValue, "got 2.5, want 0 to 2"},
		{withField(`"temperature":1e999`), "temperature", CodeInvalidValue, "want 0 to 2"},
		{withField(`"top_p":-0.1`), "top_p", CodeInvalidValue, "want 0 to 1"},
		{withField(`"top_k":1.5`), "top_k", CodeInvalidType, "got 1.5, want a whole number"},
		{withField(`"top_k":-2`), "top_k", CodeInvalidValue, "got -2"},
		{withField(`"repetition_penalty":0`), "repetition_penalty", CodeInvalidValue, "above 0"},
		{withField(`"seed":"x"`), "seed", CodeInvalidType, "want a whole number"},
		{withField(`"seed":99999999999999999999`), "seed", CodeInvalidType, "want a whole number"},
		{withField(`"max_tokens":0`), "max_tokens", CodeInvalidValue, "got 0, want at least 1"},
		{withField(`"max_tokens":-1`), "max_tokens", CodeInvalidValue, "got -1, want at least 1"},
		{withField(`"max_tokens":5,"max_completion_tokens":6`), "max_tokens", CodeInvalidValue, "send one of them"},
		{withField(`"stop":5`), "stop", CodeInvalidType, "want a string or a list of strings"},
		{withField(`"stop":["a",5]`), "stop", CodeInvalidType, "want a string or a list of strings"},
		{withField(`"stop":["a",null]`), "stop[1]", CodeInvalidType, "got null, want a string"},
		{withField(`"stop":["1","2","3","4","5","6","7","8","9","a","b","c","d","e","f","g","h"]`), "stop", CodeInvalidValue, "got 17 strings, want at most 16"},
		{withField(`"logit_bias":{"x":1}`), "logit_bias", CodeInvalidValue, `"x"`},
		{withField(`"logit_bias":{"7":101}`), "logit_bias.7", CodeInvalidValue, "want -100 to 100"},
		{withField(`"logit_bias":[1]`), "logit_bias", CodeInvalidType, "got a list, want an object"},
		{withField(`"n":17`), "n", CodeInvalidValue, "got 17, want 1 to 16"},
		{withField(`"n":0`), "n", CodeInvalidValue, "got 0, want 1 to 16"},
		{withField(`"stream":"yes"`), "stream", CodeInvalidType, "want true or false"},
		{withField(`"stream_options":{"include_usage":1}`), "stream_options.include_usage", CodeInvalidType, "want true or false"},
		{withField(`"stream_options":{"include_obfuscation":1}`), "stream_options.include_obfuscation", CodeInvalidType, "want true or false"},
		{withField(`"top_logprobs":3`), "top_logprobs", CodeInvalidValue, "logprobs"},
		{withField(`"logprobs":true,"top_logprobs":21`), "top_logprobs", CodeInvalidValue, "got 21, want 0 to 20"},
		{withField(`"response_format":"json"`), "response_format", CodeInvalidType, "got a string, want an object"},
		{withField(`"response_format":{}`), "response_format.type", CodeMissing, "json_schema"},
		{withField(`"response_format":{"type":"xml"}`), "response_format.type", CodeInvalidValue, "xml"},
		{withField(`"response_format":{"type":"json_schema"}`), "response_format.json_schema", CodeMissing, "schema"},
		{withField(`"response_format":{"type":"json_schema","json_schema":{"name":"x"}}`), "response_format.json_schema.schema", CodeMissing, "missing"},
		{withField(`"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":[]}}`), "response_format.json_schema.schema", CodeInvalidType, "got a list"},
		{withField(`"guided_json":{"type":"object"}`), "guided_json", CodeUnsupported, "response_format"},
		{withField(`"tool_choice":"required"`), "tool_choice", CodeInvalidValue, "without tools"},
		{withField(`"tool_choice":{"type":"function","function":{"name":"f"}}`), "tool_choice.function.name", CodeInvalidValue, "one of the tools"},
		{withField(`"tool_choice":{"type":"function"}`), "tool_choice.function", CodeMissing, "name"},
		{withField(`"tool_choice":{"type":"custom"}`), "tool_choice.type", CodeUnsupported, "custom"},
		{withField(`"tool_choice":{"type":"allowed_tools"}`), "tool_choice.allowed_tools", CodeMissing, "mode"},
		{withField(`"tool_choice":{"type":"allowed_tools","allowed_tools":{"tools":[{"type":"function","function":{"name":"z"}}]}}`), "tool_choice.allowed_tools.tools[0].function.name", CodeInvalidValue, "one of the tools"},
		{withField(`"tool_choice":"maybe"`), "tool_choice", CodeInvalidValue, "maybe"},
		{withField(`"tool_choice":7`), "tool_choice", CodeInvalidValue, "7"},
		{withField(`"tools":{}`), "tools", CodeInvalidType, "want a list"},
		{withField(`"tools":[{"type":"web_search"}]`), "tools[0].type", CodeUnsupported, "web_search"},
		{withField(`"tools":[{"type":"function","name":"f"}]`), "tools[0].function", CodeMissing, "missing"},
		{withField(`"tools":[{"type":"function","function":{"name":"a>b"}}]`), "tools[0].function.name", CodeInvalidValue, "angle brackets"},
		{withField(`"tools":[{"type":"function","function":{"name":"f","parameters":[]}}]`), "tools[0].function.parameters", CodeInvalidType, "want an object"},
		{withField(`"tools":[{"type":"function","function":{"name":"f","strict":"yes"}}]`), "tools[0].function.strict", CodeInvalidType, "want true or false"},
		{withField(`"reasoning_effort":"medium","enable_thinking":false`), "enable_thinking", CodeInvalidValue, "contradicts reasoning_effort"},
		{withField(`"reasoning_effort":"lots"`), "reasoning_effort", CodeInvalidValue, "lots"},
		{withField(`"reasoning_effort":"none","enable_thinking":true`), "enable_thinking", CodeInvalidValue, "contradicts reasoning_effort"},
		{withField(`"chat_template_kwargs":{"enable_thinking":"no"}`), "chat_template_kwargs.enable_thinking", CodeInvalidType, "want true or false"},
		{withField(`"thinking_budget":-1`), "thinking_budget", CodeInvalidValue, "at least 0"},
		{withField(`"thinking_budget":0,"enable_thinking":true`), "thinking_budget", CodeInvalidValue, "contradicts enable_thinking"},
		{withField(`"store":true`), "store", CodeUnsupported, "/v1/responses"},
		{withField(`"audio":{"voice":"x"}`), "audio", CodeUnsupported, "text"},
		{withField(`"modalities":["text","audio"]`), "modalities", CodeUnsupported, "text"},
		{withField(`"prediction":{"type":"content"}`), "prediction", CodeUnsupported, "not implemented"},
		{withField(`"web_search_options":{}`), "web_search_options", CodeUnsupported, "tools"},
		{withField(`"functions":[{"name":"f"}]`), "functions", CodeUnsupported, "tools"},
		{withField(`"service_tier":"flex"`), "service_tier", CodeUnsupported, "flex"},
		{withField(`"verbosity":"low"`), "verbosity", CodeUnsupported, "low"},
		{withField(`"user":5`), "user", CodeInvalidType, "want a string"},
		{withField(`"metadata":{"a":1}`), "metadata", CodeInvalidType, "want a string"},
	} {
		_, err := DecodeChat([]byte(c.body))
		checkError(t, c.body, err, c.param, c.code, c.says)
	}
}

func checkError(t *testing.T, body string, err error, param, code, says string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Errorf("%s\ngot error %v, want one about %q", body, err, param)
		return
	}
	if e.Param != param || e.Code != code || !strings.Contains(e.Message, says) {
		t.Errorf("%s\ngot  param %q code %q message %q\nwant param %q code %q message with %q", body, e.Param, e.Code, e.Message, param, code, says)
	}
}

func TestChatFields(t *testing.T) {
	req := mustChat(t, `{"model":"m","stream":true,"stream_options":{"include_usage":true},"temperature":0.5,"top_p":1,"top_k":-1,"min_p":0.1,
		"presence_penalty":-2,"frequency_penalty":2,"repetition_penalty":1.1,"seed":-3,"logit_bias":{"5":-100,"9":1.5},
		"max_tokens":12.0,"stop":["a","","b"],"logprobs":true,"top_logprobs":2,"reasoning_effort":"none",
		"chat_template_kwargs":{"enable_thinking":false,"preserve_thinking":true,"colour":"red"},"zzz":1,"aaa":{"b":2},
		"tools":[{"type":"function","function":{"name":"f","parameters":{"z":1,"a":2}}}],
		"messages":[
		 {"role":"developer","content":"be brief"},
		 {"role":"user","content":["one ",{"type":"text","text":"two"},{"text":"three"}],"name":"ann"},
		 {"role":"assistant","content":null,"reasoning":"hm","tool_calls":[
		   {"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"},"index":0},{"name":"g","arguments":{"b":2}}]},
		 {"role":"tool","tool_call_id":"c1","content":"r"},
		 {"role":"assistant","content":"x","reasoning":"no","reasoning_content":"yes","refusal":null,"extra":1},
		 {"role":"assistant","refusal":"I will not"}]}`)
	f := func(x float64) *float64 { return &x }
	s := func(x string) *string { return &x }
	zero, seed, off := 0, int64(-3), false
	want := &ChatRequest{
		Generation: Generation{
			Model: "m", Stream: true, IncludeUsage: true, Choices: 1, MaxTokens: 12, Stop: []string{"a", "b"}, Logprobs: true, TopLogprobs: 2,
			Sampling: Sampling{Temperature: f(0.5), TopP: f(1), MinP: f(0.1), TopK: &zero, Presence: f(-2), Frequency: f(2), Repetition: f(1.1),
				Seed: &seed, Bias: map[int32]float64{5: -100, 9: 1.5}},
			Ignored: []string{"aaa", "chat_template_kwargs.colour", "messages[1].name", "messages[4].extra", "zzz"},
		},
		Thinking: &off, PreserveThinking: true,
		Tools: []json.RawMessage{json.RawMessage(`{"type":"function","function":{"name":"f","parameters":{"z":1,"a":2}}}`)},
		Messages: []Message{
			{Role: "developer", Content: []string{"be brief"}},
			{Role: "user", Content: []string{"one ", "two", "three"}, Name: "ann"},
			{Role: "assistant", Reasoning: s("hm"), ToolCalls: []ToolCall{
				{ID: "c1", Name: "f", Arguments: json.RawMessage(`"{\"a\":1}"`)}, {Name: "g", Arguments: json.RawMessage(`{"b":2}`)}}},
			{Role: "tool", ToolCallID: "c1", Content: []string{"r"}},
			{Role: "assistant", Content: []string{"x"}, Reasoning: s("yes")},
			{Role: "assistant", Content: []string{"I will not"}},
		},
	}
	if diff := cmp.Diff(want, req); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWishesOfHelpers: OpenAI's clients send these unasked; refusing them refused the clients.
func TestWishesOfHelpers(t *testing.T) {
	const tool = `"tools":[{"type":"function","function":{"name":"f","strict":true}}]`
	req := mustChat(t, withField(tool+`,"parallel_tool_calls":false`))
	if !req.OneCall || !req.StrictTools || req.Ignored != nil {
		t.Errorf("got one call %v, strict %v, ignored %v; want both and nothing ignored", req.OneCall, req.StrictTools, req.Ignored)
	}
	// No call was made for it, and it still passes.
	mustChat(t, `{"messages":[{"role":"user","content":"hi"},{"role":"tool","content":"orphan"}]}`)
	mustChat(t, `{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"f"}}]}]}`)
}

// Agents put what the system says into the middle of a conversation of Anthropic's API too: every turn of theirs was a 400.
func TestSystemTurnsOfMessages(t *testing.T) {
	req, err := DecodeMessages([]byte(`{"max_tokens":1,"system":"a","messages":[{"role":"system","content":"b"},{"role":"user","content":"1"},
		{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"}]},
		{"role":"system","content":[{"type":"text","text":"c","cache_control":{"type":"ephemeral"}},{"type":"text","text":"d"}]}]}`), false)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range req.Messages {
		got = append(got, m.Role+": "+strings.Join(m.Content, "|"))
	}
	if diff := cmp.Diff([]string{"system: a", "system: b", "user: 1", "assistant: ", "tool: r", "system: c|d"}, got); diff != "" || req.Ignored != nil {
		t.Errorf("ignored %v, turns (-want +got):\n%s", req.Ignored, diff)
	}
	_, err = DecodeMessages([]byte(`{"max_tokens":1,"messages":[{"role":"user","content":"x"},{"role":"system","content":[{"type":"image"}]}]}`), false)
	checkError(t, "image", err, "messages[1].content[0].type", CodeUnsupported, "text only")
	_, err = DecodeMessages([]byte(`{"max_tokens":1,"messages":[{"role":"tool","content":"x"}]}`), false)
	checkError(t, "tool", err, "messages[0].role", CodeInvalidValue, "system")
}

// What coding agents send to the Responses API besides functions: each was a 400 before the first turn.
func TestToolsOfAgents(t *testing.T) {
	req, err := DecodeResponse([]byte(`{"input":[{"role":"user","content":"x"},
		{"type":"function_call","call_id":"1","namespace":"mcp__git__","name":"log","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"r"},
		{"type":"custom_tool_call","call_id":"2","name":"apply_patch","input":"*** \"é\"\n","status":"completed"},{"type":"custom_tool_call_output","call_id":"2","output":"done"}],
		"tools":[{"type":"function","name":"shell","parameters":{"type":"object"}},{"type":"web_search","external_web_access":false},{"type":"image_generation"},
		{"type":"custom","name":"apply_patch","description":"d","format":{"type":"grammar","syntax":"lark","definition":"start: /.+/s"}},
		{"type":"namespace","name":"mcp__git__","description":"n","tools":[{"type":"function","name":"log","parameters":{},"defer_loading":true},{"type":"function","name":"status"}]}],
		"tool_choice":{"type":"custom","name":"apply_patch"}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range req.Tools {
		names = append(names, toolName(tool))
	}
	if diff := cmp.Diff([]string{"shell", "apply_patch", "mcp__git__log", "mcp__git__status"}, names); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if !strings.Contains(string(req.Tools[1]), "lark grammar:\\nstart: /.+/s") {
		t.Errorf("got the tool %s, want its grammar shown to the model", req.Tools[1])
	}
	origins := map[string]Origin{"apply_patch": {"apply_patch", "", true}, "mcp__git__log": {"log", "mcp__git__", false}, "mcp__git__status": {"status", "mcp__git__", false}}
	if diff := cmp.Diff(origins, req.Origins); diff != "" {
		t.Errorf("origins (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"tools[1]", "tools[2]", "tools[3].format"}, req.Ignored); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
	if req.ToolChoice.Name != "apply_patch" {
		t.Errorf("got the choice %+v, want apply_patch", req.ToolChoice)
	}
	if m := req.Messages; len(m) != 5 || m[1].ToolCalls[0].Name != "mcp__git__log" || string(m[3].ToolCalls[0].Arguments) != `"{\"input\":\"*** \\\"é\\\"\\n\"}"` || m[4].Content[0] != "done" {
		t.Errorf("got the messages %+v", m)
	}
	for body, want := range map[string][2]string{
		`"tools":[{"type":"web_search"}],"tool_choice":"required"`:                                                             {"tool_choice", "at least one tool"},
		`"tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"}`:                                                  {"tool_choice.type", "function"},
		`"tools":[{"type":"file_search"}]`:                                                                                     {"tools[0].type", "Pond runs no tools"},
		`"tools":[{"type":"custom","name":"a"},{"type":"custom","name":"a"}]`:                                                  {"tools[1].name", "second time"},
		`"tools":[{"type":"custom","name":"a"},{"type":"function","name":"a"}]`:                                                {"tools[1].name", "second time"},
		`"tools":[{"type":"function","name":"n__a"},{"type":"namespace","name":"n","tools":[{"type":"function","name":"a"}]}]`: {"tools[1].tools[0].name", "NAMESPACE__NAME"},
		`"tools":[{"type":"custom","name":"a","format":{"type":"x"}}]`:                                                         {"tools[0].format.type", "grammar"},
		`"tools":[{"type":"namespace","tools":[]}]`:                                                                            {"tools[0].name", "missing"},
		`"tools":[{"type":"namespace","name":"n","tools":[{"type":"namespace"}]}]`:                                             {"tools[0].tools[0].type", "function"},
		`"tools":[{"type":"namespace","name":"n","tools":[{"type":"function"}]}]`:                                              {"tools[0].tools[0].name", "missing"},
	} {
		_, err := DecodeResponse([]byte(`{"input":"x",`+body+`}`), nil)
		var e *Error
		if !errors.As(err, &e) || e.Param != want[0] || !strings.Contains(e.Message, want[1]) {
			t.Errorf("%s: got %v, want it about %s with %q", body, err, want[0], want[1])
		}
	}
}

// Each word of reasoning_effort is a budget; a number of tokens is more exact and wins.
func TestThinkingBudgets(t *testing.T) {
	for field, want := range map[string]int{
		`"reasoning_effort":"minimal"`:                  BudgetMinimal,
		`"reasoning_effort":"low"`:                      BudgetLow,
		`"reasoning_effort":"medium"`:                   BudgetMedium,
		`"reasoning_effort":"high"`:                     0,
		`"reasoning_effort":"xhigh"`:                    0,
		`"thinking_budget":77`:                          77,
		`"reasoning_effort":"low","thinking_budget":77`: 77,
		`"chat_template_kwargs":{"thinking_budget":9}`:  9,
		`"thinking_budget":99999999999`:                 1<<31 - 1,
	} {
		req := mustChat(t, withField(field))
		if req.ThinkingBudget != want || req.Thinking == nil || !*req.Thinking || req.Ignored != nil {
			t.Errorf("%s: got budget %d, thinking %v, ignored %v; want %d, on, nothing ignored", field, req.ThinkingBudget, req.Thinking, req.Ignored, want)
		}
	}
	if req := mustChat(t, withField(`"thinking_budget":0`)); req.Thinking == nil || *req.Thinking {
		t.Error("thinking_budget 0: got thinking on, want off")
	}
}

func TestToolChoice(t *testing.T) {
	const tools = `"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}}],"tool_choice":`
	for choice, want := range map[string]struct {
		ToolChoice
		tools int
	}{
		`null`:       {ToolChoice{}, 2},
		`"auto"`:     {ToolChoice{}, 2},
		`"none"`:     {ToolChoice{Mode: ToolNone}, 2},
		`"required"`: {ToolChoice{Mode: ToolRequired}, 2},
		`{"type":"function","function":{"name":"g"}}`: {ToolChoice{ToolNamed, "g"}, 2},
		`{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"g"}}]}}`: {ToolChoice{Mode: ToolRequired}, 1},
	} {
		req := mustChat(t, withField(tools+choice))
		if req.ToolChoice != want.ToolChoice || len(req.Tools) != want.tools || req.Ignored != nil {
			t.Errorf("%s: got %+v with %d tools, ignored %v; want %+v", choice, req.ToolChoice, len(req.Tools), req.Ignored, want)
		}
	}
}

func TestResponseFormat(t *testing.T) {
	for field, want := range map[string]Format{
		`{"type":"text"}`:        {},
		`{"type":"json_object"}`: {Kind: FormatObject},
		`{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"z":1,"a":2}}}`: {Kind: FormatSchema, Name: "n", Strict: true,
			Schema: json.RawMessage(`{"z":1,"a":2}`), Path: "response_format.json_schema.schema"},
	} {
		req := mustChat(t, withField(`"response_format":`+field))
		if diff := cmp.Diff(want, req.Format); diff != "" || req.Ignored != nil {
			t.Errorf("%s: ignored %v (-want +got):\n%s", field, req.Ignored, diff)
		}
	}
}

func TestThinkingSwitches(t *testing.T) {
	on, off := true, false
	for field, want := range map[string]*bool{
		`"user":"x"`:                                        nil,
		`"reasoning_effort":"none"`:                         &off,
		`"reasoning_effort":"high"`:                         &on,
		`"enable_thinking":false`:                           &off,
		`"chat_template_kwargs":{"enable_thinking":false}`:  &off,
		`"chat_template_kwargs":{"enable_thinking":null}`:   nil,
		`"reasoning_effort":"none","enable_thinking":false`: &off,
		`"enable_thinking":true,"reasoning_effort":null`:    &on,
	} {
		if diff := cmp.Diff(want, mustChat(t, withField(field)).Thinking); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", field, diff)
		}
	}
}

func TestCompletion(t *testing.T) {
	one := Generation{Choices: 1}
	for body, want := range map[string]*CompletionRequest{
		`{"prompt":"a b"}`:                   {Prompts: []Prompt{{Text: "a b"}}, Generation: one},
		`{"prompt":["a b"]}`:                 {Prompts: []Prompt{{Text: "a b"}}, Generation: one},
		`{"prompt":[1,2.0,3]}`:               {Prompts: []Prompt{{Tokens: []int32{1, 2, 3}}}, Generation: one},
		`{"prompt":[[1,2]],"echo":false}`:    {Prompts: []Prompt{{Tokens: []int32{1, 2}}}, Generation: one},
		`{"prompt":["a",[7]],"echo":true}`:   {Prompts: []Prompt{{Text: "a"}, {Tokens: []int32{7}}}, Echo: true, Generation: one},
		`{"prompt":"a","n":3,"stream":true}`: {Prompts: []Prompt{{Text: "a"}}, Generation: Generation{Choices: 3, Stream: true}},
		`{"prompt":"a","logprobs":0,"suffix":"","best_of":1,"max_tokens":4}`: {Prompts: []Prompt{{Text: "a"}},
			Generation: Generation{Choices: 1, Logprobs: true, MaxTokens: 4}},
	} {
		got, err := DecodeCompletion([]byte(body))
		if err != nil {
			t.Errorf("%s: got error %v, want none", body, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
	for _, c := range []struct{ body, param, code, says string }{
		{`{}`, "prompt", CodeMissing, "missing"},
		{`{"prompt":""}`, "prompt", CodeInvalidValue, "empty"},
		{`{"prompt":[]}`, "prompt", CodeInvalidValue, "empty"},
		{`{"prompt":[[]]}`, "prompt", CodeInvalidValue, "token ids"},
		{`{"prompt":["a","b",""]}`, "prompt[2]", CodeInvalidValue, "empty"},
		{`{"prompt":["1","2","3","4","5","6","7","8","9","a","b","c","d","e","f","g","h"]}`, "prompt", CodeInvalidValue, "got 17 prompts, want at most 16"},
		{`{"prompt":["a","b"],"n":9}`, "n", CodeInvalidValue, "at most 16 answers in all"},
		{`{"prompt":[1,-2]}`, "prompt[1]", CodeInvalidType, "token id"},
		{`{"prompt":[1,"a"]}`, "prompt[1]", CodeInvalidType, "token id"},
		{`{"prompt":7}`, "prompt", CodeInvalidType, "the number 7"},
		{`{"prompt":"a","echo":1}`, "echo", CodeInvalidType, "want true or false"},
		{`{"prompt":"a","suffix":"b"}`, "suffix", CodeUnsupported, "middle"},
		{`{"prompt":"a","best_of":2}`, "best_of", CodeUnsupported, "got 2, want 1"},
		{`{"prompt":"a","logprobs":true}`, "logprobs", CodeInvalidType, "got a boolean, want a whole number"},
	} {
		_, err := DecodeCompletion([]byte(c.body))
		checkError(t, c.body, err, c.param, c.code, c.says)
	}
}
