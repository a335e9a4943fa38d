package plan

import (
	"cmp"
	"slices"
)

// Scratch of a plan lies in one piece of memory, in which buffers take each other's place as soon as nobody reads them any more: a chunk of
// 2,048 tokens of the full model holds a third of what its buffers add up to.
//
// What takes a place is a *life* of a buffer: from a level that writes all of it, reading none, to the last level that touches what was
// written. Two lives that share a level never share a byte, so the barriers between levels, which are derived before, are all that it
// needs.

// scratchAlign is the granularity of places: more than any kernel wants of an address.
const scratchAlign = 256

// life is one content of a scratch buffer.
type life struct {
	first, last int // levels
	off, len    int64
	args        []*Arg
}

// place gives each scratch argument its place and says how much memory that takes in all: the largest lives first, each as low as it fits.
func (p *Plan) place() {
	lives := p.lives()
	slices.SortStableFunc(lives, func(a, b *life) int { return cmp.Compare(b.len, a.len) })
	var placed []*life // by offset
	for _, l := range lives {
		for _, o := range placed {
			if o.first <= l.last && l.first <= o.last && o.off < l.off+l.len && l.off < o.off+o.len {
				l.off = aligned(o.off + o.len)
			}
		}
		at, _ := slices.BinarySearchFunc(placed, l.off, func(o *life, off int64) int { return cmp.Compare(o.off, off) })
		placed = slices.Insert(placed, at, l)
		p.ScratchBytes = max(p.ScratchBytes, aligned(l.off+l.len))
		for _, a := range l.args {
			a.At = l.off + a.Range.Off
		}
	}
}

func aligned(n int64) int64 { return (n + scratchAlign - 1) / scratchAlign * scratchAlign }

// lives lists the contents of all scratch buffers.
func (p *Plan) lives() []*life {
	var out []*life
	current := make([]*life, len(p.Buffers))
	for level := range p.Levels {
		lo, hi := p.At(level)
		written := map[BufferID]spans{} // by this level, in buffers that it does not read
		args := map[BufferID][]*Arg{}
		var order []BufferID
		for i := lo; i < hi; i++ {
			for j := range p.Dispatches[i].Args {
				a := &p.Dispatches[i].Args[j]
				b := a.Range.Buffer
				if p.Buffers[b].Class != Scratch {
					continue
				}
				if args[b] == nil {
					order = append(order, b)
					written[b] = spans{}
				}
				args[b] = append(args[b], a)
				if a.Access&Read != 0 {
					delete(written, b)
				} else if s, ok := written[b]; ok {
					written[b] = s.add(a.Range.Off, a.Range.Off+a.Range.Len)
				}
			}
		}
		for _, b := range order {
			s, only := written[b]
			if current[b] == nil || only && s.covers(0, p.Buffers[b].LenBytes) {
				current[b] = &life{first: level, len: p.Buffers[b].LenBytes}
				out = append(out, current[b])
			}
			l := current[b]
			l.last = level
			l.args = append(l.args, args[b]...)
		}
	}
	return out
}
