package sample

import (
	"math/rand/v2"
	"testing"
)

func repeats(ids []int32) bool {
	var r Repeats
	found := false
	for _, id := range ids {
		found = r.Accept(id)
	}
	return found
}

// Case 32: reasoning that goes in circles is noticed, long passages too; prose, lists and a few rows that are alike are not.
func TestRepeats(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	random := func(n int) (out []int32) {
		for range n {
			out = append(out, rnd.Int32N(5000))
		}
		return out
	}
	rounds := func(passage []int32, n int) (out []int32) {
		for range n {
			out = append(out, passage...)
		}
		return out
	}
	list := random(0)
	for i := range int32(60) { // "- item 17\n"
		list = append(list, 1, 2, 3, 100+i, 4)
	}
	for name, c := range map[string]struct {
		ids  []int32
		want bool
	}{
		"one token":             {rounds([]int32{7}, 200), true},
		"one token, briefly":    {rounds([]int32{7}, 60), false},
		"a sentence":            {append(random(500), rounds(random(20), 8)...), true},
		"a long passage":        {append(random(3000), rounds(random(240), 5)...), true},
		"a passage three times": {append(random(500), rounds(random(64), 3)...), false},
		"prose":                 {random(4000), false},
		"a list":                {list, false},
		"it has got out of it":  {append(rounds(random(20), 20), random(32)...), false},
	} {
		if got := repeats(c.ids); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
