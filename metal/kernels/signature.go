// Package kernels is the list of operations that a plan may dispatch: for each its signature (buffers, their element types
// and access), its parameter struct, and a plain reference in Go that the host executor runs and every faster version is tested
// against.
//
// It allocates nothing on a device and knows no plan. Start with All; one file holds one family of operations. shape.go says
// what the letters in shape comments mean.
package kernels

import "fmt"

// DType is the element type of a kernel's buffer.
type DType uint8

const (
	F32  DType = iota
	U32        // ids, positions, routes
	BF16       // two bytes; weights as published, at any alignment
	Code       // packed 4 or 8 bit codes, as published, any alignment
)

// Access is what the kernel does to a buffer.
type Access uint8

const (
	Read Access = 1 << iota
	Write
	ReadWrite = Read | Write
)

// Buffer is one parameter of a kernel.
type Buffer struct {
	Name   string
	DType  DType
	Access Access
	Shape  string // for readers and messages
}

// Arg is one bound buffer, as the reference sees it: F32 or U32 elements, or raw little-endian bytes for BF16 and Code.
type Arg struct {
	F32 []float32
	U32 []uint32
	Raw []byte
}

// Run computes the work items [lo, hi) of a dispatch. Items are independent: they may run in any order, on any worker.
type Run func(a []Arg, params any, lo, hi int, ws *Workspace)

// Kernel is one operation.
type Kernel struct {
	Name    string
	Buffers []Buffer
	// Segments is the largest number of weight matrices (codes, scales, biases) that may follow Buffers, at least one; zero
	// when the operation takes none. Their rows are laid side by side in the output.
	Segments int
	Run      Run

	// How a GPU launches the .metal function of the same name; geometry.go. Constants and Check may be nil.
	Grid      func(params any, items int) Grid
	Constants func(params any) []Constant
	Check     func(params any) error // sizes that the Metal function does not take
}

// SegmentArgs is how many arguments one weight matrix adds: codes, scales, biases.
const SegmentArgs = 3

// segment is what each weight matrix of a variadic kernel adds to the signature.
func segment(i int) Buffer {
	switch i % SegmentArgs {
	case 0:
		return Buffer{fmt.Sprintf("codes%d", i/SegmentArgs), Code, Read, "[N, K*bits/8] bytes"}
	case 1:
		return Buffer{fmt.Sprintf("scales%d", i/SegmentArgs), BF16, Read, "[N, K/64]"}
	default:
		return Buffer{fmt.Sprintf("biases%d", i/SegmentArgs), BF16, Read, "[N, K/64]"}
	}
}

// Param describes argument i of a call that binds n arguments. It fails when the kernel does not take n.
func (k Kernel) Param(i, n int) (Buffer, error) {
	extra := n - len(k.Buffers)
	if extra < 0 || extra%SegmentArgs != 0 || extra/SegmentArgs > k.Segments || (k.Segments > 0 && extra == 0) {
		return Buffer{}, fmt.Errorf("kernel %s: got %d arguments, want %d and up to %d weight matrices of 3", k.Name, n, len(k.Buffers), k.Segments)
	}
	if i < len(k.Buffers) {
		return k.Buffers[i], nil
	}
	return segment(i - len(k.Buffers)), nil
}

// All lists the kernels, sorted by name.
func All() []Kernel {
	return []Kernel{
		AttnCombine(), AttnDecode(F32), AttnDecode(BF16), AttnPrefill(F32), AttnPrefill(BF16), AttnPrefillMerge(), AttnPrefillSplit(F32), AttnPrefillSplit(BF16), AttnPrep(F32), AttnPrep(BF16),
		CountToken(), DrawToken(), EmbedQ4(), F32Gemm(), F32GemmAdd(), GDNConv(), GDNGateNorm(), GDNScan(), GDNStep(), GDNWindowStore(), LogitBests(),
		MoECombine(F32), MoECombine(BF16), MoEDownAdd(), MoEDownGrouped(F32), MoEDownGrouped(BF16), MoEGateUp(), MoEGateUpGrouped(), MoEGroup(), MoERoute(),
		Q4Gemm(), Q4GemmAdd(), Q4GemmSplit(), Q4GemvAdd(), Q4GemvGDNOut(), Q4GemvNorm(), Q4GemvNormBests(), Q4Unpack(), Q8Gemm(), Q8GemvNorm(), Q8Unpack(), RMSNorm(), RMSNormAdd(), ResidualAdd(), SiluMul(),
	}
}

// Workspace is one worker's private memory, so that a reference needs no allocation in a step.
type Workspace struct {
	f    []float32
	used int
}

// Reset forgets what was taken.
func (w *Workspace) Reset() { w.used = 0 }

// F32 takes n elements, contents undefined, until the next Reset.
func (w *Workspace) F32(n int) []float32 {
	if w.used+n > len(w.f) {
		w.f = make([]float32, max(2*len(w.f), w.used+n)) // earlier slices keep the old memory
		w.used = 0
	}
	s := w.f[w.used : w.used+n : w.used+n]
	w.used += n
	return s
}
