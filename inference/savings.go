package inference

import (
	"fmt"
	"time"

	"pond/inference/checkpoint/disk"
)

// savings are what reused tokens spared on one day. They outlive the engine beside the conversations on the disk: a model that rests, and a
// restart, do not end the day. A file of it holds counts, and nothing that was said.
type savings struct {
	Day    string        `json:"day"` // by the machine's own calendar
	Reused int64         `json:"reused_tokens"`
	Spent  time.Duration `json:"spent_ns"` // on bringing them back
	Long   pace          `json:"long_chunks"`
	Short  pace          `json:"short_chunks"`
}

// pace is how long it took to take in tokens.
type pace struct {
	Tokens int64         `json:"tokens"`
	Took   time.Duration `json:"took_ns"`
}

// paceTokens is how much a pace remembers: a machine that became quiet, or slower, shows within as many tokens.
const paceTokens = 1 << 17

func (p *pace) add(tokens int, took time.Duration) {
	if p.Tokens += int64(tokens); p.Tokens > paceTokens {
		p.Tokens, p.Took = p.Tokens/2, p.Took/2
	}
	p.Took += took
}

// computed notes a chunk of a prompt. What was reused would have been taken in by whole chunks: those count, and short ones, which take far
// longer for a token, only until there is one that has at least half the length.
func (s *savings) computed(tokens int, took time.Duration, chunk int) {
	if 2*tokens >= chunk {
		s.Long.add(tokens, took)
	} else {
		s.Short.add(tokens, took)
	}
}

// reused notes what a prompt did not compute, and the time for that.
func (s *savings) reused(day string, tokens int, took time.Duration) {
	if day != s.Day {
		s.Day, s.Reused, s.Spent = day, 0, 0
	}
	s.Reused += int64(tokens)
	s.Spent += took
}

// on is what was spared on a day. A pace that is found later counts for all of it.
func (s *savings) on(day string) time.Duration {
	p := s.Long
	if p.Tokens == 0 {
		p = s.Short
	}
	if day != s.Day || p.Tokens == 0 {
		return 0
	}
	return max(0, time.Duration(float64(s.Reused)*float64(p.Took)/float64(p.Tokens))-s.Spent)
}

// valid reports what cannot have been noted.
func (s *savings) valid() error {
	for _, n := range []int64{s.Reused, int64(s.Spent), s.Long.Tokens, int64(s.Long.Took), s.Short.Tokens, int64(s.Short.Took)} {
		if n < 0 {
			return fmt.Errorf("savings: got %d, want 0 or more", n)
		}
	}
	return nil
}

// readSavings reads what writeSavings wrote; what is not there is nothing, and what is damaged an error.
func readSavings(file string) (savings, error) {
	var s savings
	err := disk.ReadRecord(file, &s)
	if err == nil {
		err = s.valid()
	}
	if err != nil {
		return savings{}, err
	}
	return s, nil
}

func writeSavings(file string, s savings) error { return disk.WriteRecord(file, s) }
