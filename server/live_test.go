package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"pond/inference"
	"pond/inference/tinymodel"
	"pond/server/openai"
)

// tiny opens the golden tiny model: a byte tokenizer, nonsense for text, all else real.
func tiny(t testing.TB, o inference.Options) *inference.Engine {
	t.Helper()
	generated, err := tinymodel.Generate(tinymodel.Tiny)
	if err != nil {
		t.Fatal(err)
	}
	files, err := generated.FS()
	if err != nil {
		t.Fatal(err)
	}
	o.Model, o.ID = inference.FromFS(files), "tiny"
	if o.ContextTokens == 0 {
		o.ContextTokens = 2048
	}
	e, err := inference.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// live is a server on a port of its own, with what tests ask of it.
type live struct {
	*testing.T
	server *Server
	url    string
	stop   context.CancelFunc
	served chan error
}

func serve(t *testing.T, o Options) *live {
	t.Helper()
	if o.Engine == nil {
		o.Engine = tiny(t, inference.Options{})
	}
	o.Addr, o.Version = "127.0.0.1:0", "test"
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.grace = 50 * time.Millisecond
	url, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &live{T: t, server: s, url: url, stop: stop, served: make(chan error, 1)}
	go func() { l.served <- s.Serve(ctx); close(l.served) }()
	t.Cleanup(func() {
		stop()
		<-l.served
		if n := s.InFlight(); n != 0 {
			t.Errorf("%d answers in flight after the server's end, want 0", n)
		}
	})
	return l
}

// post sends a body and returns the whole answer.
func (l *live) post(path, body string) (int, http.Header, []byte) {
	l.Helper()
	resp, err := http.Post(l.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		l.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		l.Fatal(err)
	}
	return resp.StatusCode, resp.Header, answer
}

// chat sends a chat request that must succeed; body is without the braces.
func (l *live) chat(body string) openai.Chat {
	l.Helper()
	status, _, answer := l.post("/v1/chat/completions", "{"+body+"}")
	if status != http.StatusOK {
		l.Fatalf("%s\ngot status %d: %s", body, status, answer)
	}
	var c openai.Chat
	strictly(l, answer, &c)
	return c
}

// events sends a streaming request that must succeed and returns the data of its events, without the end mark, which must be there.
func (l *live) events(path, body string) [][]byte {
	l.Helper()
	status, _, answer := l.post(path, body)
	if status != http.StatusOK {
		l.Fatalf("%s\ngot status %d: %s", body, status, answer)
	}
	return dataOf(l, answer)
}

func dataOf(t testing.TB, stream []byte) (data [][]byte) {
	t.Helper()
	for _, block := range bytes.Split(bytes.TrimSuffix(stream, []byte("\n\n")), []byte("\n\n")) {
		switch payload, ok := bytes.CutPrefix(block, []byte("data: ")); {
		case ok:
			data = append(data, payload)
		case !bytes.HasPrefix(block, []byte(": ")) || bytes.ContainsAny(block, "\n\r"):
			t.Fatalf("got the block %q, want data or a comment of one line", block)
		}
	}
	if n := len(data); n == 0 || string(data[n-1]) != "[DONE]" {
		t.Fatalf("got a stream that ends without [DONE]: %q", stream)
	}
	return data[:len(data)-1]
}

// strictly decodes JSON and refuses fields that the type does not have.
func strictly(t testing.TB, data []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s\n%v", data, err)
	}
}

// fold puts the chunks of a streamed chat answer together, checking their order on the way.
func fold(t testing.TB, events [][]byte) openai.Chat {
	t.Helper()
	var c openai.Chat
	var content strings.Builder
	choice := openai.ChatChoice{}
	for i, data := range events {
		var chunk openai.ChatChunk
		strictly(t, data, &chunk)
		if i == 0 {
			c = openai.Chat{ID: chunk.ID, Created: chunk.Created, Model: chunk.Model, SystemFingerprint: chunk.SystemFingerprint, Object: openai.ObjectChat}
		}
		if chunk.ID != c.ID || chunk.Created != c.Created || chunk.Model != c.Model || chunk.Object != openai.ObjectChatChunk || chunk.SystemFingerprint != c.SystemFingerprint {
			t.Errorf("event %d: got the head of another answer: %s", i, data)
		}
		if chunk.Usage != nil {
			if i != len(events)-1 || len(chunk.Choices) != 0 || choice.FinishReason == "" {
				t.Errorf("event %d of %d: got usage with %d choices, want it last, after the finish and without choices", i, len(events), len(chunk.Choices))
			}
			c.Usage = *chunk.Usage
			continue
		}
		if len(chunk.Choices) != 1 {
			t.Fatalf("event %d: got %d choices, want 1", i, len(chunk.Choices))
		}
		part := chunk.Choices[0]
		if choice.FinishReason != "" {
			t.Errorf("event %d: got a choice after the finish reason", i)
		}
		if (part.Delta.Role == "assistant") != (i == 0) {
			t.Errorf("event %d: got role %q, want it in the first event only", i, part.Delta.Role)
		}
		if part.Logprobs != nil {
			if choice.Logprobs == nil {
				choice.Logprobs = &openai.ChatLogprobs{}
			}
			choice.Logprobs.Content = append(choice.Logprobs.Content, part.Logprobs.Content...)
		}
		if part.FinishReason != nil {
			choice.FinishReason = *part.FinishReason
		}
		if part.Delta.Content != nil {
			content.WriteString(*part.Delta.Content)
		}
		choice.Message.Role += part.Delta.Role
		choice.Message.Reasoning += part.Delta.Reasoning
		choice.Message.ReasoningContent += part.Delta.ReasoningContent
		for _, call := range part.Delta.ToolCalls {
			calls := &choice.Message.ToolCalls
			switch {
			case call.Index == nil || *call.Index > len(*calls):
				t.Fatalf("event %d: got a call without its index in order: %s", i, data)
			case *call.Index == len(*calls):
				if call.ID == "" || call.Type != "function" || call.Function.Name == "" {
					t.Errorf("event %d: got a call that begins without id, type or name: %s", i, data)
				}
				call.Index = nil
				*calls = append(*calls, call)
			default:
				if call.ID != "" || call.Type != "" || call.Function.Name != "" {
					t.Errorf("event %d: got the name of a call twice: %s", i, data)
				}
				(*calls)[*call.Index].Function.Arguments += call.Function.Arguments
			}
		}
	}
	if choice.FinishReason == "" {
		t.Error("got no finish reason")
	}
	// A stream cannot say null after the fact: the rule of the whole answer is applied to what came.
	if text := content.String(); text != "" || choice.Message.Reasoning == "" && len(choice.Message.ToolCalls) == 0 {
		choice.Message.Content = &text
	}
	c.Choices = []openai.ChatChoice{choice}
	return c
}

// waitFor fails when something does not happen at all. The second that the cases allow is for make load: here the machine may be slow.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
