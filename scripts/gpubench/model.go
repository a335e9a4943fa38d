package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"pond/inference/checkpoint"
	"pond/inference/qwen36"
	"pond/inference/tinymodel"
	"pond/inference/tinymodel/fullsize"
	"pond/metal"
	"pond/metal/gpu"
	"pond/metal/kernels"
	"pond/metal/mtl"
	"pond/metal/standin"
)

// patternBytes is how much of a tensor is made; the rest repeats it. Larger than what a row set or an expert is, so that neighbours differ.
const patternBytes = 8 << 20

// filler is the device, with weights that are made where they lie.
type filler struct {
	*gpu.Device
	gpu   *standin.GPU
	files *checkpoint.Checkpoint
}

// PlaceWeights implements metal.Device: data, a hole in a file, is not read.
func (f filler) PlaceWeights(label string, data []byte) (metal.Buffer, error) {
	b, err := f.NewBuffer(label, (int64(len(data))+3)/4*4)
	if err != nil {
		return nil, err
	}
	t, ok := f.files.Tensor(label)
	if !ok {
		return nil, fmt.Errorf("%s: no such tensor", label)
	}
	pattern := make([]byte, min(len(b.Bytes()), patternBytes))
	if err := fullsize.Sample(tinymodel.Tensor{Name: label, DType: string(t.DType), Shape: t.Shape}, pattern); err != nil {
		return nil, err
	}
	return b, f.gpu.Repeat(b.Bytes(), pattern)
}

// hollow writes the checkpoint's files with their headers and holes for the numbers.
func hollow(dir string) error {
	c, err := fullsize.Real()
	if err != nil {
		return err
	}
	for _, f := range c.Files() {
		if f.Name == "tokenizer.json" { // nobody reads it here, and making it takes long
			continue
		}
		head := make([]byte, f.Bytes)
		if filepath.Ext(f.Name) == ".safetensors" {
			var n [8]byte
			if _, err := f.ReadAt(n[:], 0); err != nil {
				return err
			}
			head = make([]byte, 8+binary.LittleEndian.Uint64(n[:]))
		}
		if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		path := filepath.Join(dir, f.Name)
		if err := os.WriteFile(path, head, 0o644); err != nil {
			return err
		}
		if err := os.Truncate(path, f.Bytes); err != nil {
			return err
		}
	}
	return nil
}

// bench is the model on the GPU.
type bench struct {
	options
	out    io.Writer
	dir    string
	lib    *standin.Library
	gpu    *standin.GPU
	device *gpu.Device
	files  *checkpoint.Checkpoint
	model  *qwen36.Model
	random *rand.Rand
	copied float64 // bytes a second of a copy, read and written
}

// machine is the Mac that the stand-in plays.
func (o options) machine() standin.Options {
	if o.tensors {
		return standin.Options{MacOS: 26, Family: 10}
	}
	return standin.Options{}
}

func open(o options, out io.Writer) (_ *bench, err error) {
	b := &bench{options: o, out: out, random: rand.New(rand.NewPCG(7, 7))}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	begun := time.Now()
	if b.lib, err = standin.Open(o.machine()); err != nil {
		return nil, err
	}
	if b.gpu, err = b.lib.OpenGPU(); err != nil {
		return nil, err
	}
	if b.gpu == nil {
		return nil, fmt.Errorf("the backend is not CUDA: set %s=%s", standin.BackendVariable, standin.OnCUDA)
	}
	rt, err := mtl.Load(b.lib.Path())
	if err != nil {
		return nil, err
	}
	text, err := o.text()
	if err != nil {
		return nil, err
	}
	onGPU := gpu.Options{Source: text, Tuning: o.plans.Tuning()}
	if o.tensors {
		onGPU.TensorSource = kernels.TensorSource()
	}
	if b.device, err = gpu.Open(rt, onGPU); err != nil {
		return nil, err
	}
	if o.tensors && len(b.device.TensorKernels()) == 0 {
		return nil, errors.New(b.device.Name())
	}
	if b.dir, err = os.MkdirTemp("", "gpubench-"); err != nil {
		return nil, err
	}
	if err := hollow(b.dir); err != nil {
		return nil, err
	}
	if b.files, err = checkpoint.OpenDir(b.dir); err != nil {
		return nil, err
	}
	shape, err := qwen36.Named("real")
	if err != nil {
		return nil, err
	}
	shape.Layers = o.layers
	if b.model, err = o.plans.NewModel(filler{b.device, b.gpu, b.files}, b.files, shape, o.rows()); err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "%s: %d layers, %.2f GB of weights made in %.1f s\n\n", b.device.Name(), shape.Layers, float64(b.model.WeightBytes())/1e9, time.Since(begun).Seconds())
	return b, nil
}

func (b *bench) close() {
	if b.device != nil {
		b.device.Close()
	}
	if b.lib != nil {
		if err := b.lib.Close(); err != nil {
			fmt.Fprintln(b.out, "misuse:", err)
		}
	}
	if b.files != nil {
		b.files.Close()
	}
	os.RemoveAll(b.dir)
}

// sequence is one with keys and values for so many rows.
func (b *bench) sequence(rows int) (*qwen36.Sequence, error) {
	q, err := b.model.NewSequence()
	if err != nil {
		return nil, err
	}
	if err := q.Grow(min(rows, b.model.Context)); err != nil {
		return nil, err
	}
	pattern := make([]byte, patternBytes)
	for i := 0; i < len(pattern); i += 2 { // ±[0.5, 2)
		binary.LittleEndian.PutUint16(pattern[i:], uint16(b.random.Uint32())&0x80ff|0x3f00)
	}
	for i := range b.model.Shape.Layers {
		if !b.model.Shape.Attention(i) {
			continue
		}
		for _, kind := range []string{"keys", "values"} {
			if err := b.gpu.Repeat(q.Buffer(qwen36.StateName(kind, i)).Bytes(), pattern); err != nil {
				return nil, err
			}
		}
	}
	return q, nil
}

func (b *bench) ids(n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = b.random.Int32N(int32(b.model.Shape.UsableIDs()))
	}
	return ids
}

// at puts a sequence to a position without having run anything.
func at(q *qwen36.Sequence, pos int) {
	q.Reset()
	q.Advance(pos)
}

// finite says what is wrong with logits.
func (b *bench) finite(logits []float32) error {
	if b.unchecked {
		return nil
	}
	var squares float64
	for i, v := range logits {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("logit %d: got %v, want a number", i, v)
		}
		squares += float64(v) * float64(v)
	}
	if squares == 0 {
		return errors.New("got logits of zero")
	}
	return nil
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
