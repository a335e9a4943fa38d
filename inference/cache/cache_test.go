package cache

import (
	"slices"
	"testing"

	"pond/metal/host"
)

// fake drives a State as a model would: every token adds a row to "rows" and changes "sum", which cannot be rewound.
type fake struct {
	*Timeline
	t *testing.T
}

func newFake(t *testing.T, keep int) *fake {
	dev := host.Open(host.Exact, 1)
	t.Cleanup(func() { dev.Close() })
	s, err := NewState(dev, []Spec{{Name: "rows", LenBytes: 4 * 1000, RowBytes: 4}, {Name: "sum", LenBytes: 4}})
	if err != nil {
		t.Fatal(err)
	}
	return &fake{NewTimeline(s, keep), t}
}

func (f *fake) feed(ids ...int32) {
	for _, id := range ids {
		sum := f.State.Buffer("sum").U32()
		if f.State.Pos() == 0 {
			sum[0] = 0
		}
		f.State.Buffer("rows").U32()[f.State.Pos()] = uint32(id)
		sum[0] = sum[0]*31 + uint32(id)
		f.State.Advance(1)
		f.Append(id)
	}
}

// check compares the state with one that read the history from the start.
func (f *fake) check() {
	f.t.Helper()
	if f.State.Pos() != len(f.Tokens()) {
		f.t.Fatalf("position %d with a history of %d tokens", f.State.Pos(), len(f.Tokens()))
	}
	var sum uint32
	for i, id := range f.Tokens() {
		sum = sum*31 + uint32(id)
		if got := f.State.Buffer("rows").U32()[i]; got != uint32(id) {
			f.t.Fatalf("row %d: got %d, want %d", i, got, id)
		}
	}
	if got := f.State.Buffer("sum").U32()[0]; len(f.Tokens()) > 0 && got != sum {
		f.t.Fatalf("sum: got %d, want %d", got, sum)
	}
}

// prompt goes to a prompt as the engine does: rewind to what is usable, compute the rest, with marks.
func (f *fake) prompt(ids []int32, marks ...int) (cached int) {
	f.t.Helper()
	cached = f.Usable(ids)
	if err := f.Rewind(cached); err != nil {
		f.t.Fatal(err)
	}
	for i := cached; i < len(ids); i++ {
		f.feed(ids[i])
		if slices.Contains(marks, i+1) {
			f.Mark()
		}
	}
	f.check()
	return cached
}

func TestTimeline(t *testing.T) {
	f := newFake(t, 4)
	for _, c := range []struct {
		name   string
		prompt []int32
		marks  []int
		cached int
	}{
		{"cold", []int32{1, 2, 3, 4, 5, 6}, []int{2, 5}, 0},
		{"goes on", []int32{1, 2, 3, 4, 5, 6, 7}, nil, 6},
		{"the same again leaves one token to compute", []int32{1, 2, 3, 4, 5, 6, 7}, nil, 5},
		{"departs after a snapshot", []int32{1, 2, 3, 4, 5, 9, 9}, []int{6}, 5},
		{"departs between snapshots", []int32{1, 2, 3, 8, 8, 8}, []int{5}, 2},
		{"an older branch is gone: its rows were overwritten", []int32{1, 2, 3, 4, 5, 6}, nil, 2},
		{"a prefix", []int32{1, 2, 3}, nil, 2},
		{"nothing in common", []int32{4, 4}, nil, 0},
		{"and back", []int32{1, 2, 3, 4}, nil, 0},
	} {
		if got := f.prompt(c.prompt, c.marks...); got != c.cached {
			t.Errorf("%s: got %d cached tokens, want %d", c.name, got, c.cached)
		}
	}
}

// Beyond the limit the first snapshot, the system part, stays; the oldest of the others goes.
func TestMarkKeepsTheFirst(t *testing.T) {
	f := newFake(t, 3)
	f.prompt([]int32{1, 2, 3, 4, 5, 6, 7, 8}, 1, 2, 3, 4, 5)
	var at []int
	for _, s := range f.snapshots {
		at = append(at, s.Pos())
	}
	if want := []int{1, 4, 5}; !slices.Equal(at, want) {
		t.Errorf("got snapshots at %v, want %v", at, want)
	}
}

func TestRestoreRefusesStaleSnapshots(t *testing.T) {
	f := newFake(t, 8)
	f.feed(1, 2, 3, 4)
	four := f.State.Snapshot()
	f.feed(5, 6)
	six := f.State.Snapshot()
	if err := f.State.Restore(four); err != nil {
		t.Fatal(err)
	}
	if err := f.State.Restore(six); err == nil {
		t.Error("a snapshot ahead of the position: got no error")
	}
	f.State.Advance(2) // other rows stand there now
	if err := f.State.Restore(six); err == nil {
		t.Error("a snapshot whose rows were overwritten: got no error")
	}
	if err := f.State.Restore(four); err != nil {
		t.Error("a snapshot whose rows still stand: ", err)
	}
	f.State.Reset()
	f.State.Advance(10)
	if err := f.State.Restore(four); err == nil {
		t.Error("a snapshot from before a reset: got no error")
	}
}

// A random walk of prompts always ends in the state that a cold run would have.
func TestTimelineRandomWalk(t *testing.T) {
	f := newFake(t, 3)
	x := uint64(1)
	rnd := func(n int) int {
		x = x*6364136223846793005 + 1442695040888963407
		return int(x>>33) % n
	}
	cur := []int32{1}
	for range 2000 {
		cur = slices.Clone(cur[:1+rnd(len(cur))])
		for range 1 + rnd(12) {
			cur = append(cur, int32(rnd(3)))
		}
		if len(cur) > 200 {
			cur = cur[:20]
		}
		f.prompt(cur, 1+rnd(len(cur)), len(cur)/2)
	}
}
