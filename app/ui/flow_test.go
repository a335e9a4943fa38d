package ui

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"pond/app"
	"pond/app/chats"
	"pond/inference/chat"
)

func themed(t *testing.T) { test.NewTempApp(t).Settings().SetTheme(newTheme()) }

func quietHooks() messageHooks {
	return messageHooks{copy: func(string) {}, regenerate: func(int) {}, edit: func(chats.Message) {}, version: func(int, int) {}, scrolled: func(*fyne.ScrollEvent) {}, resized: func() {}}
}

func answerOf(text string, end chats.End) chats.Shown {
	return chats.Shown{Message: chats.Message{ID: 2, Role: chats.Assistant, Text: text, End: end}, Version: 1, Versions: 1}
}

// TestAnyTextIsDrawn: random texts that grow in random pieces, at changing widths, never break the window.
func TestAnyTextIsDrawn(t *testing.T) {
	themed(t)
	r := rand.New(rand.NewPCG(5, 6))
	for range 120 {
		text := randomText(r)
		m := newMessageView(answerOf("", chats.Running), quietHooks(), false)
		m.Resize(fyne.NewSize(400, 300))
		for at := 0; at < len(text); {
			at = min(len(text), at+1+r.IntN(40))
			m.update(answerOf(text[:at], chats.Running), chats.View{})
		}
		m.update(answerOf(text, chats.Complete), chats.View{})
		m.Resize(fyne.NewSize(float32(60+r.IntN(600)), 300))
		m.setPlain(true)
	}
}

// TestAClosedBlockIsDrawnOnce: in an answer of a megabyte, what stands is not made again while more comes; only the last block is.
func TestAClosedBlockIsDrawnOnce(t *testing.T) {
	themed(t)
	var b strings.Builder
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, "## Part %d\n\nSome words with `code` and **weight**, %s.\n\n- one\n- two\n\n```go\nx := %d\n```\n\n", i, strings.Repeat("and on ", 20), i)
	}
	text := b.String()
	m := newMessageView(answerOf("", chats.Running), quietHooks(), true)
	m.Resize(fyne.NewSize(600, 400))
	m.column.look(0, 400)
	var before []fyne.CanvasObject
	for at := 0; at < len(text); {
		at = min(len(text), at+40_000)
		m.update(answerOf(text[:at], chats.Running), chats.View{})
		for i, o := range before {
			if m.text.objects[i] != o {
				t.Fatalf("block %d was made again", i)
			}
		}
		before = slices.Clone(m.text.objects)
	}
	if os.Getenv("POND_BENCH_UI") != "" {
		from, n := time.Now(), 200
		for i := range n {
			text += fmt.Sprintf("word %d ", i)
			m.update(answerOf(text, chats.Running), chats.View{})
		}
		fmt.Printf("Fyne's thread, a few more words behind a megabyte: %v each\n", (time.Since(from) / time.Duration(n)).Round(10*time.Microsecond))
	}
	hidden := 0
	for _, o := range before {
		if !o.Visible() {
			hidden++
		}
	}
	if len(before) < 5000 || hidden < len(before)-100 {
		t.Errorf("got %d blocks, %d of them hidden; want nearly all out of sight hidden", len(before), hidden)
	}
}

// TestHugePieces are what other renderers choked on.
func TestHugePieces(t *testing.T) {
	themed(t)
	for name, text := range map[string]string{
		"a table of 3,000 columns": "|" + strings.Repeat(" h |", 3000) + "\n|" + strings.Repeat("---|", 3000) + "\n|" + strings.Repeat(" 1 |", 3000) + "\n",
		"a code block of 300 KB":   "```\n" + strings.Repeat("let x = 1; // and a comment behind it\n", 8000),
		"formulas":                 "$2+2=4$ and $$\\int_0^1 x^2 dx$$ and \\(a_b\\)",
		"an unclosed fence":        "text\n```python\nprint(1)",
		"one word of 100 KB":       strings.Repeat("x", 100<<10),
	} {
		m := newMessageView(answerOf("", chats.Running), quietHooks(), true)
		m.Resize(fyne.NewSize(600, 400))
		m.update(answerOf(text, chats.Complete), chats.View{})
		if m.MinSize().Height < 10 {
			t.Errorf("%s: nothing is drawn", name)
		}
	}
}

func TestTheCopyButtonGivesTheWholeCode(t *testing.T) {
	themed(t)
	code := strings.Repeat("line of code\n", 1000)
	copied := ""
	hooks := quietHooks()
	hooks.copy = func(s string) { copied = s }
	m := newMessageView(answerOf("", chats.Running), hooks, true)
	m.Resize(fyne.NewSize(600, 400))
	text := "```go\n" + code + "```\n"
	for at := 0; at < len(text); {
		at = min(len(text), at+777)
		m.update(answerOf(text[:at], chats.Running), chats.View{})
	}
	m.update(answerOf(text, chats.Complete), chats.View{})
	w := test.NewTempWindow(t, m)
	press(t, w, "Copy")
	if copied != strings.TrimSuffix(code, "\n") {
		t.Errorf("got %d bytes, want %d", len(copied), len(code)-1)
	}
}

// TestTwentyPublishers: states from twenty goroutines while a chat streams; the last one is drawn. POND_BENCH_UI (a duration) makes it as long
// and as fast as make bench-ui wants it, and prints how long Fyne's thread was held.
func TestTwentyPublishers(t *testing.T) {
	length, pause := 300*time.Millisecond, 5*time.Millisecond
	if text := os.Getenv("POND_BENCH_UI"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
		pause = 100 * time.Millisecond
	}
	st := newStage(t, stateOf(app.Running))
	st.ui.welcomed = true
	for _, a := range []app.Action{app.OpenWindow, app.OpenModel, app.OpenWelcome, app.OpenSettings} {
		st.ui.Open(a)
	}
	c := st.openChat()
	for range 4000 {
		st.player.events = append(st.player.events, chat.Event{Kind: chat.Text, Text: "Some more words of an answer, with `code`.\n\n"})
	}
	c.entry.SetText("tell me much")
	c.submit()

	var wg sync.WaitGroup
	done := make(chan struct{})
	for i := range 20 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := 0; ; n++ {
				s := stateOf(app.Busy)
				s.Work.TokensPerSecond = float64(10 + (n+i)%60)
				st.ui.Publish(s)
				select {
				case <-done:
					return
				case <-time.After(pause):
				}
			}
		}()
	}
	go func() {
		time.Sleep(length)
		close(done)
		wg.Wait()
		last := stateOf(app.Stopped)
		last.Model = "the last one"
		st.ui.Publish(last)
	}()
	var held []time.Duration
	st.within(length+2*time.Minute, "the last state", func() bool {
		select {
		case f := <-st.posts:
			from := time.Now()
			f()
			held = append(held, time.Since(from))
		case <-time.After(time.Second):
		}
		return st.ui.state.Model == "the last one"
	})
	c.stop()
	st.until("the end of the answer", func() bool { return c.view.Work == chats.Idle })
	slices.Sort(held)
	if os.Getenv("POND_BENCH_UI") != "" {
		at := func(p float64) time.Duration {
			return held[min(len(held)-1, int(p*float64(len(held))))].Round(10 * time.Microsecond)
		}
		fmt.Printf("Fyne's thread, held %d times in %v: median %v, 99th percentile %v, 99.9th %v, longest %v\n", len(held), length, at(0.5), at(0.99), at(0.999), held[len(held)-1].Round(10*time.Microsecond))
	}
	if !strings.Contains(texts(st.ui.home.w), "the last one") {
		t.Error("the last state was not drawn")
	}
}
