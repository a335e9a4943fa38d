//go:build !darwin

package inference

import (
	"context"
	"slices"
	"testing"

	"pond/inference/ablate"
)

// TestMeasureLooksAhead: a measurement goes the way of answers, one step ahead where the device has begun it, gives the tokens that steps one after
// the other give, and leaves nothing behind that the next answer would meet.
func TestMeasureLooksAhead(t *testing.T) {
	prompt := []int32{1, 40, 7, 99, 3, 200, 18}
	const intervals = 6
	measured := func(t *testing.T, o Options) (m Measurement) {
		e, _ := openStandin(t, o) // one at a time in a process, so each in a test of its own
		g := Generation{MaxTokens: 6, Sampling: seeded(3)}
		before := ask(t, e, user("hello"), g)
		var err error
		if m, err = e.Measure(context.Background(), prompt, intervals); err != nil {
			t.Fatal(err)
		}
		if len(m.Intervals) != intervals || len(m.Tokens) != intervals+1 || !(m.Prefill > 0) {
			t.Errorf("got %d intervals, %d tokens, prefill of %s; want %d, %d and a time", len(m.Intervals), len(m.Tokens), m.Prefill, intervals, intervals+1)
		}
		if after := ask(t, e, user("hello"), g); after.Answer.Content != before.Answer.Content {
			t.Errorf("after a measurement: got %q, want %q", after.Answer.Content, before.Answer.Content)
		}
		return m
	}
	var ahead, one Measurement
	t.Run("ahead", func(t *testing.T) { ahead = measured(t, Options{}) })
	off, err := ablate.Parse("device-token")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("one after the other", func(t *testing.T) { one = measured(t, Options{Ablate: off}) })
	if !slices.Equal(ahead.Tokens, one.Tokens) {
		t.Errorf("got %v one step ahead, want %v", ahead.Tokens, one.Tokens)
	}
	if !slices.Equal(off.Acted(), []ablate.Switch{ablate.DeviceToken}) {
		t.Errorf("got %v that acted, want device-token: nothing was measured ahead", off.Acted())
	}
}
