package fetch

import (
	"math/rand/v2"
	"testing"
)

// TestExtents compares the set with a plain list of bytes.
func TestExtents(t *testing.T) {
	const size = 60
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var s extents
		var plain [size]bool
		for step := range 60 {
			from := rng.Int64N(size)
			to := from + rng.Int64N(size-from+1)
			if on := rng.IntN(3) > 0; on {
				s.add(from, to)
				for i := from; i < to; i++ {
					plain[i] = true
				}
			} else {
				s.remove(from, to)
				for i := from; i < to; i++ {
					plain[i] = false
				}
			}
			var n int64
			for i, e := range s {
				if e.from >= e.to || i > 0 && s[i-1].to >= e.from {
					t.Fatalf("seed %d step %d: got %v, want disjoint extents that do not touch", seed, step, s)
				}
			}
			for i, in := range plain {
				if in {
					n++
				}
				if got := s.reach(int64(i)) > int64(i); got != in {
					t.Fatalf("seed %d step %d: byte %d: got %v, want %v in %v", seed, step, i, got, in, s)
				}
			}
			if s.bytes() != n {
				t.Fatalf("seed %d step %d: got %d bytes, want %d", seed, step, s.bytes(), n)
			}
			at, limit := rng.Int64N(size), 1+rng.Int64N(size)
			want := extent{at, at}
			for want.from < size && plain[want.from] {
				want.from++
			}
			for want.to = want.from; want.to < size && !plain[want.to] && want.to-want.from < limit; {
				want.to++
			}
			if got := s.gap(at, size, limit); got.to-got.from != want.to-want.from || got.to > got.from && got != want {
				t.Fatalf("seed %d step %d: gap(%d, %d): got %v, want %v in %v", seed, step, at, limit, got, want, s)
			}
		}
	}
}
