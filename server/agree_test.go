package server

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pond/inference"
	"pond/inference/chat"
	"pond/server/openai"
)

// sse is one event with a name.
type sse struct {
	name string
	data []byte
}

func namedEvents(t testing.TB, stream []byte) (events []sse) {
	t.Helper()
	for _, block := range strings.Split(strings.TrimSuffix(string(stream), "\n\n"), "\n\n") {
		if strings.HasPrefix(block, ": ") {
			continue
		}
		name, data, ok := strings.Cut(strings.TrimPrefix(block, "event: "), "\ndata: ")
		if !ok || strings.Contains(data, "\n") {
			t.Fatalf("got the block %q, want an event with name and data", block)
		}
		events = append(events, sse{name, []byte(data)})
	}
	return events
}

// foldResponse checks the order of the events of a streamed response and gives the response, which must be what the deltas add up to.
func foldResponse(t testing.TB, stream []byte) openai.Response {
	t.Helper()
	var final *openai.Response
	var items []openai.ResponseItem
	text := map[string]string{} // item id -> deltas
	open := ""
	for i, e := range namedEvents(t, stream) {
		var ev openai.ResponseEvent
		strictly(t, e.data, &ev)
		if ev.SequenceNumber != i || ev.Type != e.name || final != nil {
			t.Errorf("event %d: got number %d, type %s under the name %s, final before %v", i, ev.SequenceNumber, ev.Type, e.name, final != nil)
		}
		switch kind := strings.TrimPrefix(ev.Type, "response."); {
		case i < 2:
			if want := []string{"created", "in_progress"}[i]; kind != want || ev.Response.Status != "in_progress" {
				t.Errorf("event %d: got %s, want %s", i, kind, want)
			}
		case kind == "output_item.added":
			if open != "" || *ev.OutputIndex != len(items) || ev.Item.Status != "in_progress" {
				t.Errorf("event %d: got item %d with status %s while %q is open, want %d", i, *ev.OutputIndex, ev.Item.Status, open, len(items))
			}
			open = ev.Item.ID
		case kind == "output_item.done":
			if open != ev.Item.ID || *ev.OutputIndex != len(items) {
				t.Errorf("event %d: got the end of %s, want %s", i, ev.Item.ID, open)
			}
			items, open = append(items, *ev.Item), ""
		case strings.HasSuffix(kind, ".delta"):
			if ev.ItemID != open || *ev.OutputIndex != len(items) {
				t.Errorf("event %d: got a delta of %s, want %s", i, ev.ItemID, open)
			}
			text[open] += *ev.Delta
		case strings.HasSuffix(kind, "_text.done"):
			if *ev.Text != text[open] {
				t.Errorf("event %d: got %q, want %q", i, *ev.Text, text[open])
			}
		case strings.HasSuffix(kind, "arguments.done"):
			if *ev.Arguments != text[open] {
				t.Errorf("event %d: got %q, want %q", i, *ev.Arguments, text[open])
			}
		case strings.HasSuffix(kind, "input.done"):
			if *ev.Input != text[open] {
				t.Errorf("event %d: got %q, want %q", i, *ev.Input, text[open])
			}
		case kind == "completed", kind == "incomplete":
			if final = ev.Response; final.Status != kind {
				t.Errorf("event %d: got status %s, want %s", i, final.Status, kind)
			}
		}
	}
	if final == nil || open != "" {
		t.Fatalf("got no end, or one within %q: %s", open, stream)
	}
	if diff := cmp.Diff(items, append([]openai.ResponseItem(nil), final.Output...)); diff != "" {
		t.Errorf("items differ from the final response (-items +final):\n%s", diff)
	}
	return *final
}

// bare takes out of a response what differs from answer to answer.
func bare(r openai.Response) openai.Response {
	r.ID, r.CreatedAt = "", 0
	if r.CompletedAt != nil {
		r.CompletedAt = new(int64)
	}
	r.Output = slices.Clone(r.Output)
	for i := range r.Output {
		r.Output[i].ID, r.Output[i].CallID = "", ""
	}
	if r.Usage != nil {
		u := *r.Usage
		u.InputTokensDetails, u.Timings = openai.PromptDetails{}, openai.Timings{}
		r.Usage = &u
	}
	return r
}

// foldMessage puts the events of a streamed message together, checking their order on the way.
func foldMessage(t testing.TB, stream []byte) openai.MessageAnswer {
	t.Helper()
	var m openai.MessageAnswer
	open, ended := -1, ""
	arguments := ""
	for i, e := range namedEvents(t, stream) {
		var ev struct {
			openai.MessageEvent
			Delta json.RawMessage `json:"delta"`
		}
		if err := json.Unmarshal(e.data, &ev); err != nil || ev.Type != e.name {
			t.Fatalf("event %d: got %s under the name %s, %v", i, e.data, e.name, err)
		}
		if (i == 0) != (ev.Type == "message_start") || ended == "message_stop" {
			t.Errorf("event %d: got %s, want message_start first and message_stop last", i, ev.Type)
		}
		switch ev.Type {
		case "message_start":
			m = *ev.Message
		case "content_block_start":
			if open >= 0 || *ev.Index != len(m.Content) {
				t.Errorf("event %d: got block %d while %d is open", i, *ev.Index, open)
			}
			open, arguments = *ev.Index, ""
			m.Content = append(m.Content, *ev.Block)
		case "content_block_delta":
			if *ev.Index != open {
				t.Errorf("event %d: got a delta of block %d, want %d", i, *ev.Index, open)
			}
			var d openai.MessageDelta
			strictly(t, ev.Delta, &d)
			b := &m.Content[open]
			add := func(to **string, more *string) {
				if more != nil {
					sum := **to + *more
					*to = &sum
				}
			}
			add(&b.Text, d.Text)
			add(&b.Thinking, d.Thinking)
			add(&b.Signature, d.Signature)
			if d.PartialJSON != nil {
				arguments += *d.PartialJSON
				b.Input = json.RawMessage(arguments)
			}
		case "content_block_stop":
			open = -1
		case "message_delta":
			var d openai.MessageStop
			strictly(t, ev.Delta, &d)
			m.StopReason, m.StopSequence, m.Usage = d.StopReason, d.StopSequence, *ev.Usage
		}
		ended = ev.Type
	}
	if ended != "message_stop" || open >= 0 {
		t.Fatalf("got a stream that ends with %q, block %d open", ended, open)
	}
	return m
}

func bareMessage(m openai.MessageAnswer) openai.MessageAnswer {
	m.ID = ""
	m.Usage.InputTokens += m.Usage.CacheReadInputTokens
	m.Usage.CacheReadInputTokens = 0
	m.Content = slices.Clone(m.Content)
	for i := range m.Content {
		m.Content[i].ID = ""
	}
	return m
}

// Streamed and whole answers of the same seed are the same in every field, in each API.
func TestOtherStreamsEqualWhole(t *testing.T) {
	l := serve(t, Options{})
	for _, fields := range []string{
		`"max_output_tokens":12`,
		`"max_output_tokens":40,"reasoning":{"effort":"none"},"instructions":"x"`,
		`"max_output_tokens":60,"thinking_budget":3,"reasoning":{"summary":"auto"},"include":["reasoning.encrypted_content"]`,
		`"max_output_tokens":30,"temperature":0,"stop":["e"],"reasoning":{"effort":"none"}`,
	} {
		body := `{"input":"Is 391 prime?","seed":7,"store":false,` + fields
		var whole openai.Response
		_, _, answer := l.post("/v1/responses", body+"}")
		strictly(t, answer, &whole)
		_, _, stream := l.post("/v1/responses", body+`,"stream":true,"stream_options":{"include_obfuscation":true}}`)
		if diff := cmp.Diff(bare(whole), bare(foldResponse(t, stream))); diff != "" {
			t.Errorf("responses, %s (-whole +streamed):\n%s", fields, diff)
		}
	}
	for _, fields := range []string{
		`"max_tokens":12`,
		`"max_tokens":40,"thinking":{"type":"enabled","budget_tokens":5}`,
		`"max_tokens":40,"thinking":{"type":"adaptive","display":"omitted"}`,
		`"max_tokens":40,"temperature":1,"stop_sequences":["e"," "]`,
	} {
		body := `{"messages":[{"role":"user","content":"Is 391 prime?"}],"seed":7,` + fields
		var whole openai.MessageAnswer
		_, _, answer := l.post("/v1/messages", body+"}")
		strictly(t, answer, &whole)
		_, _, stream := l.post("/v1/messages", body+`,"stream":true}`)
		if diff := cmp.Diff(bareMessage(whole), bareMessage(foldMessage(t, stream))); diff != "" {
			t.Errorf("messages, %s (-whole +streamed):\n%s", fields, diff)
		}
	}
}

// What the model writes, however it is split, gives the same items, blocks and choices streamed and whole.
func TestOtherStreamsEqualWholeForTools(t *testing.T) {
	tools := []json.RawMessage{json.RawMessage(`{"type":"function","function":{"name":"note","parameters":{"type":"object","properties":{"title":{"type":"string"},"n":{"type":"integer"}}}}}`),
		json.RawMessage(`{"type":"function","function":{"name":"patch","parameters":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}}}`)}
	random := rand.New(rand.NewSource(1))
	for _, text := range []string{
		"hm</think>\n\nWell, 你好 <b> & 🌍 é.",
		"</think>\n\nI note it.\n\n<tool_call>\n<function=note>\n<parameter=title>\nA \"title\" with </p> and 🌍\n</parameter>\n<parameter=n>\n3\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=note>\n</function>\n</tool_call>\nDone.",
		"plan\n</think>\n\n<tool_call>\n<function=note>\n<parameter=title>\nx",
		"a</think>b<think>c</think>d",
		"</think>\n\n<tool_call>\n<function=patch>\n<parameter=input>\n*** \"é\" \\ </parameter> \t🌍\n\u0001end\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=note>\n</function>\n</tool_call>",
		"never ends", "",
	} {
		for round := range 40 {
			parser := chat.NewParser(chat.ParserOptions{Thinking: true, Tools: tools})
			var updates []inference.Update
			for rest := text; rest != ""; {
				n := 1 + random.Intn(len(rest))
				for n < len(rest) && rest[n]&0xC0 == 0x80 { // the engine passes whole characters only
					n++
				}
				updates = append(updates, inference.Update{Events: parser.Push(rest[:n])})
				rest = rest[n:]
			}
			finish, end := inference.FinishStop, chat.EndStop
			if round%2 == 1 {
				finish, end = inference.FinishLength, chat.EndLength
			}
			updates = append(updates, inference.Update{Events: parser.Close(end)})
			w := choice{Result: inference.Result{Finish: finish, Usage: inference.Usage{PromptTokens: 3, CompletionTokens: 4}}}
			for _, u := range updates {
				w.events = append(w.events, u.Events...)
			}
			w.Answer.Apply(w.events)
			what := fmt.Sprintf("%q, %s", text, finish)

			req := &openai.ResponseRequest{Summary: round%4 > 1, Seal: round%3 == 0}
			if round%7 > 4 {
				req.Origins = map[string]openai.Origin{"note": {Name: "n", Namespace: "s"}, "patch": {Name: "patch", Custom: true}}
			}
			g := inference.Generation{Sampling: ptr(inference.DefaultSampling(true))}
			whole := newResponse(req, envelope{}, nil, g)
			whole.finish(w)
			for _, item := range whole.object.Output {
				want := "completed"
				if finish == inference.FinishLength && strings.HasSuffix(text, "\nx") && item.Type == "function_call" {
					want = "incomplete" // half an argument is no call to make
				}
				if item.Input != nil && *item.Input != "*** \"é\" \\ </parameter> \t🌍\n\u0001end" {
					t.Errorf("%s: got the input %q", what, *item.Input)
				}
				if item.Type == "function_call" && req.Origins != nil && (item.Name != "n" || item.Namespace != "s") && item.Name != "patch" {
					t.Errorf("%s: got a call of %q in %q, want n in s", what, item.Name, item.Namespace)
				}
				if item.Type == "function_call" && item.Status != want {
					t.Errorf("%s: got a call with status %s, want %s", what, item.Status, want)
				}
			}
			stream := written(func(out *eventStream) error {
				return encode(&responseStream{eventStream: out, response: newResponse(req, envelope{}, nil, g), keep: func(*response, chat.Answer) {}}, updates, w.Result)
			})
			if diff := cmp.Diff(bare(whole.object), bare(foldResponse(t, stream))); diff != "" {
				t.Errorf("responses: %s (-whole +streamed):\n%s", what, diff)
			}

			hide := round%5 == 0
			stream = written(func(out *eventStream) error {
				return encode(&messageStream{eventStream: out, progress: &progress{}, hide: hide}, updates, w.Result)
			})
			if diff := cmp.Diff(bareMessage(wholeMessage(envelope{}, w, hide)), bareMessage(foldMessage(t, stream))); diff != "" {
				t.Errorf("messages: %s (-whole +streamed):\n%s", what, diff)
			}
		}
	}
}

func ptr[T any](v T) *T { return &v }

// n answers share a prompt: answer i is the one that seed+i gives alone, whole and streamed.
func TestChoices(t *testing.T) {
	l := serve(t, Options{})
	fields := user + `,"max_tokens":8,"temperature":2,"top_p":1,"logprobs":true,"enable_thinking":false`
	whole := l.chat(fields + `,"n":3,"seed":20`)
	if len(whole.Choices) != 3 {
		t.Fatalf("got %d choices, want 3", len(whole.Choices))
	}
	byIndex := make([][][]byte, 3)
	var last []byte
	for _, data := range l.events("/v1/chat/completions", "{"+fields+`,"n":3,"seed":20,"stream":true,"stream_options":{"include_usage":true,"include_obfuscation":true}}`) {
		var c openai.ChatChunk
		strictly(t, data, &c)
		if c.Usage != nil {
			last = data
			continue
		}
		if len(data)%64 != 0 {
			t.Errorf("got an event of %d bytes, want a multiple of 64: %s", len(data), data)
		}
		i := c.Choices[0].Index
		byIndex[i] = append(byIndex[i], data)
	}
	tokens := 0
	for i, c := range whole.Choices {
		answer := l.chat(fmt.Sprintf(`%s,"seed":%d`, fields, 20+i))
		alone := answer.Choices[0]
		tokens += answer.Usage.CompletionTokens
		alone.Index = i
		if diff := cmp.Diff(alone, c); diff != "" {
			t.Errorf("choice %d (-alone +one of three):\n%s", i, diff)
		}
		streamed := fold(t, append(byIndex[i], last)).Choices[0]
		streamed.Index = i
		if diff := cmp.Diff(c, streamed); diff != "" {
			t.Errorf("choice %d (-whole +streamed):\n%s", i, diff)
		}
	}
	if whole.Usage.CompletionTokens != tokens || whole.Usage.TotalTokens != whole.Usage.PromptTokens+tokens {
		t.Errorf("got usage %+v, want the prompt once and %d tokens", whole.Usage, tokens)
	}
	// Several prompts, each with several answers, and with their prompts before them.
	answer := l.complete(`"prompt":["ab",[99,100]],"n":2,"max_tokens":3,"logit_bias":{"104":100},"echo":true,"logprobs":1`)
	if len(answer.Choices) != 4 {
		t.Fatalf("got %d completions, want 4", len(answer.Choices))
	}
	for i, c := range answer.Choices {
		prompt := []string{"ab", "cd"}[i/2]
		p := c.Logprobs
		if c.Index != i || !strings.HasPrefix(c.Text, prompt) || len(p.Tokens) != 5 || p.TokenLogprobs[0] != nil || p.TokenLogprobs[1] == nil || *p.TokenLogprobs[1] >= 0 || len(p.TopLogprobs[1]) != 1 {
			t.Errorf("completion %d: got %+v, want %q first, with logprobs of all but its first token", i, c, prompt)
		}
	}
}
