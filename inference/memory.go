package inference

import (
	"fmt"
	"os"

	"pond/inference/checkpoint"
	"pond/inference/memgate"
	"pond/inference/plan"
	"pond/inference/qwen36"
)

// minContext is the shortest context worth loading a model for, in tokens: a question, a page of text and a thoughtful answer.
const minContext = 4096

// Bytes of the process beside weights, state and scratch: the program and its heap, and the tokenizer's tables, which the full
// vocabulary makes large.
const (
	programBytes     = 96 << 20
	fullProgramBytes = 256 << 20
)

// largeWeights is from where on the floors of the full model hold; its own weights are 18.2 GiB.
const largeWeights = 16 << 30

// MemoryNeed says what Open with these options will take, from the model's configuration alone; no weights are read.
func MemoryNeed(o Options) (memgate.Need, error) {
	files := o.Model.fsys
	if files == nil {
		files = os.DirFS(o.Model.dir)
	}
	shape, _, err := readShape(func(name string) ([]byte, error) { return checkpoint.ReadSide(files, name) })
	if err != nil {
		return memgate.Need{}, fmt.Errorf("memory need: %w", err)
	}
	placement := placementOf(o.Executor)
	if o.Model.fsys != nil && placement == memgate.Mapped {
		placement = memgate.Held
	}
	return shapeNeed(shape, placement, o)
}

// FullNeed says what the full model will take, whether it is installed or not.
func FullNeed(x Executor) (memgate.Need, error) {
	shape, err := qwen36.Named("real")
	if err != nil {
		return memgate.Need{}, err
	}
	return shapeNeed(shape, placementOf(x), Options{Executor: x})
}

// conversationBytes is what the gate counted for conversations: the ceiling of all that work and are kept.
func conversationBytes(o qwen36.Options, s qwen36.Shape, context int) (n int64) {
	for _, b := range o.StateBuffers(s, context) {
		if b.RowBytes > 0 {
			n += sessions * b.LenBytes
		} else {
			n += sessions * (1 + snapshotsEach) * b.LenBytes
		}
		if b.Apart {
			n += sessions * b.LenBytes
		}
	}
	return n
}

// shapeNeed adds up a model's plans: their buffers are what an engine allocates.
func shapeNeed(s qwen36.Shape, placement memgate.Placement, o Options) (memgate.Need, error) {
	chunk := o.ChunkTokens
	if chunk <= 0 {
		chunk = o.Executor.Chunk()
	}
	plans := PlanOptions(o.Executor, o.Ablate)
	tokens := min(chunk, s.MaxContext)
	// At the end of the longest context, where the keys are taken in the most parts.
	prefill, err := plans.PrefillInParts(s, s.MaxContext, tokens, qwen36.LastLogits, plans.KeyParts(s, tokens, s.MaxContext-tokens))
	if err != nil {
		return memgate.Need{}, err
	}
	decode, err := plans.Decode(s, s.MaxContext, s.MaxContext)
	if err != nil {
		return memgate.Need{}, err
	}
	n := memgate.Need{
		Placement: placement, Sequences: sessions, Snapshots: snapshotsEach,
		// Passes share scratch; the sum of the two is never less than what they hold together.
		Workspace: uint64(prefill.Summary().ScratchBytes + decode.Summary().ScratchBytes),
		Program:   programBytes, MinTokens: minContext, MaxTokens: s.MaxContext, Tokens: o.ContextTokens,
	}
	for _, b := range decode.Buffers {
		if b.Class == plan.Weight {
			n.Weights += uint64(b.LenBytes)
		}
	}
	for _, b := range plans.StateBuffers(s, 1) {
		if b.RowBytes > 0 {
			n.KVBytesPerToken += uint64(b.RowBytes)
		} else {
			n.SequenceState += uint64(b.LenBytes)
		}
		if b.Apart {
			n.SequenceAhead += uint64(b.LenBytes)
		}
	}
	if n.Weights >= largeWeights {
		n.Program, n.MacFloor, n.AvailableFloor = fullProgramBytes, memgate.MacFloorBytes, memgate.AvailableFloorBytes
	}
	return n, nil
}
