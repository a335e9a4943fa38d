package openai

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzDecode: no body panics, and every refusal says something.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(withField(`"tools":[{"type":"function","function":{"name":"f"}}]`)))
	f.Add([]byte(`{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{}}}]}]}`))
	f.Add([]byte(`{"prompt":[[1,2]],"stop":["a"],"logit_bias":{"1":2}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := DecodeChat(body); err != nil && err.Error() == "" {
			t.Error("got an empty error")
		}
		if _, err := DecodeCompletion(body); err != nil && err.Error() == "" {
			t.Error("got an empty error")
		}
	})
}

// FuzzOtherDecoders: as FuzzDecode, for the other APIs. What is accepted holds no message without a role.
func FuzzOtherDecoders(f *testing.F) {
	f.Add([]byte(`{"input":[{"role":"user","content":[{"type":"input_text","text":"x"}]},{"type":"reasoning","summary":[],"encrypted_content":"pond1:aA=="},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"r"},{"id":"msg_1"}],"tools":[{"type":"function","name":"f","parameters":{}}],"tool_choice":{"type":"function","name":"f"},"text":{"format":{"type":"json_schema","name":"n","schema":{}}},"reasoning":{"effort":"low","summary":"auto"},"include":["reasoning.encrypted_content"]}`))
	f.Add([]byte(`{"max_tokens":1,"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"pond1:aA=="},{"type":"tool_use","id":"c","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","is_error":true,"content":"r"},{"type":"text","text":"y"}]}],"tools":[{"name":"f","input_schema":{}}],"tool_choice":{"type":"any","disable_parallel_tool_use":true},"thinking":{"type":"enabled","budget_tokens":9},"output_config":{"effort":"low","format":{"type":"json_schema","schema":{}}}}`))
	f.Add([]byte(`{"content":"x","tokens":[1,2],"id":"r"}`))
	for _, body := range lateBodies {
		f.Add([]byte(body))
	}
	item := func(id string) (json.RawMessage, bool) {
		return json.RawMessage(`{"type":"message","role":"assistant","content":"x"}`), id != ""
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		check := func(messages []Message, err error) {
			if err != nil && err.Error() == "" {
				t.Error("got an empty error")
			}
			for i, m := range messages {
				if m.Role == "" {
					t.Errorf("message %d has no role", i)
				}
			}
		}
		if r, err := DecodeResponse(body, item); err != nil {
			check(nil, err)
		} else {
			check(r.Messages, nil)
		}
		for _, counting := range []bool{false, true} {
			if r, err := DecodeMessages(body, counting); err != nil {
				check(nil, err)
			} else {
				check(r.Messages, nil)
			}
		}
		_, err := DecodeTokenize(body)
		check(nil, err)
		_, err = DecodeDetokenize(body)
		check(nil, err)
		_, _, err = DecodeStopThinking(body)
		check(nil, err)
	})
}

// lateBodies have what agents send beside the plain forms: system turns in the middle, custom tools, namespaces, and calls of both.
var lateBodies = []string{
	`{"max_tokens":1,"system":"s","messages":[{"role":"user","content":"x"},{"role":"system","content":[{"type":"text","text":"remember","cache_control":{"type":"ephemeral"}}]},{"role":"user","content":"y"}]}`,
	`{"max_tokens":1,"messages":[{"role":"system","content":"first"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"r"}]}]},{"role":"system","content":""}]}`,
	`{"input":"x","tools":[{"type":"custom","name":"patch","description":"d","format":{"type":"grammar","syntax":"lark","definition":"start: /x/"}},{"type":"custom","name":"note","format":{"type":"text"}}]}`,
	`{"input":"x","tools":[{"type":"namespace","name":"files","description":"d","tools":[{"type":"function","name":"read","parameters":{"type":"object"},"defer_loading":true},{"type":"custom","name":"write"}]},{"type":"web_search_preview"},{"type":"function","name":"files__read2","strict":true,"parameters":{}}]}`,
	`{"input":"x","tools":[{"type":"function","name":"f"},{"type":"function","name":"f"}]}`,
	`{"input":"x","tools":[{"type":"function","name":"files__read"},{"type":"namespace","name":"files","tools":[{"type":"function","name":"read"}]}]}`,
	`{"input":"x","tools":[{"type":"namespace","name":"files__","tools":[{"type":"function","name":"read"}]},{"type":"function","name":"files__read"}]}`,
	`{"input":"x","tools":[{"type":"custom","name":"f"},{"type":"function","name":"f"}]}`,
	`{"input":[{"role":"user","content":"x"},{"type":"custom_tool_call","call_id":"c","name":"patch","input":"a\"b\\\n"},{"type":"custom_tool_call_output","call_id":"c","output":[{"type":"input_text","text":"r"}]},{"type":"function_call","call_id":"d","namespace":"files","name":"read","arguments":"{}"},{"type":"function_call_output","call_id":"d","output":"r"},{"role":"developer","content":"d"}],"tools":[{"type":"custom","name":"patch"}],"tool_choice":{"type":"custom","name":"patch"}}`,
}

// FuzzTools: whatever tools a request of the Responses API offers, a name by which the model knows a custom tool or one of a namespace is that one's alone, what
// it stood for is known for every one that was changed, and a custom tool takes one free text.
func FuzzTools(f *testing.F) {
	for _, body := range lateBodies {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := DecodeResponse(body, func(string) (json.RawMessage, bool) { return nil, false })
		if err != nil {
			return
		}
		tools := map[string]bool{}
		for _, raw := range r.Tools {
			var tool struct{ Function struct{ Name string } }
			if err := json.Unmarshal(raw, &tool); err != nil {
				t.Fatalf("tool %s: %v", raw, err)
			}
			name := tool.Function.Name
			if _, changed := r.Origins[name]; name == "" || tools[name] && changed {
				t.Errorf("got two tools %q of which one is no plain function, or one without a name", name)
			}
			tools[name] = true
		}
		for known, origin := range r.Origins {
			if !tools[known] {
				t.Errorf("origin of %q, which is no tool", known)
			}
			if origin.Namespace == "" && !origin.Custom || origin.Name == "" || qualified(origin.Namespace, origin.Name) != known {
				t.Errorf("%q: got origin %+v", known, origin)
			}
		}
	})
}

// FuzzCustomInput: the text of a custom tool's call is the same after it was made the arguments of a function and back.
func FuzzCustomInput(f *testing.F) {
	for _, text := range []string{"", "plain", "a \"quoted\" \\ line\n", "</script> & \u2028", "日本語 🐸", "\x00\x1f"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return // no JSON body has one
		}
		var arguments string
		if err := json.Unmarshal(customArguments(text), &arguments); err != nil {
			t.Fatal(err)
		}
		if got := InputOf(arguments); got != text || !strings.HasPrefix(arguments, InputPrefix) {
			t.Errorf("%q: got %q by way of %s", text, got, arguments)
		}
	})
}
