package plan

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// step adds a dispatch that reads and writes whole buffers.
func step(b *Builder, name string, reads, writes []Range) {
	d := Dispatch{Name: name, Kernel: "k", Items: 1}
	for _, r := range reads {
		d.Args = append(d.Args, Arg{Param: "in", Range: r, Access: Read})
	}
	for _, r := range writes {
		d.Args = append(d.Args, Arg{Param: "out", Range: r, Access: Write})
	}
	b.Add(d)
}

func build(t *testing.T, b *Builder) *Plan {
	t.Helper()
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func levels(p *Plan) string {
	var out []string
	for l := range p.Levels {
		lo, hi := p.At(l)
		var names []string
		for _, d := range p.Dispatches[lo:hi] {
			names = append(names, d.Name)
		}
		out = append(out, strings.Join(names, "+"))
	}
	return strings.Join(out, " | ")
}

func TestLevels(t *testing.T) {
	type bufs struct{ in, a, b, c, out Range }
	for _, c := range []struct {
		name, want string
		add        func(p *Builder, x bufs)
	}{
		{"read after write", "p | q", func(p *Builder, x bufs) {
			step(p, "p", []Range{x.in}, []Range{x.a})
			step(p, "q", []Range{x.a}, []Range{x.out})
		}},
		{"independent dispatches share a level", "p+q | r", func(p *Builder, x bufs) {
			step(p, "p", []Range{x.in}, []Range{x.a})
			step(p, "q", []Range{x.in}, []Range{x.b})
			step(p, "r", []Range{x.a, x.b}, []Range{x.out})
		}},
		{"write after read", "p | q | r | s", func(p *Builder, x bufs) {
			step(p, "p", []Range{x.in}, []Range{x.a})
			step(p, "q", []Range{x.a}, []Range{x.b})
			step(p, "r", []Range{x.in}, []Range{x.a})
			step(p, "s", []Range{x.a, x.b}, []Range{x.out})
		}},
		{"write after write", "p | q | r", func(p *Builder, x bufs) {
			step(p, "p", []Range{x.in}, []Range{x.a})
			step(p, "q", []Range{x.in}, []Range{x.a})
			step(p, "r", []Range{x.a}, []Range{x.out})
		}},
		{"disjoint halves do not conflict", "p+q | r", func(p *Builder, x bufs) {
			step(p, "p", []Range{x.in}, []Range{x.a.Part(0, 4, F32)})
			step(p, "q", []Range{x.in}, []Range{x.a.Part(4, 4, F32)})
			step(p, "r", []Range{x.a}, []Range{x.out})
		}},
		{"one byte of overlap does", "p | q | r", func(p *Builder, x bufs) {
			step(p, "p", []Range{x.in}, []Range{{Buffer: x.a.Buffer, Len: 17}})
			step(p, "q", []Range{x.in}, []Range{{Buffer: x.a.Buffer, Off: 16, Len: 16}})
			step(p, "r", []Range{x.a}, []Range{x.out})
		}},
		{"a later dispatch moves ahead only past what it does not touch", "p+r | q | s", func(p *Builder, x bufs) {
			step(p, "p", []Range{x.in}, []Range{x.a})
			step(p, "q", []Range{x.a}, []Range{x.b})
			step(p, "r", []Range{x.in}, []Range{x.c})
			step(p, "s", []Range{x.b, x.c}, []Range{x.out})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := New("test")
			c.add(b, bufs{b.Buffer("in", Input, F32, 8), b.Buffer("a", Scratch, F32, 8), b.Buffer("b", Scratch, F32, 8), b.Buffer("c", Scratch, F32, 8), b.Buffer("out", Output, F32, 8)})
			var kept []Buffer // buffers that the case does not use would fail the check
			used := map[BufferID]bool{}
			for _, d := range b.dispatches {
				for _, a := range d.Args {
					used[a.Range.Buffer] = true
				}
			}
			for i, buf := range b.buffers {
				if !used[BufferID(i)] {
					buf.Class = State
				}
				kept = append(kept, buf)
			}
			b.buffers = kept
			if got := levels(build(t, b)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestChecks(t *testing.T) {
	for _, c := range []struct {
		want string // part of the error
		add  func(b *Builder)
	}{
		{"before they are written", func(b *Builder) {
			step(b, "p", []Range{b.Buffer("a", Scratch, F32, 4)}, []Range{b.Buffer("o", Output, F32, 4)})
		}},
		{"reads bytes [0, 16) of a before they are written", func(b *Builder) {
			a := b.Buffer("a", Scratch, F32, 4)
			step(b, "p", nil, []Range{a.Part(0, 3, F32)})
			step(b, "q", []Range{a}, []Range{b.Buffer("o", Output, F32, 4)})
		}},
		{"overlap in s and one is written", func(b *Builder) {
			s := b.Buffer("s", State, F32, 4)
			step(b, "p", []Range{s}, []Range{s.Part(3, 1, F32)})
		}},
		{"p: out writes w, a weight", func(b *Builder) { step(b, "p", nil, []Range{b.Buffer("w", Weight, F32, 4)}) }},
		{"p: out writes i, a input", func(b *Builder) { step(b, "p", nil, []Range{b.Buffer("i", Input, F32, 4)}) }},
		{"got bytes [12, 20) of s, want inside [0, 16)", func(b *Builder) {
			step(b, "p", []Range{b.Buffer("s", State, F32, 4).Part(3, 2, F32)}, nil)
		}},
		{"buffer a: written and never read", func(b *Builder) { step(b, "p", nil, []Range{b.Buffer("a", Scratch, F32, 4)}) }},
		{"buffer o: an output that nothing writes", func(b *Builder) { b.Buffer("o", Output, F32, 4) }},
		{"dispatch p: name used twice", func(b *Builder) {
			s := b.Buffer("s", State, F32, 4)
			step(b, "p", []Range{s}, nil)
			step(b, "p", []Range{s}, nil)
		}},
		{"declared as state f32 of 16 bytes and as state f32 of 20 bytes", func(b *Builder) {
			b.Buffer("s", State, F32, 4)
			b.Buffer("s", State, F32, 5)
		}},
		{"got 0 work items", func(b *Builder) { b.Add(Dispatch{Name: "p", Kernel: "k"}) }},
		{"got 0 elements", func(b *Builder) { b.Buffer("s", State, F32, 0) }},
	} {
		b := New("test")
		c.add(b)
		if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got error %v, want one with %q", err, c.want)
		}
	}
}

// The dump is what a reader compares two plans by: it must not change by itself.
func TestDump(t *testing.T) {
	b := New("sample")
	in, w := b.Buffer("in", Input, F32, 4), b.Buffer("w", Weight, BF16, 400)
	a, o := b.Buffer("a", Scratch, F32, 8), b.Buffer("o", Output, F32, 4)
	type params struct {
		M, K int
		Eps  float32
	}
	b.Add(Dispatch{Name: "first", Kernel: "scale", Params: params{M: 1, K: 4}, Items: 4, Args: []Arg{
		{Param: "x", Range: in, Access: Read}, {Param: "w", Range: w, Access: Read, Touched: 80}, {Param: "y", Range: a.Part(4, 4, F32), Access: Write}}})
	b.Add(Dispatch{Name: "second", Kernel: "scale", Params: params{Eps: 1e-6}, Items: 4, Args: []Arg{
		{Param: "x", Range: in, Access: Read}, {Param: "y", Range: a.Part(0, 4, F32), Access: Write}}})
	b.Add(Dispatch{Name: "third", Kernel: "sum", Items: 1, Args: []Arg{{Param: "x", Range: a, Access: ReadWrite}, {Param: "y", Range: o, Access: Write}}})
	var got strings.Builder
	if err := build(t, b).Dump(&got); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "dump.txt")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}
