package ui

import (
	"context"
	"errors"
	"strings"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"pond/app"
)

// asked records what the window wants of an answerer and lets the test play it.
type asked struct {
	ctx      context.Context
	question string
	emit     func(string)
	done     func(error)
}

func open(t *testing.T, s app.State) (u *UI, actions *[]app.Action, questions *[]asked) {
	t.Helper()
	actions, questions = &[]app.Action{}, &[]asked{}
	u = New(test.NewTempApp(t), Controls{
		Do: func(a app.Action) { *actions = append(*actions, a) },
		Ask: func(ctx context.Context, question string, emit func(string), done func(error)) {
			*questions = append(*questions, asked{ctx, question, emit, done})
		},
	}, s)
	t.Cleanup(u.window.w.Close)
	return u, actions, questions
}

func running() app.State {
	return app.State{}.After(app.LoadStarted{Model: app.DemoModel, Address: "127.0.0.1:11535"}).
		After(app.Served{Address: "127.0.0.1:11535", Executor: "host exact", ContextTokens: 4096})
}

func TestWindowFollowsState(t *testing.T) {
	u, actions, _ := open(t, app.State{})
	if !u.window.copyURL.Disabled() || !u.window.question.Disabled() {
		t.Error("a stopped pond offers what it cannot do")
	}
	test.Tap(u.window.toggle)

	u.Draw(running())
	for _, want := range []string{u.window.line.Text, u.window.endpoint.Text, u.window.curl.Text} {
		if !strings.Contains(want, "127.0.0.1:11535") {
			t.Errorf("got %q, want the address in it", want)
		}
	}
	if got := u.window.detail.Text; got != "Model pond-demo · host exact · 4096 tokens of context" {
		t.Errorf("detail: got %q", got)
	}
	u.Draw(running().After(app.Pressed{Level: 2}))
	if got := u.window.detail.Text; !strings.HasSuffix(got, " · memory is short (critical)") {
		t.Errorf("under pressure: got %q", got)
	}
	u.Draw(running())
	test.Tap(u.window.copyURL)
	test.Tap(u.window.toggle)
	test.Tap(u.window.copyCurl)
	if got := fyne.CurrentApp().Clipboard().Content(); got != u.window.curl.Text {
		t.Errorf("clipboard: got %q", got)
	}

	u.Draw(running().After(app.Failure{Err: errors.New("the disk is gone")}))
	if got := u.window.detail.Text; got != "the disk is gone" {
		t.Errorf("failed: got %q", got)
	}
	test.Tap(u.window.toggle)
	want := []app.Action{app.Start, app.CopyEndpoint, app.Stop, app.Start}
	if len(*actions) != len(want) {
		t.Fatalf("actions: got %v, want %v", *actions, want)
	}
	for i := range want {
		if (*actions)[i] != want[i] {
			t.Errorf("actions: got %v, want %v", *actions, want)
		}
	}
}

func TestAsk(t *testing.T) {
	u, _, questions := open(t, running())
	v := u.window
	test.Type(v.question, "  ")
	test.Tap(v.send)
	if len(*questions) != 0 {
		t.Fatal("an empty question was asked")
	}
	test.Type(v.question, "What is a pond?")
	v.question.OnSubmitted(v.question.Text)
	if len(*questions) != 1 || (*questions)[0].question != "What is a pond?" {
		t.Fatalf("got %+v", *questions)
	}
	q := (*questions)[0]
	q.emit("Still ")
	q.emit("water.")
	q.done(nil)
	if v.answer.Text != "Still water." || v.question.Text != "" || v.stop != nil {
		t.Errorf("got answer %q, question %q", v.answer.Text, v.question.Text)
	}

	test.Type(v.question, "And a lake?")
	test.Tap(v.send)
	q = (*questions)[1]
	q.emit("More")
	test.Tap(v.send) // now the stop button
	if q.ctx.Err() == nil {
		t.Error("stop did not cancel the answer")
	}
	q.done(q.ctx.Err())
	if v.answer.Text != "More (stopped)" || v.question.Text != "And a lake?" {
		t.Errorf("stopped: got answer %q, question %q", v.answer.Text, v.question.Text)
	}

	test.Tap(v.send)
	(*questions)[2].done(errors.New("the engine is gone"))
	if v.answer.Text != "\nthe engine is gone" {
		t.Errorf("failed: got answer %q", v.answer.Text)
	}
}

func TestTrayMenu(t *testing.T) {
	u, actions, _ := open(t, running())
	quits := 0
	for _, item := range u.TrayMenu(running()).Items {
		if item.IsQuit {
			quits++
		}
		if !item.IsSeparator && !item.Disabled {
			item.Action()
		}
	}
	if quits != 1 {
		t.Errorf("got %d quit entries, want 1", quits)
	}
	if got := *actions; got[0] != app.Stop || got[1] != app.CopyEndpoint || got[len(got)-1] != app.Quit {
		t.Errorf("got %v, want stop first, copy, and quit last", got)
	}
}

func TestShowDraws(t *testing.T) {
	u, _, _ := open(t, running())
	u.Show()
	if img := u.window.w.Canvas().Capture(); img.Bounds().Empty() {
		t.Error("the window draws nothing")
	}
}

// TestNothingIsPostedAfterTheEnd: an answer may still stream while the program quits.
func TestNothingIsPostedAfterTheEnd(t *testing.T) {
	u, _, questions := open(t, running())
	test.Type(u.window.question, "A long story?")
	test.Tap(u.window.send)
	(*questions)[0].emit("Once")
	u.End()
	(*questions)[0].emit(" upon")
	(*questions)[0].done(nil)
	u.Post(func() { t.Error("posted after the end") })
	if got := u.window.answer.Text; got != "Once" {
		t.Errorf("got %q", got)
	}
}
