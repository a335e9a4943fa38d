//go:build !amd64

package simd

// Best is the fastest level that this processor has.
func Best() Level { return Portable }

// New returns the operations of a level, which Best must reach.
func New(_ Level, p Precision) *Set { return portable(p) }
