package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// run plays a plan on its scratch memory, a tag a byte: what a dispatch writes is its own, and it must find what was last written where it
// reads.
func run(t *testing.T, p *Plan) {
	t.Helper()
	memory := make([]int32, p.ScratchBytes)
	own := make([][]int32, len(p.Buffers)) // the same with a place for each buffer
	for i, b := range p.Buffers {
		own[i] = make([]int32, b.LenBytes)
	}
	each := func(level int, want Access, f func(i int, at, apart []int32)) {
		lo, hi := p.At(level)
		for i := lo; i < hi; i++ {
			for _, a := range p.Dispatches[i].Args {
				if p.Buffers[a.Range.Buffer].Class == Scratch && a.Access&want != 0 {
					f(i, memory[a.At:a.At+a.Range.Len], own[a.Range.Buffer][a.Range.Off:a.Range.Off+a.Range.Len])
				}
			}
		}
	}
	for level := range p.Levels {
		// All of a level's writes before all of its reads, and the other way round: its dispatches run in any order.
		check := func(i int, at, apart []int32) {
			for j := range at {
				if at[j] != apart[j] {
					t.Fatalf("level %d: dispatch %s finds byte %d of dispatch %d, want %d's", level, p.Dispatches[i].Name, j, at[j]-1, apart[j]-1)
				}
			}
		}
		each(level, Read, check)
		each(level, Write, func(i int, at, apart []int32) {
			for j := range at {
				at[j], apart[j] = int32(i+1), int32(i+1)
			}
		})
		each(level, Read|Write, check)
	}
}

// TestScratchInOnePiece: in plans made at random every dispatch finds what it would find if no two buffers shared a byte.
func TestScratchInOnePiece(t *testing.T) {
	var held, sum int64
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 5))
		b := New("random")
		out := b.Buffer("out", Output, F32, 1)
		var bufs []Range
		for i := range 8 {
			bufs = append(bufs, b.Buffer(fmt.Sprint("b", i), Scratch, F32, 8*(1+r.IntN(40))))
		}
		written := map[BufferID]bool{}
		for i := range 40 {
			var reads, writes []Range
			perm := r.Perm(len(bufs))
			for _, j := range perm[:2] {
				if w := bufs[j]; written[w.Buffer] {
					reads = append(reads, w.Part(r.IntN(4), 4, F32))
				}
			}
			w := bufs[perm[2]]
			if written[w.Buffer] && r.IntN(3) == 0 { // a part of it stays what it was
				w = w.Part(4, 4, F32)
			}
			written[w.Buffer] = true
			writes = append(writes, w)
			step(b, fmt.Sprint("d", i), reads, writes)
		}
		for _, w := range bufs {
			if written[w.Buffer] {
				step(b, fmt.Sprint("last", w.Buffer), []Range{w}, []Range{out})
			} else {
				step(b, fmt.Sprint("fill", w.Buffer), nil, []Range{w})
				step(b, fmt.Sprint("last", w.Buffer), []Range{w}, []Range{out})
			}
		}
		p := build(t, b)
		run(t, p)
		held += p.ScratchBytes
		for _, w := range bufs {
			sum += aligned(w.Len)
		}
	}
	if held > sum {
		t.Errorf("got %d bytes held, want at most the %d of all buffers", held, sum)
	}
}

// TestScratchOfAChain: a chain of buffers of one size needs two of them, however long it is, and the same two when names come again.
func TestScratchOfAChain(t *testing.T) {
	b := New("chain")
	last := b.Buffer("b0", Scratch, F32, 64)
	step(b, "d0", nil, []Range{last})
	for i := 1; i < 9; i++ {
		next := b.Buffer(fmt.Sprint("b", i%5), Scratch, F32, 64)
		step(b, fmt.Sprint("d", i), []Range{last}, []Range{next})
		last = next
	}
	step(b, "end", []Range{last}, []Range{b.Buffer("out", Output, F32, 1)})
	p := build(t, b)
	run(t, p)
	if p.ScratchBytes != 512 {
		t.Errorf("got %d bytes, want two buffers of 256", p.ScratchBytes)
	}
}
