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
	var used int64
	kept := 0
	var walk func(b *branch[string], path []int32)
	walk = func(b *branch[string], path []int32) {
		path = slices.Concat(path, b.tokens)
		used += tokenBytes * int64(len(b.tokens))
		if b.kept != nil {
			kept++
			used += b.kept.Bytes
			if b.kept.Tokens != len(path) || b.kept.at != b || !slices.Equal(p.entries[b.kept.Value], path) {
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
	if used != x.used || kept != len(p.entries) {
		t.Fatalf("got %d bytes and %d entries, want %d and %d", x.used, kept, used, len(p.entries))
	}
}

// Random timelines of extending, branching, editing, holding and shrinking: the tree finds what a search through a list finds, frees each value
// once, and keeps to its budget.
func TestIndexAgainstAList(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 1))
	p := &plainIndex{entries: map[string][]int32{}}
	x := NewIndex(4000, func(v string) {
		if _, ok := p.entries[v]; !ok {
			t.Fatalf("%q was dropped twice", v)
		}
		delete(p.entries, v)
	})
	var held []*Kept[string]
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
		switch got := x.Get(prompt, limit); {
		case (got == nil) != (length < 0), got != nil && (got.Value != want || got.Tokens != length):
			t.Fatalf("step %d: got %+v, want %q of %d tokens", i, got, want, length)
		case got != nil && rnd.IntN(20) == 0 && len(held) < 3:
			x.Hold(got)
			held = append(held, got)
		}
		common := 0
		for _, tokens := range p.entries {
			common = max(common, Common(tokens, prompt))
		}
		if got := x.Common(prompt); got != common {
			t.Fatalf("step %d: got %d tokens in common, want %d", i, got, common)
		}
		if rnd.IntN(3) == 0 {
			value := fmt.Sprint(i)
			p.entries[value] = slices.Clone(prompt)
			x.Put(prompt, value, int64(50+rnd.IntN(400)))
		}
		switch rnd.IntN(40) {
		case 0:
			x.SetBudget(int64(1500 + rnd.IntN(4000)))
		case 1:
			if len(held) > 0 {
				x.Release(held[0])
				held = held[1:]
			}
		case 2:
			if rnd.IntN(20) == 0 {
				x.Clear()
				if len(p.entries) != len(slices.Compact(held)) && len(held) == 0 {
					t.Fatalf("step %d: got %d entries after Clear", i, len(p.entries))
				}
			}
		}
		for _, k := range held {
			if p.entries[k.Value] == nil {
				t.Fatalf("step %d: %q was dropped while it was held", i, k.Value)
			}
		}
		if x.Used() > x.budget && len(held) == 0 {
			t.Fatalf("step %d: got %d bytes, want at most %d", i, x.Used(), x.budget)
		}
		checkIndex(t, x, p)
	}
}

// What saves most for its bytes stays: the part that every conversation shares outlives the ends of old ones (case 27).
func TestIndexKeepsWhatIsWorthMost(t *testing.T) {
	x := NewIndex[string](10*1000+4*3000, nil)
	shared := make([]int32, 1500)
	if !x.Put(shared, "system", 1000) {
		t.Fatal("got no room in an empty index")
	}
	for i := range 60 {
		prompt := append(slices.Clone(shared), int32(i+1))
		if got := x.Get(prompt, len(prompt)-1); got == nil || got.Value != "system" {
			t.Fatalf("prompt %d: got %+v, want the shared part", i, got)
		}
		if !x.Put(append(prompt, make([]int32, 20)...), fmt.Sprint(i), 1000) {
			t.Fatalf("prompt %d was not kept", i)
		}
	}
	all := x.All()
	if n := len(all); n < 10 || n > 20 || all[0].Value != "59" || all[1].Value != "system" || all[2].Value != "58" {
		t.Errorf("got %d kept, the latest %q and %q; want as many as fit, the shared part and the last prompts among them", n, all[0].Value, all[1].Value)
	}
	if x.Put(shared[:700], "too large", 1<<20) {
		t.Error("got something kept that is larger than the budget")
	}
	if n := len(x.All()); n != len(all) {
		t.Errorf("got %d kept, want the %d that were there before", n, len(all))
	}
}
