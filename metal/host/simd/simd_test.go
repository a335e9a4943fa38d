package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// sets are the levels of this processor in both precisions.
func sets(t testing.TB) []*Set {
	var out []*Set
	for l := Portable; l <= AVX512; l++ {
		if l > Best() {
			t.Logf("%v: this processor does not have it", l)
			continue
		}
		for _, p := range []Precision{Int16, Int8} {
			if s := New(l, p); s.Level == l && s.Precision == p {
				out = append(out, s)
			}
		}
	}
	return out
}

func (s *Set) name() string { return fmt.Sprintf("%v int%d", s.Level, s.Precision) }

func toBF16(f float32) uint16 { return uint16((math.Float32bits(f) + 0x7fff) >> 16) }

// randomMatrix has published-looking weights, at an odd address.
func randomMatrix(r *rand.Rand, rows, k, bits int) Matrix {
	bytes := func(n int) []byte { return make([]byte, n+1)[1:] }
	m := Matrix{K: k, Bits: bits, Codes: bytes(rows * k * bits / 8), Scales: bytes(rows * k / Group * 2), Biases: bytes(rows * k / Group * 2)}
	for i := range m.Codes {
		m.Codes[i] = byte(r.Uint32())
	}
	for i := range rows * k / Group {
		scale := 0.002 + 0.002*r.Float32()
		if bits == 8 {
			scale /= 16
		}
		s, b := toBF16(scale), toBF16(-scale*float32(int(1)<<(bits-1))*(0.9+0.2*r.Float32()))
		m.Scales[2*i], m.Scales[2*i+1] = byte(s), byte(s>>8)
		m.Biases[2*i], m.Biases[2*i+1] = byte(b), byte(b>>8)
	}
	return m
}

// activations are normal, some of them eight times as large, as a model's are.
func activations(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
		if r.IntN(32) == 0 {
			x[i] *= 8
		}
	}
	return x
}

func (m Matrix) code(row, i int) float64 {
	if m.Bits == 8 {
		return float64(m.Codes[row*m.K+i])
	}
	return float64(m.Codes[(row*m.K+i)/2] >> (4 * (i % 2)) & 15)
}

// product is row · x in float64 and the length of its terms, √Σ(w·x)²: terms cancel, their errors do not.
type product struct{ y, length float64 }

func (m Matrix) reference(row int, x []float32) (p product) {
	for i, v := range x {
		g := row*m.K/Group + i/Group
		term := (float64(bf16(m.Scales, g))*m.code(row, i) + float64(bf16(m.Biases, g))) * float64(v)
		p.y += term
		p.length += term * term
	}
	p.length = math.Sqrt(p.length)
	return p
}

// off is the error of products relative to the length of their terms.
func off(got []float32, want []product) float64 {
	var e, w float64
	for i, p := range want {
		e += (float64(got[i]) - p.y) * (float64(got[i]) - p.y)
		w += p.length * p.length
	}
	return math.Sqrt(e / w)
}

// apart is the error of got relative to the root mean square of want.
func apart(got []float32, want []float64) float64 {
	var e, w float64
	for i := range want {
		e += (float64(got[i]) - want[i]) * (float64(got[i]) - want[i])
		w += want[i] * want[i]
	}
	return math.Sqrt(e / w)
}

// quantised is what is left of x after quantisation, which must be within half a step of it.
func (s *Set) quantised(t *testing.T, x []float32) []float32 {
	t.Helper()
	var v Vector
	s.Quantise(&v, x)
	out := make([]float32, len(x))
	for i := range x {
		step := v.steps[i/Group]
		out[i] = float32(v.q[i]) * step
		if d := math.Abs(float64(out[i] - x[i])); !(d <= 0.505*float64(step)+1e-9) {
			t.Fatalf("%s: at %d got %v for %v, want within half of %v", s.name(), i, out[i], x[i], step)
		}
	}
	return out
}

// tolerance of a product with quantised activations: integers are exact, what is left is the float32 sum over groups.
const tolerance = 2e-5

func TestMulVector(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range sets(t) {
		for _, bits := range []int{4, 8} {
			for _, k := range []int{128, 256, 384, 512, 640, 896, 1024, 1920, 2048, 4096} {
				for _, rows := range []int{1, 2, 3, 33} {
					m, x := randomMatrix(r, rows+2, k, bits), activations(r, k)
					var v Vector
					s.Quantise(&v, x)
					y, want := make([]float32, rows), make([]product, rows)
					s.MulVector(y, m, 2, &v)
					x = s.quantised(t, x)
					for i := range want {
						want[i] = m.reference(i+2, x)
					}
					if e := off(y, want); !(e < tolerance) {
						t.Errorf("%s, %d bits, %d rows of %d: got error %.2g, want under %.2g", s.name(), bits, rows, k, e, tolerance)
					}
				}
			}
		}
	}
}

// TestExtremes: codes and activations at their largest must not overflow a sum, whatever their signs.
func TestExtremes(t *testing.T) {
	for _, s := range sets(t) {
		for _, bits := range []int{4, 8} {
			for _, sign := range []float32{1, -1} {
				m := randomMatrix(rand.New(rand.NewPCG(3, 4)), 32, 256, bits)
				for i := range m.Codes {
					m.Codes[i] = 255
				}
				x := make([]float32, 256*9)
				for i := range x {
					x[i] = sign * 1000
				}
				var v Vector
				s.Quantise(&v, x[:256])
				y, want := make([]float32, 32), make([]product, 32)
				s.MulVector(y, m, 0, &v)
				for i := range want {
					want[i] = m.reference(i, x[:256])
				}
				if e := off(y, want); !(e < 1e-3) {
					t.Errorf("%s, %d bits, sign %v: got %v, want %v", s.name(), bits, sign, y, want)
				}
				if bits == 8 {
					continue
				}
				var rows Rows
				s.Pack(&rows, 9, 256, func(t int) []float32 { return x[t*256:][:256] })
				s.MulRows(&rows, m, 0, 32, &Work{}, func(tok, i int, y []float32) {
					if e := off(y, want[i:i+len(y)]); !(e < 1e-3) {
						t.Errorf("%s, sign %v, token %d: got %v, want %v", s.name(), sign, tok, y, want)
					}
				})
			}
		}
	}
}

func TestMulRows(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, s := range sets(t) {
		var rows Rows // reused, as a worker does
		var w Work
		for _, c := range []struct{ tokens, rows, k, row int }{
			{1, 32, 128, 0}, {2, 40, 256, 3}, {3, 32, 128, 0}, {3, 64, 512, 1}, {8, 32, 256, 5}, {9, 33, 512, 0}, {17, 65, 256, 2}, {130, 36, 256, 0},
			{300, 32, 128, 4}, {5, 31, 128, 0},
		} {
			m := randomMatrix(r, c.rows+c.row, c.k, 4)
			x := activations(r, c.tokens*c.k)
			s.Pack(&rows, c.tokens, c.k, func(t int) []float32 { return x[t*c.k:][:c.k] })
			got := make([]float32, c.tokens*c.rows)
			for i := range got {
				got[i] = float32(math.NaN())
			}
			s.MulRows(&rows, m, c.row, c.rows, &w, func(t, i int, y []float32) { copy(got[t*c.rows+i:(t+1)*c.rows], y) })
			want := make([]product, len(got))
			for token := range c.tokens {
				copy(x[token*c.k:], s.quantised(t, x[token*c.k:][:c.k]))
			}
			for i := range want {
				want[i] = m.reference(c.row+i%c.rows, x[i/c.rows*c.k:][:c.k])
			}
			if e := off(got, want); !(e < tolerance) {
				t.Errorf("%s, %+v: got error %.2g, want under %.2g", s.name(), c, e, tolerance)
			}
		}
	}
}

func TestQuantiseZeros(t *testing.T) {
	for _, s := range sets(t) {
		var v Vector
		s.Quantise(&v, make([]float32, 256))
		m := randomMatrix(rand.New(rand.NewPCG(7, 8)), 3, 256, 4)
		y := []float32{1, 1, 1}
		s.MulVector(y, m, 0, &v)
		if y[0] != 0 || y[1] != 0 || y[2] != 0 {
			t.Errorf("%s: got %v, want zeros", s.name(), y)
		}
	}
}

func TestFloats(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	ref := portableFloats()
	near := func(t *testing.T, what string, got, want []float32) {
		t.Helper()
		for i := range want {
			if d := math.Abs(float64(got[i] - want[i])); !(d <= 2e-5*math.Max(1, math.Abs(float64(want[i])))) {
				t.Errorf("%s: at %d of %d got %v, want %v", what, i, len(want), got[i], want[i])
				return
			}
		}
	}
	for _, s := range sets(t) {
		if s.Precision != Int16 {
			continue
		}
		t.Run(s.Level.String(), func(t *testing.T) {
			for _, n := range []int{1, 7, 8, 15, 16, 17, 32, 48, 128, 144, 256, 272, 500} {
				x, y, z := activations(r, n), activations(r, n), activations(r, n)
				w := make([]byte, 8*n)
				for i := range 4 * n {
					b := toBF16(r.Float32())
					w[2*i], w[2*i+1] = byte(b), byte(b>>8)
				}
				two := func() (a, b []float32) { return append([]float32(nil), z...), append([]float32(nil), z...) }
				near(t, "SumSquares", []float32{s.SumSquares(x) / float32(n)}, []float32{ref.SumSquares(x) / float32(n)})
				near(t, "Max", []float32{s.Max(x)}, []float32{ref.Max(x)})
				a, b := two()
				s.Norm(a, x, w, 0.7)
				ref.Norm(b, x, w, 0.7)
				near(t, "Norm", a, b)
				s.Scale(a, x, 0.3)
				ref.Scale(b, x, 0.3)
				near(t, "Scale", a, b)
				s.AddScaled(a, y, -1.5)
				ref.AddScaled(b, y, -1.5)
				near(t, "AddScaled", a, b)
				s.SiluMul(a, x, y)
				ref.SiluMul(b, x, y)
				near(t, "SiluMul", a, b)
				s.MulSigmoid(a, x, y, 0.9)
				ref.MulSigmoid(b, x, y, 0.9)
				near(t, "MulSigmoid", a, b)
				a, b = two()
				near(t, "ExpSum", []float32{s.ExpSum(a, 3) / float32(n)}, []float32{ref.ExpSum(b, 3) / float32(n)})
				near(t, "ExpSum's x", a, b)
				a, b = two()
				u := [4][]float32{x, y, activations(r, n), activations(r, n)}
				s.ConvSilu(a, w, u)
				ref.ConvSilu(b, w, u)
				near(t, "ConvSilu", a, b)
				rows := activations(r, 9*(n+3))
				for count := range 9 {
					a, b := make([]float32, count), make([]float32, count)
					s.DotRows(a, x, rows, n+3)
					ref.DotRows(b, x, rows, n+3)
					for i := range a {
						a[i], b[i] = a[i]/float32(n), b[i]/float32(n)
					}
					near(t, "DotRows", a, b)
					a, b = two()
					s.AddRows(a, y[:min(count, n)], rows, n+3)
					ref.AddRows(b, y[:min(count, n)], rows, n+3)
					near(t, "AddRows", a, b)
				}
			}
			special := []float32{float32(math.Inf(-1)), -200, -104, -90, -87.5, -1e-8, 0, 1e-8, 1, 80, 88, -3, 5, -7, 11, 13}
			got, want := append([]float32(nil), special...), append([]float32(nil), special...)
			s.ExpSum(got, 0)
			ref.ExpSum(want, 0)
			for i := range got {
				if d := math.Abs(float64(got[i]-want[i])) / math.Max(float64(want[i]), 1e-38); !(d < 1e-6) {
					t.Errorf("e^%v: got %v, want %v", special[i], got[i], want[i])
				}
			}
			got = append(got[:0], float32(math.NaN()))
			got = append(got, special[1:]...)
			if s.ExpSum(got, 0); !math.IsNaN(float64(got[0])) {
				t.Errorf("e^NaN: got %v", got[0])
			}
		})
	}
}

func TestDelta(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, s := range sets(t) {
		for _, c := range []struct{ width, rows, tokens int }{{128, 32, 1}, {128, 2, 5}, {128, 32, 33}, {32, 32, 3}, {128, 3, 2}} {
			d := DeltaRows{Width: c.width, Rows: c.rows, Tokens: c.tokens, VStride: c.rows + 5, YStride: c.rows + 1, State: activations(r, c.rows*c.width),
				V: activations(r, c.tokens*(c.rows+5)), Y: make([]float32, c.tokens*(c.rows+1)), Gates: make([]float32, 3*c.tokens)}
			unit := func() []float32 {
				x := activations(r, c.tokens*c.width)
				for t := range c.tokens {
					row := x[t*c.width:][:c.width]
					scale(row, row, float32(1/math.Sqrt(float64(sumSquares(row)))))
				}
				return x
			}
			d.Q, d.K = unit(), unit()
			for t := range c.tokens {
				d.Gates[3*t], d.Gates[3*t+1] = 0.9+0.1*r.Float32(), r.Float32()
				var kq float32
				for i := range c.width {
					kq += d.Q[t*c.width+i] * d.K[t*c.width+i]
				}
				d.Gates[3*t+2] = kq
			}
			// The delta rule as it is defined, in float64.
			state := make([]float64, len(d.State))
			for i, v := range d.State {
				state[i] = float64(v)
			}
			want := make([]float64, 0, c.tokens*c.rows)
			for t := range c.tokens {
				for row := range c.rows {
					st := state[row*c.width:][:c.width]
					var sk, y float64
					for i := range st {
						st[i] *= float64(d.Gates[3*t])
						sk += st[i] * float64(d.K[t*c.width+i])
					}
					by := float64(d.Gates[3*t+1]) * (float64(d.V[t*d.VStride+row]) - sk)
					for i := range st {
						st[i] += by * float64(d.K[t*c.width+i])
						y += st[i] * float64(d.Q[t*c.width+i])
					}
					want = append(want, y)
				}
			}
			s.Delta(d)
			var got []float32
			for t := range c.tokens {
				got = append(got, d.Y[t*d.YStride:][:c.rows]...)
			}
			if e := apart(got, want); !(e < 1e-5) {
				t.Errorf("%s, %+v: got y off by %.2g", s.name(), c, e)
			}
			if e := apart(d.State, state); !(e < 1e-5) {
				t.Errorf("%s, %+v: got the state off by %.2g", s.name(), c, e)
			}
		}
	}
}

// A vector's results do not depend on the others that are multiplied with it.
func TestMulVectorsIsMulVectorOfEach(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, s := range sets(t) {
		for _, bits := range []int{4, 8} {
			for _, k := range []int{128, 256, 512, 640, 1024, 1920, 2048} {
				for _, rows := range []int{1, 3, 8, 9, 33} {
					for n := 1; n <= 5; n++ {
						m := randomMatrix(r, rows+2, k, bits)
						var vs []*Vector
						var y, want [][]float32
						for range n {
							v := &Vector{}
							s.Quantise(v, activations(r, k))
							one := make([]float32, rows)
							s.MulVector(one, m, 1, v)
							vs, y, want = append(vs, v), append(y, make([]float32, rows)), append(want, one)
						}
						s.MulVectors(y, m, 1, rows, vs)
						for i := range want {
							if !slices.Equal(y[i], want[i]) {
								t.Fatalf("%s, %d bits, %d rows of %d, vector %d of %d: got %v, want what it is alone, %v", s.name(), bits, rows, k, i, n, y[i], want[i])
							}
						}
					}
				}
			}
		}
	}
}
