package simd

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkMulVector walks more weights than the caches hold; MB/s is of weights.
func BenchmarkMulVector(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, k := range []int{512, 2048} {
		m := randomMatrix(r, 256<<20/k*2, k, 4)
		rows := len(m.Codes) / (k / 2)
		x := activations(r, k)
		for _, s := range sets(b) {
			b.Run(fmt.Sprintf("%s/K=%d", s.name(), k), func(b *testing.B) {
				var v Vector
				s.Quantise(&v, x)
				y := make([]float32, 512)
				b.SetBytes(int64(512 * (k/2 + k/Group*4)))
				at := 0
				for range b.N {
					s.MulVector(y, m, at, &v)
					if at += 512; at+512 > rows {
						at = 0
					}
				}
			})
		}
	}
}

// BenchmarkMulRows is a product with many tokens; the figure is GFLOP/s.
func BenchmarkMulRows(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	const n, k = 2048, 2048
	m := randomMatrix(r, n, k, 4)
	for _, tokens := range []int{4, 8, 16, 32, 128} {
		x := activations(r, tokens*k)
		for _, s := range sets(b) {
			b.Run(fmt.Sprintf("%s/%d", s.name(), tokens), func(b *testing.B) {
				var rows Rows
				var w Work
				s.Pack(&rows, tokens, k, func(t int) []float32 { return x[t*k:][:k] })
				var sink float32
				for range b.N {
					s.MulRows(&rows, m, 0, n, &w, func(_, _ int, y []float32) { sink += y[0] })
				}
				b.ReportMetric(float64(b.N)*2*float64(tokens)*n*k/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}

// BenchmarkMulVectors is BenchmarkMulVector with several vectors; MB/s is of weights, once.
func BenchmarkMulVectors(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, k := range []int{512, 2048} {
		m := randomMatrix(r, 256<<20/k*2, k, 4)
		rows := len(m.Codes) / (k / 2)
		for _, s := range sets(b) {
			for n := 1; n <= 4; n++ {
				b.Run(fmt.Sprintf("%s/K=%d/%d", s.name(), k, n), func(b *testing.B) {
					var vs []*Vector
					var y [][]float32
					for range n {
						v := &Vector{}
						s.Quantise(v, activations(r, k))
						vs, y = append(vs, v), append(y, make([]float32, 512))
					}
					b.SetBytes(int64(512 * (k/2 + k/Group*4)))
					at := 0
					for range b.N {
						s.MulVectors(y, m, at, 512, vs)
						if at += 512; at+512 > rows {
							at = 0
						}
					}
				})
			}
		}
	}
}
