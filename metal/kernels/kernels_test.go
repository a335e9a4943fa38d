package kernels

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSignatures(t *testing.T) {
	var names []string
	for _, k := range All() {
		names = append(names, k.Name)
		if k.Run == nil || len(k.Buffers) == 0 {
			t.Errorf("%s: no reference or no buffers", k.Name)
		}
		writes := 0
		for _, b := range k.Buffers {
			if b.Access&Write != 0 {
				writes++
			}
			if b.Shape == "" {
				t.Errorf("%s: %s: no shape", k.Name, b.Name)
			}
		}
		if writes == 0 {
			t.Errorf("%s: writes nothing", k.Name)
		}
		for _, n := range []int{len(k.Buffers) - 1, len(k.Buffers) + 1, len(k.Buffers) + SegmentArgs*(k.Segments+1)} {
			if _, err := k.Param(0, n); err == nil {
				t.Errorf("%s: %d arguments: got no error", k.Name, n)
			}
		}
	}
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	if len(slices.Compact(sorted)) != len(names) {
		t.Errorf("names are not unique: %v", names)
	}
}

// randomMatrix makes n rows of k weights with random codes and returns them dequantised too, in float64.
func randomMatrix(r *rand.Rand, n, k, bits int) (args []Arg, dense []float64) {
	codes := make([]byte, n*k*bits/8)
	for i := range codes {
		codes[i] = byte(r.Uint32())
	}
	plain := func() ([]byte, []float64) {
		raw, vals := make([]byte, n*k/Group*2), make([]float64, n*k/Group)
		for i := range vals {
			bits := uint16(math.Float32bits(float32(r.NormFloat64()*0.05)) >> 16)
			binary.LittleEndian.PutUint16(raw[2*i:], bits)
			vals[i] = float64(math.Float32frombits(uint32(bits) << 16))
		}
		return raw, vals
	}
	scales, s := plain()
	biases, b := plain()
	dense = make([]float64, n*k)
	for i := range dense {
		q := codes[i*bits/8]
		if bits == 4 {
			q = q >> (4 * (i % 2)) & 15
		}
		dense[i] = s[i/Group]*float64(q) + b[i/Group]
	}
	// an odd offset: published tensors lie at any byte
	odd := func(p []byte) []byte { return append([]byte{0}, p...)[1:] }
	return []Arg{{Raw: odd(codes)}, {Raw: odd(scales)}, {Raw: odd(biases)}}, dense
}

func randomVector(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func TestProductsEqualDense(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, bits := range []int{4, 8} {
		for _, k := range []int{64, 192, 512} {
			for _, m := range []int{1, 3, 8, 31, 32, 33, 70} {
				p := LinearParams{M: m, K: k, Bits: bits, Rows: [MaxSegments]int{5, 1, 9}}
				var w []Arg
				var dense []float64
				for _, n := range p.Rows[:3] {
					a, d := randomMatrix(r, n, k, bits)
					w, dense = append(w, a...), append(dense, d...)
				}
				x, y := randomVector(r, m*k), make([]float32, m*p.N())
				args := append([]Arg{{F32: x}, {F32: y}}, w...)
				for _, cut := range []int{4, 11, 15} { // items in two uneven parts, across segments
					var ws Workspace
					Q4Gemm().Run(args, p, 0, cut, &ws)
					ws.Reset()
					Q4Gemm().Run(args, p, cut, p.N(), &ws)
				}
				for row := range m {
					single := make([]float32, p.N())
					var ws Workspace
					p.vectorRows(single, w, x[row*k:(row+1)*k], 0, p.N(), &ws)
					for n := range p.N() {
						var want, scale float64
						for i := range k {
							v := dense[n*k+i] * float64(x[row*k+i])
							want += v
							scale += math.Abs(v)
						}
						got := y[row*p.N()+n]
						if math.Abs(float64(got)-want) > 1e-5*scale { // float32 sums of k products
							t.Fatalf("bits %d K %d M %d: y[%d, %d]: got %v, want %v", bits, k, m, row, n, got, want)
						}
						if math.Float32bits(got) != math.Float32bits(single[n]) {
							t.Fatalf("bits %d K %d M %d: y[%d, %d]: many rows give %v, one row %v", bits, k, m, row, n, got, single[n])
						}
					}
				}
			}
		}
	}
}

func TestRoute(t *testing.T) {
	p := MoEParams{E: 6, T: 3}
	for _, c := range []struct {
		logits []float32
		ids    []uint32
	}{
		{[]float32{1, 5, 2, 4, 3, 0, 0}, []uint32{1, 3, 4}},
		{[]float32{2, 2, 2, 2, 2, 2, 0}, []uint32{0, 1, 2}}, // ties: the lower index
		{[]float32{0, 7, 0, 7, 7, 0, 0}, []uint32{1, 3, 4}},
		{[]float32{-3, float32(math.Inf(-1)), -1, -2, -9, -8, 0}, []uint32{2, 3, 0}},
	} {
		ids, w := make([]uint32, 3), make([]float32, 4)
		p.Route(c.logits, ids, w)
		if !slices.Equal(ids, c.ids) {
			t.Errorf("route of %v: got %v, want %v", c.logits, ids, c.ids)
		}
		if sum := w[0] + w[1] + w[2]; math.Abs(float64(sum)-1) > 1e-6 || w[3] != 0.5 {
			t.Errorf("route of %v: got weights %v, want three that sum to 1 and a shared gate of 0.5", c.logits, w)
		}
	}
}

func TestGroupKeepsEveryPairOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, m := range []int{1, 7, 200} {
		p := MoEParams{M: m, E: 9, T: 4}
		ids := make([]uint32, m*p.T)
		for i := range ids {
			ids[i] = uint32(r.IntN(p.E - 1)) // the last expert has none
		}
		order, offsets := make([]uint32, len(ids)), make([]uint32, p.E+1)
		MoEGroup().Run([]Arg{{U32: ids}, {U32: order}, {U32: offsets}}, p, 0, 1, &Workspace{})
		if offsets[0] != 0 || offsets[p.E] != uint32(len(ids)) {
			t.Fatalf("M %d: got offsets %v, want 0 to %d", m, offsets, len(ids))
		}
		for e := range p.E {
			part := order[offsets[e]:offsets[e+1]]
			if !slices.IsSorted(part) {
				t.Errorf("M %d: expert %d: pairs %v are not in order of token", m, e, part)
			}
			for _, pair := range part {
				if ids[pair] != uint32(e) {
					t.Errorf("M %d: pair %d listed under expert %d, chose %d", m, pair, e, ids[pair])
				}
			}
		}
		all := slices.Clone(order)
		slices.Sort(all)
		for i, pair := range all {
			if pair != uint32(i) {
				t.Fatalf("M %d: pair %d is missing or double", m, i)
			}
		}
	}
}

func TestWorkspaceSlicesStayApart(t *testing.T) {
	var ws Workspace
	a := ws.F32(3)
	b := ws.F32(1000) // grows: a keeps its memory
	c := ws.F32(3)
	a[0], b[0], c[0] = 1, 2, 3
	if a[0] != 1 || b[0] != 2 || c[0] != 3 {
		t.Errorf("got %v %v %v, want 1 2 3: slices overlap", a[0], b[0], c[0])
	}
}

func BenchmarkQ4Vector(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	p := LinearParams{M: 1, K: 2048, Bits: 4, Rows: [MaxSegments]int{512}}
	w, _ := randomMatrix(r, 512, 2048, 4)
	x, y := randomVector(r, 2048), make([]float32, 512)
	var ws Workspace
	b.SetBytes(512 * 2048 * 9 / 16)
	for b.Loop() {
		ws.Reset()
		p.vectorRows(y, w, x, 0, 512, &ws)
	}
}

func BenchmarkQ4Matrix(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	p := LinearParams{M: 64, K: 2048, Bits: 4, Rows: [MaxSegments]int{64}}
	w, _ := randomMatrix(r, 64, 2048, 4)
	args := append([]Arg{{F32: randomVector(r, 64*2048)}, {F32: make([]float32, 64*64)}}, w...)
	var ws Workspace
	for b.Loop() {
		ws.Reset()
		Q4Gemm().Run(args, p, 0, 64, &ws)
	}
	b.ReportMetric(2*64*64*2048/float64(b.Elapsed().Nanoseconds())*float64(b.N), "GFLOP/s")
}
