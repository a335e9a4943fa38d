package inference

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"pond/assets"
	"pond/inference/chat"
	"pond/inference/grammar"
	"pond/inference/sample"
)

func openDemo(t testing.TB) *Engine {
	t.Helper()
	e, err := Open(context.Background(), Options{Model: FromFS(assets.Demo()), ID: "pond-demo", ContextTokens: 4096})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func schema(t testing.TB, s string) grammar.Format {
	t.Helper()
	f, err := grammar.Schema(json.RawMessage(s), true)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const sumSchema = `{"type":"object","properties":{"answer":{"type":"string","maxLength":30},"n":{"type":"integer"}},"required":["answer","n"],"additionalProperties":false}`

func sum(t *testing.T, content string) {
	t.Helper()
	var v struct {
		Answer *string
		N      *int64
	}
	dec := json.NewDecoder(strings.NewReader(content))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil || v.Answer == nil || v.N == nil || dec.More() {
		t.Errorf("got content %q, %v, want an answer and n", content, err)
	}
}

// Case 6: the JSON went into the reasoning, or the field was ignored. The form holds behind the thinking, and without it.
func TestSchemaHoldsBehindTheThinking(t *testing.T) {
	e := openDemo(t)
	for seed := range uint64(1) {
		for _, thinking := range []bool{true, false} {
			c := user("17-6 plus three twos")
			c.Thinking = &thinking
			g := Generation{MaxTokens: 600, ThinkingBudget: 12, Format: schema(t, sumSchema), Sampling: seeded(seed)}
			r := ask(t, e, c, g)
			if r.Finish != FinishStop {
				t.Errorf("seed %d: got finish %s after %q", seed, r.Finish, r.Answer.Content)
				continue
			}
			sum(t, r.Answer.Content)
			if thinking != (r.Answer.Reasoning != "") || r.Usage.MaskSteps == 0 {
				t.Errorf("seed %d: got thinking %q, want some: %v; %d masks", seed, r.Answer.Reasoning, thinking, r.Usage.MaskSteps)
			}
			g.MaxTokens = 4
			if r := ask(t, e, c, g); r.Finish != FinishLength || thinking && r.Answer.Content != "" || r.Usage.CompletionTokens != 4 {
				t.Errorf("four tokens: got %+v, want a length finish", r)
			}
		}
	}
}

// A model of noise wants to end its thinking by ending the answer, by tags spelled out and by calls; the content is valid all the same.
func TestNoiseIsHeldToTheSchema(t *testing.T) {
	e := openTiny(t, Options{})
	for seed := range uint64(3) {
		p := &sample.Params{Temperature: 2, Seed: seed}
		r := ask(t, e, user("noise"), Generation{MaxTokens: 700, ThinkingBudget: 60, Format: schema(t, sumSchema), Sampling: p})
		if r.Finish != FinishStop {
			t.Errorf("seed %d: got finish %s", seed, r.Finish)
			continue
		}
		sum(t, r.Answer.Content)
	}
}

func weatherTools() []json.RawMessage {
	return []json.RawMessage{
		json.RawMessage(`{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1,"maximum":9},"unit":{"type":"string","enum":["C","F"]},"at":{"type":"array","items":{"type":"number"},"maxItems":2}},"required":["city","days"]}}}`),
		json.RawMessage(`{"type":"function","function":{"name":"now","parameters":{"type":"object","properties":{}}}}`),
	}
}

func TestRequiredCallsAreMade(t *testing.T) {
	for name, e := range map[string]*Engine{"demo": openDemo(t), "noise": openTiny(t, Options{})} {
		for seed := range uint64(map[string]int{"demo": 1, "noise": 2}[name]) {
			for _, choice := range []ToolChoice{{Mode: ToolsRequired}, {Name: "weather"}, {Name: "now"}} {
				c := user("What is the weather in Oslo for two days?")
				c.Tools = weatherTools()
				thinking := seed%2 == 0
				c.Thinking = &thinking
				p := seeded(seed)
				if name == "noise" { // a free text of noise has no end
					p.Bias = map[int32]float64{}
					for _, b := range []byte("\n</parameter>") {
						p.Bias[int32(b)] = 6
					}
				}
				r := ask(t, e, c, Generation{MaxTokens: 160, ThinkingBudget: 10, ToolChoice: choice, OneCall: true, Sampling: p})
				if r.Finish == FinishLength {
					continue // the city goes on
				}
				if r.Finish != FinishToolCalls || len(r.Answer.Calls) != 1 || r.Answer.Content != "" {
					t.Errorf("%s, seed %d, %v: got finish %s, content %q and calls %s", name, seed, choice, r.Finish, r.Answer.Content, r.Answer.Calls)
					continue
				}
				call := r.Answer.Calls[0]
				if choice.Name != "" && call.Name != choice.Name {
					t.Errorf("%s: got a call of %s, want %s", name, call.Name, choice.Name)
				}
				var args map[string]any
				if err := json.Unmarshal(call.Arguments, &args); err != nil {
					t.Errorf("%s: %s: %v", name, call.Arguments, err)
				}
				if days, ok := args["days"].(float64); call.Name == "weather" && (!ok || days < 1 || days > 9 || args["city"] == nil) {
					t.Errorf("%s: got arguments %s, want a city and 1 to 9 days", name, call.Arguments)
				}
			}
		}
	}
}

func TestNoCallsWithToolChoiceNone(t *testing.T) {
	e := openTiny(t, Options{})
	open, _ := e.Tokenizer().ID("<tool_call>")
	p := seeded(1)
	p.Bias = map[int32]float64{open: 100}
	c := user("call me")
	c.Tools = weatherTools()
	r := ask(t, e, c, Generation{MaxTokens: 60, ToolChoice: ToolChoice{Mode: ToolsNone}, Sampling: p})
	if strings.Contains(r.Answer.Content+r.Answer.Reasoning, "<tool_call>") || len(r.Answer.Calls) > 0 {
		t.Errorf("got %+v, want no call and none begun", r.Answer)
	}
	// Spelled out it is text.
	parser := chat.NewParser(chat.ParserOptions{Tools: c.Tools, NoCalls: true})
	var a chat.Answer
	text := "so <tool_call>\n<function=now>\n</function>\n</tool_call> it is"
	a.Apply(parser.Push(text))
	a.Apply(parser.Close(chat.EndStop))
	if a.Content != text || len(a.Calls) > 0 {
		t.Errorf("got %+v, want %q as content", a, text)
	}
}

func TestToolChoiceThatCannotBe(t *testing.T) {
	e := openTiny(t, Options{})
	with := user("hi")
	with.Tools = weatherTools()
	for _, c := range []struct {
		conversation chat.Conversation
		choice       ToolChoice
	}{{user("hi"), ToolChoice{Mode: ToolsRequired}}, {with, ToolChoice{Name: "absent"}}, {with, ToolChoice{Mode: "maybe"}}} {
		_, err := e.Chat(context.Background(), ChatRequest{Conversation: c.conversation, Generation: Generation{ToolChoice: c.choice}})
		if ce, ok := err.(*chat.Error); !ok || ce.Path != "tool_choice" {
			t.Errorf("%+v: got %v, want an error of tool_choice", c.choice, err)
		}
	}
}

// Several answers to one prompt share its work, as do the same prompt sent twice.
func TestSamePromptIsComputedOnce(t *testing.T) {
	e := openTiny(t, Options{})
	c := user(strings.Repeat("a long question ", 12))
	first := ask(t, e, c, Generation{MaxTokens: 10, Sampling: seeded(1)})
	for seed := range uint64(3) {
		r := ask(t, e, c, Generation{MaxTokens: 10, Sampling: seeded(seed + 2)})
		if r.Usage.CachedTokens < first.Usage.PromptTokens-24 { // byte tokens: the generation prompt is 19
			t.Errorf("got %d of %d tokens reused", r.Usage.CachedTokens, first.Usage.PromptTokens)
		}
	}
	for i := range 3 {
		a, err := e.Complete(context.Background(), CompletionRequest{Prompt: strings.Repeat("once upon a time ", 10), Generation: Generation{MaxTokens: 5, Sampling: seeded(uint64(i))}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := a.Wait()
		if err != nil || i > 0 && r.Usage.CachedTokens != r.Usage.PromptTokens-1 {
			t.Errorf("completion %d: got %d of %d tokens reused, %v", i, r.Usage.CachedTokens, r.Usage.PromptTokens, err)
		}
	}
}

// Case 26: a cache that was on and never hit. The same prompt, one more turn, and a sibling that shares system and tools all reuse what they can.
func TestPrefixIsReused(t *testing.T) {
	e := openTiny(t, Options{})
	c := user(strings.Repeat("What lives in a pond? ", 10))
	c.Messages = append([]chat.Message{{Role: "system", Content: chat.TextContent(strings.Repeat("Be brief. ", 20))}}, c.Messages...)
	c.Tools = weatherTools()[:1]
	g := Generation{MaxTokens: 3, Sampling: seeded(1)}
	cold := ask(t, e, c, g)
	if cold.Usage.CachedTokens != 0 {
		t.Errorf("a first prompt: got %d tokens reused", cold.Usage.CachedTokens)
	}
	again := ask(t, e, c, g)
	if 100*again.Usage.CachedTokens < 95*cold.Usage.PromptTokens || again.Answer.Reasoning != cold.Answer.Reasoning {
		t.Errorf("the same prompt: got %d of %d tokens reused, and the answer %q, want %q", again.Usage.CachedTokens, cold.Usage.PromptTokens, again.Answer.Reasoning, cold.Answer.Reasoning)
	}
	more := c
	more.Messages = append(append([]chat.Message(nil), c.Messages...), chat.Message{Role: "assistant", Content: chat.TextContent("Frogs.")}, chat.Message{Role: "user", Content: chat.TextContent("And?")})
	if r := ask(t, e, more, g); 100*r.Usage.CachedTokens < 95*cold.Usage.PromptTokens {
		t.Errorf("one more turn: got %d tokens reused, want nearly the first prompt's %d", r.Usage.CachedTokens, cold.Usage.PromptTokens)
	}
	sibling := c
	sibling.Messages = append(append([]chat.Message(nil), c.Messages[:1]...), chat.Message{Role: "user", Content: chat.TextContent("Something else")})
	alone, err := chat.Render(chat.Conversation{Messages: sibling.Messages, Tools: c.Tools, NoGenerationPrompt: true})
	if err != nil {
		t.Fatal(err)
	}
	shared := len(e.Tokenizer().EncodePieces(alone.Pieces[:alone.Borders[1]]))
	if r := ask(t, e, sibling, g); r.Usage.CachedTokens != shared {
		t.Errorf("a sibling: got %d tokens reused, want the %d of system and tools", r.Usage.CachedTokens, shared)
	}
}

// Case 8: forced quoting cut arguments at the first line and misspelled short ones. A call that is made anyway has the same bytes when it must be.
func TestRequiredCallsEqualFreeOnes(t *testing.T) {
	e := openDemo(t)
	off := false
	for _, city := range []string{"Ōsaka"} {
		c := user("What is the weather in " + city + "?")
		c.Tools = []json.RawMessage{json.RawMessage(`{"type":"function","function":{"name":"get_weather","description":"Weather of a city","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}`)}
		c.Thinking = &off
		g := Generation{MaxTokens: 80, Sampling: &sample.Params{}}
		free := ask(t, e, c, g)
		g.ToolChoice = ToolChoice{Mode: ToolsRequired}
		held := ask(t, e, c, g)
		if len(free.Answer.Calls) == 0 || free.Answer.Content != "" {
			t.Errorf("%s: the demo model made no call by itself: %+v", city, free.Answer)
			continue
		}
		if len(held.Answer.Calls) != len(free.Answer.Calls) || string(held.Answer.Calls[0].Arguments) != string(free.Answer.Calls[0].Arguments) {
			t.Errorf("%s: got %s, want %s", city, held.Answer.Calls, free.Answer.Calls)
		}
	}
}

// A strict tool was offered, and the model called it with a level and a room that its schema does not have.
func TestStrictToolsAreCalledAsDeclared(t *testing.T) {
	e := openDemo(t)
	tools := []json.RawMessage{json.RawMessage(`{"type":"function","function":{"name":"set_light","strict":true,"parameters":{"type":"object","properties":{"level":{"type":"integer","minimum":10,"maximum":19},"room":{"type":"string","enum":["kitchen","hall"]}},"required":["level","room"],"additionalProperties":false}}}`)}
	off := false
	calls := 0
	for seed := range uint64(6) {
		c := user("Call set_light with level 3 in the bathroom.")
		c.Tools, c.Thinking = tools, &off
		params := seeded(seed)
		params.Temperature, params.TopK, params.TopP = 2, 0, 1
		params.Bias = map[int32]float64{e.tok.EncodeSpecial("<tool_call>")[0]: 12} // or the noise would seldom call
		r := ask(t, e, c, Generation{MaxTokens: 120, StrictTools: true, Sampling: params})
		if r.Finish != FinishToolCalls {
			continue
		}
		for _, call := range r.Answer.Calls {
			var a struct {
				Level int
				Room  string
			}
			calls++
			if err := json.Unmarshal(call.Arguments, &a); err != nil || call.Name != "set_light" || a.Level < 10 || a.Level > 19 || a.Room != "kitchen" && a.Room != "hall" {
				t.Errorf("seed %d: got the call %s%s, want it as declared", seed, call.Name, call.Arguments)
			}
		}
	}
	if calls == 0 {
		t.Error("got no call at all: the test proves nothing")
	}
	// Text stays the text that it is without.
	c := user("Hello! Who are you?")
	c.Tools, c.Thinking = tools, &off
	free := ask(t, e, c, Generation{MaxTokens: 40, Sampling: seeded(1)})
	held := ask(t, e, c, Generation{MaxTokens: 40, Sampling: seeded(1), StrictTools: true})
	if free.Answer.Content != held.Answer.Content || len(free.Answer.Calls)+len(held.Answer.Calls) > 0 {
		t.Errorf("got %q with a strict tool, want %q", held.Answer.Content, free.Answer.Content)
	}
}

func TestOneCallEndsTheAnswer(t *testing.T) {
	a := newAnswer(context.Background())
	w := &writer{job: &job{answer: a, gen: Generation{OneCall: true}, parser: chat.NewParser(chat.ParserOptions{Tools: weatherTools()})}, stopper: sample.NewStopper(nil), decoder: openTiny(t, Options{}).Tokenizer().NewDecoder()}
	call := "<tool_call>\n<function=now>\n</function>\n</tool_call>"
	for _, part := range []string{"Let me see.", call, "\n", call[:20], call[20:], "more"} {
		if a.add(Update{Events: w.until(w.parse(part))}); w.stopped {
			break
		}
	}
	if !w.stopped || w.close(chat.EndStop) != FinishToolCalls {
		t.Error("got no end at the second call")
	}
	if got := a.Result().Answer; len(got.Calls) != 1 || string(got.Calls[0].Arguments) != "{}" || got.Content != "Let me see." {
		t.Errorf("got %+v, want the first call alone", got)
	}
}

// What is written for the model when its thinking is closed reads back as history token by token, so the next turn goes on from it.
func TestClosedThinkingIsReused(t *testing.T) {
	e := openDemo(t)
	c := user("What is a pond?")
	c.PreserveThinking = true
	first := ask(t, e, c, Generation{MaxTokens: 100, ThinkingBudget: 6, Sampling: &sample.Params{}})
	if !strings.Contains(first.Answer.Reasoning, strings.TrimSpace(closingSentence)) || first.Answer.Content == "" {
		t.Fatalf("got %+v, want thinking that was closed and an answer", first.Answer)
	}
	c.Messages = append(c.Messages, first.Answer.Message())
	c.Messages = append(c.Messages, user("And a lake?").Messages...)
	second := ask(t, e, c, Generation{MaxTokens: 1, Sampling: &sample.Params{}})
	if want := first.Usage.PromptTokens + first.Usage.CompletionTokens - 2; second.Usage.CachedTokens < want {
		t.Errorf("got %d tokens reused, want %d: the first prompt of %d and its answer of %d", second.Usage.CachedTokens, want, first.Usage.PromptTokens, first.Usage.CompletionTokens)
	}
}
