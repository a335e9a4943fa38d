package cache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// plainIndex is what the tree must equal: a list.
type plainIndex struct {
	entries map[string][]int32
}

func (p *plainIndex) longest(prompt []int32, limit int) (string, int) {
	best, length := "", -1
	for key, tokens := range p.entries {
		if n := len(tokens); n <= min(limit, len(prompt)) && n > length && slices.Equal(tokens, prompt[:n]) {
			best, length = key, n
		}
	}
	return best, length
}

// checkIndex verifies the invariants by a walk.
func checkIndex(t *testing.T, x *Index[string], p *plainIndex) {
	t.Helper()
	tokens, kept := 0, 0
	var walk func(b *branch[string], path []int32)
	walk = func(b *branch[string], path []int32) {
		path = slices.Concat(path, b.tokens)
		tokens += len(b.tokens)
		if b.kept != nil {
			kept++
			if b.kept.Tokens != len(path) || !slices.Equal(b.kept.Sequence(), path) || b.kept.at != b || !slices.Equal(p.entries[b.kept.Value], path) {
				t.Fatalf("got %q at %v, want it at %v", b.kept.Value, path, p.entries[b.kept.Value])
			}
		} else if b != x.root && len(b.children) < 2 {
			t.Fatalf("got a node at %v with %d children and nothing kept", path, len(b.children))
		}
		for first, c := range b.children {
			if len(c.tokens) == 0 || c.tokens[0] != first || c.parent != b {
				t.Fatalf("got a child %v under %d", c.tokens, first)
			}
			walk(c, path)
		}
	}
	walk(x.root, nil)
	if tokens != x.tokens || kept != len(p.entries) {
		t.Fatalf("got %d tokens and %d entries, want %d and %d", x.tokens, kept, tokens, len(p.entries))
	}
}

// Random timelines of extending, branching, editing and forgetting: the tree finds what a search through a list finds.
func TestIndexAgainstAList(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 1))
	p := &plainIndex{entries: map[string][]int32{}}
	x := NewIndex[string]()
	prompt := []int32{1}
	for i := range 10_000 {
		switch rnd.IntN(12) {
		case 0: // another conversation
			prompt = []int32{int32(rnd.IntN(3))}
		case 1, 2: // edit
			prompt = slices.Clone(prompt[:rnd.IntN(len(prompt)+1)])
		default:
			for range rnd.IntN(8) {
				prompt = append(slices.Clip(prompt), int32(rnd.IntN(3)))
			}
		}
		if len(prompt) > 120 {
			prompt = prompt[:40]
		}
		limit := max(0, len(prompt)-rnd.IntN(2))
		want, length := p.longest(prompt, limit)
		if got := x.Get(prompt, limit); (got == nil) != (length < 0) || got != nil && (got.Value != want || got.Tokens != length) {
			t.Fatalf("step %d: got %+v, want %q of %d tokens", i, got, want, length)
		}
		common := 0
		for _, tokens := range p.entries {
			common = max(common, Common(tokens, prompt))
		}
		if got, _ := x.Departs(prompt); got != common {
			t.Fatalf("step %d: got %d tokens in common, want %d", i, got, common)
		}
		if rnd.IntN(3) == 0 {
			value := fmt.Sprint(i)
			if _, old := x.Put(prompt, value); old != nil {
				delete(p.entries, *old)
			}
			p.entries[value] = slices.Clone(prompt)
		}
		for len(p.entries) > 40 || len(p.entries) > 0 && rnd.IntN(30) == 0 {
			k := x.Least(nil, func(string) int64 { return 100 })
			delete(p.entries, k.Value)
			x.Remove(k)
		}
		checkIndex(t, x, p)
	}
}
