// Package tinymodel writes small models of the real architecture whose every weight follows from its name: test support,
// and the source of the golden numbers that tests compare with. They say nothing sensible; nobody trained them.
//
// It shares nothing with the packages that read models, so that a misreading of the format shows as a difference. Start
// with Write; a test that needs a broken or unusual model takes Generate, changes the Model and writes that.
package tinymodel

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing/fstest"
)

// Kind names one of the models.
type Kind int

const (
	// Tiny is the golden model: 2 M parameters, 4 layers, 320 rows of vocabulary.
	Tiny Kind = iota
	// KernelTrue has the head sizes and top 8 of the real model, so that specialised kernels run unchanged: 59 M parameters.
	KernelTrue
	// DemoShaped has the dimensions of the demo model, without its training: 56 M parameters.
	DemoShaped
	// Real has the dimensions of the published model: List and Config know it, its weights are package fullsize's.
	Real
)

// String returns the kind's name.
func (k Kind) String() string {
	switch k {
	case Tiny:
		return "tiny"
	case KernelTrue:
		return "kernel-true"
	case DemoShaped:
		return "demo-shaped"
	case Real:
		return "real"
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// Names of the weight files.
const (
	singleFile = "model.safetensors"
	indexFile  = "model.safetensors.index.json"
)

// Tensor is one array of a model. Data is little-endian and row-major.
type Tensor struct {
	Name  string
	DType string // "U32", "BF16", or whatever a test wants to write
	Shape []int
	Data  []byte
}

// Model is a whole model in memory, to be written as it is or changed first.
type Model struct {
	Config  map[string]any // config.json; MarshalJSON'd with sorted keys
	Tensors []Tensor       // in the order of the writer's modules, layer by layer
	// SplitAfter names the last tensor (in that order) of the first of two weight files; empty means one file. A triple
	// of weight, scales and biases may be cut.
	SplitAfter string
	// Side holds the other files by name.
	Side map[string][]byte
}

// Write writes the model k into dir, which it makes where it is missing: config.json, model.safetensors with a header of
// odd length, tokenizer.json, tokenizer_config.json, generation_config.json and chat_template.jinja.
func Write(dir string, k Kind) error {
	m, err := Generate(k)
	if err != nil {
		return err
	}
	return m.Write(dir)
}

// Write writes the model into dir, which it makes where it is missing.
func (m *Model) Write(dir string) error {
	files, err := m.files()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("tinymodel: %w", err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return fmt.Errorf("tinymodel: %w", err)
		}
	}
	return nil
}

// FS returns the model's files as a file system in memory.
func (m *Model) FS() (fs.FS, error) {
	files, err := m.files()
	if err != nil {
		return nil, err
	}
	out := fstest.MapFS{}
	for name, data := range files {
		out[name] = &fstest.MapFile{Data: data, Mode: 0o644}
	}
	return out, nil
}

// Find returns the tensor called name, to be changed in place, or nil.
func (m *Model) Find(name string) *Tensor {
	for i := range m.Tensors {
		if m.Tensors[i].Name == name {
			return &m.Tensors[i]
		}
	}
	return nil
}

// Drop removes the tensor called name and reports whether it was there.
func (m *Model) Drop(name string) bool {
	before := len(m.Tensors)
	m.Tensors = slices.DeleteFunc(m.Tensors, func(t Tensor) bool { return t.Name == name })
	return len(m.Tensors) < before
}

// Digest returns the SHA-256, in hex, over the bytes of all tensors in byte-wise order of their names.
func (m *Model) Digest() string {
	sorted := slices.SortedFunc(slices.Values(m.Tensors), func(a, b Tensor) int { return cmp.Compare(a.Name, b.Name) })
	sum := sha256.New()
	for _, t := range sorted {
		sum.Write(t.Data)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// files returns every file of the model by name.
func (m *Model) files() (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, data := range m.Side {
		files[name] = data
	}
	config, err := marshal(m.Config)
	if err != nil {
		return nil, err
	}
	files["config.json"] = config

	if m.SplitAfter == "" {
		files[singleFile], err = Encode(m.Tensors)
		return files, err
	}
	cut := slices.IndexFunc(m.Tensors, func(t Tensor) bool { return t.Name == m.SplitAfter })
	if cut < 0 {
		return nil, fmt.Errorf("tinymodel: split after %s: no such tensor", m.SplitAfter)
	}
	weightMap := map[string]string{}
	totalBytes := 0
	for i, part := range [][]Tensor{m.Tensors[:cut+1], m.Tensors[cut+1:]} {
		file := fmt.Sprintf("model-%05d-of-00002.safetensors", i+1)
		for _, t := range part {
			weightMap[t.Name] = file
			totalBytes += len(t.Data)
		}
		if files[file], err = Encode(part); err != nil {
			return nil, err
		}
	}
	files[indexFile], err = marshal(map[string]any{
		"metadata":   map[string]any{"total_size": totalBytes},
		"weight_map": weightMap,
	})
	return files, err
}

// Encode returns tensors as one safetensors file the way MLX writes it: sorted keys, data in the order of a hash, so
// that offsets do not follow names, and no alignment. The header's length is made odd (MLX leaves it to chance), so that
// no tensor is aligned and every reader's copy path is taken.
func Encode(tensors []Tensor) ([]byte, error) {
	order := slices.Clone(tensors)
	slices.SortStableFunc(order, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(fnv1a(a.Name), fnv1a(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	header := map[string]any{"__metadata__": map[string]string{"format": "mlx"}}
	lenBytes := 0
	for _, t := range order {
		if _, twice := header[t.Name]; twice {
			return nil, fmt.Errorf("tinymodel: tensor %s comes twice", t.Name)
		}
		header[t.Name] = map[string]any{
			"dtype": t.DType, "shape": append([]int{}, t.Shape...), "data_offsets": []int{lenBytes, lenBytes + len(t.Data)},
		}
		lenBytes += len(t.Data)
	}
	text, err := json.Marshal(header)
	if err != nil {
		return nil, fmt.Errorf("tinymodel: header: %w", err)
	}
	if len(text)%2 == 0 {
		text = append(text, ' ')
	}
	out := make([]byte, 8, 8+len(text)+lenBytes)
	binary.LittleEndian.PutUint64(out, uint64(len(text)))
	out = append(out, text...)
	for _, t := range order {
		out = append(out, t.Data...)
	}
	return out, nil
}

// marshal returns v as indented JSON with sorted keys and without escapes for <, > and &.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("tinymodel: %w", err)
	}
	return buf.Bytes(), nil
}

func fnv1a(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}
