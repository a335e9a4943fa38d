package sample

import (
	"math"
	"slices"
	"testing"
)

func maskOf(vocab int, ids ...int32) []uint64 {
	m := make([]uint64, (vocab+63)/64)
	for _, id := range ids {
		m[id/64] |= 1 << (id % 64)
	}
	return m
}

// A mask leaves the others no chance, neither by chance nor by bias, and the log-probabilities add up over what it allows.
func TestNextAmong(t *testing.T) {
	const vocab = 150 // not a whole number of words
	logits := make([]float32, vocab+10)
	for i := range logits {
		logits[i] = float32(i%17) / 4
	}
	logits[3] = 50
	given := slices.Clone(logits)
	allowed := []int32{0, 63, 64, 149}
	s, err := New(Params{Temperature: 3, Bias: map[int32]float64{3: 100, 64: -100}, Seed: 5}, vocab, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int32]int{}
	for pos := range 400 {
		c, err := s.NextAmong(logits, maskOf(vocab, allowed...), pos, 5)
		if err != nil {
			t.Fatal(err)
		}
		seen[c.ID]++
		sum := 0.0
		for _, x := range c.Top[:4] {
			sum += math.Exp(x.Logprob)
		}
		if math.Abs(sum-1) > 1e-6 || !math.IsInf(c.Top[4].Logprob, -1) {
			t.Fatalf("got alternatives %v, want four that add up to 1, then one of no chance", c.Top)
		}
	}
	if seen[0] == 0 || seen[63] == 0 || seen[149] == 0 || seen[0]+seen[63]+seen[64]+seen[149] != 400 {
		t.Errorf("got %v, want only the tokens %v", seen, allowed)
	}
	if !slices.Equal(logits, given) {
		t.Error("the logits were changed")
	}
	if c, err := s.NextAmong(logits, maskOf(vocab, 77), 0, -1); err != nil || c.ID != 77 {
		t.Errorf("one token allowed: got %d, %v", c.ID, err)
	}
	if _, err := s.NextAmong(logits, maskOf(vocab), 0, -1); err == nil {
		t.Error("no token allowed: got no error")
	}
	if _, err := s.NextAmong(logits, make([]uint64, 2), 0, -1); err == nil {
		t.Error("a mask of 128 of 150 tokens: got no error")
	}
}

// A token that was not drawn is reported with what the model thought of it.
func TestGiven(t *testing.T) {
	logits := []float32{1, 2, 3, 4}
	s, err := New(Params{Temperature: 1, Frequency: 1, Seed: 1}, 4, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Accept(3)
	got, err := s.Given(logits, 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	norm := math.Log(math.Exp(1) + math.Exp(2) + 2*math.Exp(3)) // the fourth lost 1 to the penalty
	if got.ID != 0 || math.Abs(got.Logprob-(1-norm)) > 1e-6 || len(got.Top) != 2 || got.Top[0].ID != 2 || got.Top[1].ID != 3 {
		t.Errorf("got %+v, want token 0 at %v and the alternatives 2 and 3", got, 1-norm)
	}
	if _, err := s.Given(logits, 4, 0); err == nil {
		t.Error("a token beyond the vocabulary: got no error")
	}
}
