package chats

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pond/inference"
	chatproto "pond/inference/chat"
)

// talker is the environment variable that makes this test binary a process which chats in that folder until it is killed.
const talker = "POND_TEST_TALKER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(talker); dir != "" {
		talkForEver(dir)
	}
	os.Exit(m.Run())
}

// talkForEver writes an answer that never ends and prints how many of its words a watcher has seen.
func talkForEver(dir string) {
	word := 0
	store := New(dir, func(context.Context, inference.ChatRequest) (Stream, error) {
		return Stream{Next: func() (inference.Update, bool) {
			time.Sleep(time.Millisecond)
			word++
			return inference.Update{Events: []chatproto.Event{{Kind: chatproto.Text, Text: fmt.Sprintf("w%d ", word)}}}, true
		}, Err: func() error { return nil }, Result: func() inference.Result { return inference.Result{} }, StopThinking: func() {}}, nil
	})
	talk := store.Begin(Params{})
	if err := talk.Send("count", nil); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	talk.Watch(context.Background(), func(v View) {
		if len(v.Messages) > 1 {
			fmt.Printf("%d\n", strings.Count(v.Messages[1].Text, " "))
		}
	})
}

// TestKilledInMidAnswer: whatever the user saw before kill -9 is there after it, marked as interrupted, and the chat goes on.
func TestKilledInMidAnswer(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(4, 47))
	for round := range 6 {
		dir := t.TempDir()
		child := exec.Command(self)
		child.Env = append(os.Environ(), talker+"="+dir)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		want, lines, seen := 1+random.IntN(12), 0, 0
		for lines < want { // kill after a random number of views, and a random moment more
			if _, err := fmt.Fscanln(out, &seen); err != nil {
				t.Fatalf("round %d: the child said %v", round, err)
			}
			lines++
		}
		time.Sleep(time.Duration(random.IntN(int(2 * Interval))))
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for {
			var more int
			if _, err := fmt.Fscanln(out, &more); err != nil {
				break
			}
			seen = more
		}
		child.Wait() // killed, as it should be

		store := New(dir, (&script{text: []string{"going on"}}).ask)
		list, err := store.List("")
		if err != nil || len(list.Chats) != 1 || len(list.Bad) != 0 {
			t.Fatalf("round %d: got %+v, %v", round, list, err)
		}
		talk, err := store.Open(list.Chats[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		v := talk.View()
		a := v.Messages[1]
		if a.End != Interrupted || strings.Count(a.Text, " ") < seen {
			t.Errorf("round %d: %d words were seen, got %d, end %q", round, seen, strings.Count(a.Text, " "), a.End)
		}
		for i, w := range strings.Fields(a.Text) {
			if w != fmt.Sprintf("w%d", i+1) {
				t.Fatalf("round %d: word %d is %q", round, i+1, w)
			}
		}
		if v = send(t, talk, "go on"); v.Messages[3].Text != "going on" {
			t.Errorf("round %d: got %+v", round, v.Messages[3])
		}
		store.Close()
		if parts, _ := filepath.Glob(filepath.Join(dir, "*.part")); len(parts) != 0 {
			t.Errorf("round %d: left behind: %v", round, parts)
		}
	}
}
