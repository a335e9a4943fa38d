package cache

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pond/metal"
	"pond/metal/host"
)

// fake drives a State as a model would: every token adds a row to "rows" and changes "sum", which cannot be rewound.
type fake struct {
	*State
	tokens []int32
	t      *testing.T
}

func newDevice(t *testing.T) metal.Device {
	dev := host.Open(host.Exact, 1)
	t.Cleanup(func() { dev.Close() })
	return dev
}

func fakeSpecs() []Spec {
	return []Spec{{Name: "rows", LenBytes: 4 * 1000, RowBytes: 4}, {Name: "sum", LenBytes: 4}}
}

func newFake(t *testing.T, dev metal.Device) *fake {
	s, err := NewState(dev, fakeSpecs())
	if err != nil {
		t.Fatal(err)
	}
	return &fake{State: s, t: t}
}

func (f *fake) feed(ids ...int32) {
	for _, id := range ids {
		if err := f.Grow(f.Pos() + 1); err != nil {
			f.t.Fatal(err)
		}
		sum := f.Buffer("sum").U32()
		if f.Pos() == 0 {
			sum[0] = 0
		}
		f.Buffer("rows").U32()[f.Pos()] = uint32(id)
		sum[0] = sum[0]*31 + uint32(id)
		f.Advance(1)
		f.tokens = append(f.tokens, id)
	}
}

// check compares the state with one that read the tokens from the start.
func (f *fake) check() {
	f.t.Helper()
	if f.Pos() != len(f.tokens) {
		f.t.Fatalf("position %d with %d tokens", f.Pos(), len(f.tokens))
	}
	var sum uint32
	for i, id := range f.tokens {
		sum = sum*31 + uint32(id)
		if got := f.Buffer("rows").U32()[i]; got != uint32(id) {
			f.t.Fatalf("row %d of %d: got %d, want %d", i, f.Pos(), got, id)
		}
	}
	if got := f.Buffer("sum").U32()[0]; len(f.tokens) > 0 && got != sum {
		f.t.Fatalf("sum: got %d, want %d", got, sum)
	}
}

// start goes to the longest kept beginning of a prompt.
func (f *fake) start(s *Store, prompt []int32) (cached int) {
	f.t.Helper()
	s.Release(f.Base())
	c := s.Find(prompt, len(prompt)-1)
	if c == nil {
		f.Reset()
		f.tokens = nil
		return 0
	}
	if err := f.Restore(c); err != nil {
		f.t.Fatal(err)
	}
	s.Hold(f.Base())
	f.tokens = slices.Clone(prompt[:c.Pos()])
	f.check()
	return c.Pos()
}

// mark keeps a snapshot where the state stands.
func (f *fake) mark(s *Store) bool {
	before := f.Base()
	kept := s.Keep(f.tokens, f.Snapshot())
	s.Hold(f.Base())
	s.Release(before)
	return kept
}

func (f *fake) prompt(s *Store, ids []int32, marks ...int) (cached int) {
	f.t.Helper()
	cached = f.start(s, ids)
	for i := cached; i < len(ids); i++ {
		f.feed(ids[i])
		if slices.Contains(marks, i+1) {
			f.mark(s)
		}
	}
	f.check()
	return cached
}

func TestPromptsReuseWhatTheyShare(t *testing.T) {
	dev := newDevice(t)
	store := NewStore(1 << 20)
	two := []*fake{newFake(t, dev), newFake(t, dev)}
	for i, c := range []struct {
		name   string
		prompt []int32
		marks  []int
		cached int
	}{
		{"cold", []int32{1, 2, 3, 4, 5, 6}, []int{2, 5, 6}, 0},
		{"goes on", []int32{1, 2, 3, 4, 5, 6, 7}, nil, 6},
		{"the same again leaves one token to compute", []int32{1, 2, 3, 4, 5, 6}, nil, 5},
		{"departs after a snapshot", []int32{1, 2, 3, 4, 5, 9, 9}, []int{6}, 5},
		{"departs between snapshots", []int32{1, 2, 3, 8, 8, 8}, []int{5}, 2},
		{"an older branch is still there", []int32{1, 2, 3, 4, 5, 6}, nil, 5},
		{"a prefix", []int32{1, 2, 3}, nil, 2},
		{"nothing in common", []int32{4, 4}, nil, 0},
		{"and back", []int32{1, 2, 3, 4}, nil, 2},
	} {
		if got := two[i%2].prompt(store, c.prompt, c.marks...); got != c.cached {
			t.Errorf("%s: got %d cached tokens, want %d", c.name, got, c.cached)
		}
	}
}

func TestRestoreIsWholeOrNothing(t *testing.T) {
	dev := newDevice(t)
	f := newFake(t, dev)
	f.feed(1, 2, 3)
	good := f.Snapshot()
	f.feed(4)
	later := f.Snapshot()
	for name, c := range map[string]*Snapshot{
		"without its states":      {pos: 3, states: make([][]byte, 2), rows: good.rows},
		"rows of another length":  {pos: 4, states: good.states, rows: good.rows},
		"the end of a chain only": {pos: 4, states: good.states, rows: &Rows{From: 3, To: 4, data: later.rows.data}},
		"of other buffers":        {pos: 3, states: good.states[:1], rows: good.rows},
	} {
		if err := f.Restore(c); err == nil {
			t.Errorf("a snapshot %s: got no error", name)
		}
		f.check()
	}
	if err := f.Restore(good); err != nil {
		t.Fatal(err)
	}
	f.tokens = f.tokens[:3]
	f.feed(9, 9)
	f.check()
	if err := f.Restore(later); err != nil {
		t.Fatal(err)
	}
	f.tokens = []int32{1, 2, 3, 4}
	f.check()
}

// recount adds up what a store holds by a walk.
func recount(s *Store, work ...*fake) int64 {
	n := s.index.TokenBytes()
	seen := map[*Rows]bool{}
	rows := func(r *Rows) {
		for ; r != nil && !seen[r]; r = r.Prev {
			seen[r] = true
			n += r.LenBytes()
		}
	}
	for _, k := range s.index.All() {
		n += k.Value.StateBytes()
		rows(k.Value.rows)
	}
	for _, f := range work {
		rows(f.Base())
	}
	return n
}

// A random walk of prompts over sequences that come and go: every state is what a cold run would have, every byte is counted, and the budget
// holds but for what is at work.
func TestStoreRandomWalk(t *testing.T) {
	dev := newDevice(t)
	rnd := rand.New(rand.NewPCG(5, 1))
	store := NewStore(3000)
	at := []*fake{newFake(t, dev), newFake(t, dev), newFake(t, dev)}
	cur := []int32{1}
	cached := 0
	for i := range 5000 {
		cur = slices.Clone(cur[:1+rnd.IntN(len(cur))])
		for range 1 + rnd.IntN(12) {
			cur = append(cur, int32(rnd.IntN(3)))
		}
		if len(cur) > 200 {
			cur = cur[:20]
		}
		f := at[rnd.IntN(len(at))]
		cached += f.prompt(store, cur, 1+rnd.IntN(len(cur)), len(cur)/2, len(cur))
		switch rnd.IntN(50) {
		case 0:
			store.Clear()
		case 1:
			store.SetBudget(int64(1000 + rnd.IntN(4000)))
		case 2, 3, 4:
			store.Release(f.Base())
			f.Rest()
		}
		if got, want := store.LenBytes(), recount(store, at...); got != want {
			t.Fatalf("step %d: got %d bytes, want %d", i, got, want)
		}
		if store.LenBytes() > max(store.budget, store.AtWork()+store.index.TokenBytes()) {
			t.Fatalf("step %d: got %d bytes, want at most %d", i, store.LenBytes(), store.budget)
		}
	}
	for _, f := range at {
		store.Release(f.Base())
	}
	store.Clear()
	if store.LenBytes() != 0 || store.rows != 0 || cached < 20_000 {
		t.Errorf("got %d bytes after everything went, and %d tokens reused, want none and many", store.LenBytes(), cached)
	}
}

// What saves most for its bytes stays: the part that every conversation shares outlives the ends of old ones (case 27).
func TestStoreKeepsWhatIsWorthMost(t *testing.T) {
	dev := newDevice(t)
	store := NewStore(3 * 4 * 150)
	f := newFake(t, dev)
	shared := make([]int32, 100)
	for i := range 60 {
		prompt := append(slices.Clone(shared), int32(i+1), 1, 2, 3)
		if cached := f.prompt(store, prompt, 100, len(prompt)-1); i > 0 && cached != 100 {
			t.Fatalf("prompt %d: got %d tokens reused, want the shared 100", i, cached)
		}
		if store.LenBytes() > store.budget {
			t.Fatalf("prompt %d: got %d bytes, want at most %d", i, store.LenBytes(), store.budget)
		}
	}
	if n := store.Snapshots(); n < 5 || n > 59 {
		t.Errorf("got %d kept, want as many as fit", n)
	}
}
