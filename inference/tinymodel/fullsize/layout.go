package fullsize

// Where the tensors lie. MLX cuts its modules, in the order in which it walks them, into files; sorts the names of a file's header;
// pads nothing; and lays the data in the order of a hash map. Here that order is the one of a hash of seed and name, and the seed of
// each published file is the first whose header has the published length: offsets are decimal numbers, so the length depends on the
// order.

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"pond/inference/tinymodel"
)

const visionPrefix = "vision_tower."

// shard is one weight file.
type shard struct {
	last string // the last tensor in the order of the modules
	seed uint64 // of the order of the data
}

// realShards are the borders of the published revision.
func realShards() []shard {
	const layers = "language_model.model.layers."
	return []shard{
		{layers + "8.mlp.switch_mlp.up_proj.biases", 210},
		{layers + "20.linear_attn.in_proj_qkv.scales", 312},
		{layers + "31.mlp.switch_mlp.gate_proj.biases", 167},
		{"language_model.lm_head.biases", 10497},
	}
}

// realHeaderBytes are the published lengths of the headers, by file.
func realHeaderBytes() []int { return []int{88_906, 67_237, 67_875, 50_269} }

// array is a tensor in its file.
type array struct {
	begin, end int64 // offsets in the file
	content    content
}

// place lays the tensors out in files and writes the index.
func place(list []tinymodel.Tensor, shards []shard, exact bool) (*Checkpoint, error) {
	c := &Checkpoint{}
	weightMap := map[string]string{}
	var total int64
	for i, s := range shards {
		cut := slices.IndexFunc(list, func(t tinymodel.Tensor) bool { return t.Name == s.last })
		if cut < 0 {
			return nil, fmt.Errorf("fullsize: internal error: no tensor %s in file %d", s.last, i+1)
		}
		name := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(shards))
		for _, t := range list[:cut+1] {
			weightMap[t.Name] = name
			total += lenBytes(t)
		}
		f, err := layOut(name, list[:cut+1], s.seed)
		if err != nil {
			return nil, err
		}
		if got := len(f.head) - 8; exact && got != realHeaderBytes()[i] {
			return nil, fmt.Errorf("fullsize: internal error: %s: got a header of %d bytes, want %d", name, got, realHeaderBytes()[i])
		}
		c.files = append(c.files, f)
		list = list[cut+1:]
	}
	if len(list) > 0 {
		return nil, fmt.Errorf("fullsize: internal error: %d tensors behind the last border", len(list))
	}
	index, err := json.MarshalIndent(map[string]any{"metadata": map[string]any{"total_size": total}, "weight_map": weightMap}, "", "    ")
	if err != nil {
		return nil, fmt.Errorf("fullsize: %w", err)
	}
	c.files = append([]*File{sideFile("model.safetensors.index.json", index)}, c.files...)
	return c, nil
}

// layOut places the tensors of one file.
func layOut(name string, list []tinymodel.Tensor, seed uint64) (*File, error) {
	order := slices.Clone(list)
	slices.SortFunc(order, func(a, b tinymodel.Tensor) int {
		return cmp.Or(cmp.Compare(mix(seed+keyOf(a.Name)), mix(seed+keyOf(b.Name))), cmp.Compare(a.Name, b.Name))
	})
	// Keys in the order of the alphabet, as in the published headers.
	type entry struct {
		Offsets [2]int64 `json:"data_offsets"`
		DType   string   `json:"dtype"`
		Shape   []int    `json:"shape"`
	}
	header := map[string]any{"__metadata__": map[string]string{"format": "mlx"}}
	f := &File{Name: name}
	var at int64
	for _, t := range order {
		end := at + lenBytes(t)
		header[t.Name] = entry{[2]int64{at, end}, t.DType, t.Shape}
		content, err := contentOf(t)
		if err != nil {
			return nil, err
		}
		f.tensors = append(f.tensors, array{at, end, content})
		at = end
	}
	text, err := json.Marshal(header)
	if err != nil {
		return nil, fmt.Errorf("fullsize: %w", err)
	}
	f.head = append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	for i := range f.tensors {
		f.tensors[i].begin += int64(len(f.head))
		f.tensors[i].end += int64(len(f.head))
	}
	f.Bytes = int64(len(f.head)) + at
	return f, nil
}

func lenBytes(t tinymodel.Tensor) int64 {
	n := int64(2)
	if t.DType == "U32" {
		n = 4
	}
	for _, dim := range t.Shape {
		n *= int64(dim)
	}
	return n
}

// visionTower lists the tensors that text does not need, 893,142,496 bytes in BF16.
func visionTower() []tinymodel.Tensor {
	const width, inner, patches, merged, out = 1152, 4304, 2304, 4 * 1152, 2048
	var list []tinymodel.Tensor
	add := func(name string, shape ...int) {
		list = append(list, tinymodel.Tensor{Name: visionPrefix + name, DType: "BF16", Shape: shape})
	}
	linear := func(name string, rows, in int) {
		add(name+".weight", rows, in)
		add(name+".bias", rows)
	}
	norm := func(name string) {
		add(name+".weight", width)
		add(name+".bias", width)
	}
	add("patch_embed.proj.weight", width, 2, 16, 16, 3)
	add("patch_embed.proj.bias", width)
	add("pos_embed.weight", patches, width)
	for i := range 27 {
		b := fmt.Sprintf("blocks.%d.", i)
		norm(b + "norm1")
		norm(b + "norm2")
		linear(b+"attn.qkv", 3*width, width)
		linear(b+"attn.proj", width, width)
		linear(b+"mlp.linear_fc1", inner, width)
		linear(b+"mlp.linear_fc2", width, inner)
	}
	norm("merger.norm")
	linear("merger.linear_fc1", merged, merged)
	linear("merger.linear_fc2", out, merged)
	return list
}
