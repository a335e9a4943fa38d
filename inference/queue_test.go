package inference

import (
	"context"
	"errors"
	"testing"
)

// A hundred clients whose prompts lay on the disk were all taken in, whatever the queue's limit: none was told to come again.
func TestWhoWaitsForTheDiskWaitsInTheQueue(t *testing.T) {
	q := newQueue(2)
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	var jobs []*job
	for range 3 {
		jobs = append(jobs, &job{ctx: ctx, answer: newAnswer(ctx)})
	}
	if err := q.add(jobs[0]); err != nil {
		t.Fatal(err)
	}
	if j, _ := q.next(Background, false); j != jobs[0] {
		t.Fatal("the job cannot be taken out")
	}
	q.leave(jobs[0])
	if s := q.stats(); s.Queued != 1 || s.Active != 0 || q.fetching() != 1 {
		t.Errorf("away: got %d waiting, %d at work, want one that waits", s.Queued, s.Active)
	}
	if err := q.add(jobs[1]); err != nil {
		t.Fatal(err)
	}
	if err := q.add(jobs[2]); !errors.Is(err, ErrBusy) {
		t.Errorf("a third: got %v, want %v", err, ErrBusy)
	}
	q.back(jobs[0])
	if s := q.stats(); s.Queued != 2 || q.fetching() != 0 {
		t.Errorf("back: got %d waiting and %d away, want 2 and none", s.Queued, q.fetching())
	}
	if j, _ := q.next(Background, false); j != jobs[0] {
		t.Error("what was away does not come before those who came later")
	}
}
