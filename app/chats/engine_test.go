package chats

import (
	"context"
	"testing"

	"pond/assets"
	"pond/inference"
)

// TestTheDemoModelAnswers holds the chat against the real engine, whose queue it shares with the server.
func TestTheDemoModelAnswers(t *testing.T) {
	e, err := inference.Open(context.Background(), inference.Options{Model: inference.FromFS(assets.Demo()), ID: "pond-demo", Executor: inference.Host, ContextTokens: 512})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	store := New(t.TempDir(), FromEngine(e.Chat, nil))
	defer store.Close()
	off, cold := false, 0.0
	talk := store.Begin(Params{Thinking: &off, Temperature: &cold, MaxTokens: 12})
	v := send(t, talk, "Hello! Who are you?")
	a := v.Messages[1]
	if a.Text == "" || a.Error != "" || a.Figures == nil || a.Figures.Tokens == 0 || a.Figures.Tokens > 12 || a.Figures.PromptTokens == 0 {
		t.Errorf("got %+v %+v", a, a.Figures)
	}
	v = send(t, talk, "And then?")
	if f := v.Messages[3].Figures; f == nil || f.CachedTokens == 0 {
		t.Errorf("the second question: got %+v, want a part of the prompt reused", f)
	}
}
