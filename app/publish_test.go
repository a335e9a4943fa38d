package app

import (
	"context"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestManyPublish: 20 goroutines publish ten states a second while a chat streams; everybody who watches sees the last one, and the menu too.
// POND_TEST_STATE_SECONDS makes it longer; make test-app runs it for a minute with the race detector.
func TestManyPublish(t *testing.T) {
	seconds := 1
	if text := os.Getenv("POND_TEST_STATE_SECONDS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		seconds = n
	}
	p, _ := homeOf(t, nil)
	p.Do(context.Background(), Start)
	until(t, p, "running", phase(Running))

	watching, enough := context.WithCancel(context.Background())
	var watchers sync.WaitGroup
	var drawn [3]atomic.Pointer[State]
	for i := range drawn {
		watchers.Go(func() {
			p.Watch(watching, func(s State) {
				drawn[i].Store(&s)
				if i > 0 {
					time.Sleep(time.Duration(i) * 7 * time.Millisecond) // a slow window
				}
			})
		})
	}
	var menus atomic.Pointer[State]
	watchers.Go(func() { p.WatchMenu(watching, func(s State) { menus.Store(&s) }) })

	streaming, stop := context.WithCancel(context.Background())
	streamed := make(chan int)
	go func() {
		n := 0
		for streaming.Err() == nil {
			p.Ask(streaming, "a long story", func(string) { n++ }) // its end is stop's
		}
		streamed <- n
	}()
	var publishers sync.WaitGroup
	for g := range 20 {
		publishers.Go(func() {
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for i := range seconds * 10 {
				p.tell(JobChanged{Job{Kind: DownloadJob, DoneBytes: int64(g*1000 + i), TotalBytes: 1 << 20}})
				<-tick.C
			}
		})
	}
	publishers.Wait()
	stop()
	if n := <-streamed; n == 0 {
		t.Error("nothing was streamed meanwhile")
	}
	p.Stop()
	const last = 777
	p.tell(JobChanged{Job{Kind: VerifyJob, DoneBytes: last, TotalBytes: 1 << 20}})
	waitFor(t, "everybody has seen the last state", func() bool {
		for i := range drawn {
			if s := drawn[i].Load(); s == nil || s.Job.DoneBytes != last || s.Phase != Verifying {
				return false
			}
		}
		s := menus.Load()
		return s != nil && s.Phase == Verifying
	})
	enough()
	watchers.Wait()
	p.tell(JobEnded{})
}

// TestMenuIsCalm: words alone do not rebuild the menu at once, and the last words come all the same; a choice comes at once.
func TestMenuIsCalm(t *testing.T) {
	base := Menu(State{}.After(Served{Address: "127.0.0.1:1"}).After(Worked{Work{Active: 1, TokensPerSecond: 60}}))
	words := Menu(State{}.After(Served{Address: "127.0.0.1:1"}).After(Worked{Work{Active: 1, TokensPerSecond: 61}}))
	choice := Menu(State{}.After(Served{Address: "127.0.0.1:1"}).After(Held{}))
	if !sameChoices(base, words) || sameChoices(base, choice) {
		t.Errorf("got %v for words, %v for a choice", sameChoices(base, words), sameChoices(base, choice))
	}
}
