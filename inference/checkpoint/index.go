package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// index is model.safetensors.index.json: which file holds which tensor. It must say exactly what the files say: a file
// that is missing, swapped with another or from another revision then shows as a tensor that is not where it should be.
type index struct {
	weightMap map[string]string // tensor name -> file
	totalSize *uint64           // bytes of all tensors; nil where the file does not say
}

// readIndex returns nil if the directory has no index file and model.safetensors is to be read alone.
func readIndex(fsys fs.FS) (*index, error) {
	text, err := readSide(fsys, indexFile)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := fs.Stat(fsys, singleFile); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("model directory: got neither %s nor %s, want one of them: %w", indexFile, singleFile, fs.ErrNotExist)
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("index %s: %w", indexFile, err)
	}
	idx, err := parseIndex(text)
	if err != nil {
		return nil, fmt.Errorf("index %s: %w", indexFile, err)
	}
	// Two sets of weights in one directory: reading either would be a guess.
	if _, err := fs.Stat(fsys, singleFile); err == nil && !slices.Contains(idx.files(), singleFile) {
		return nil, fmt.Errorf("index %s: got a file %s beside it that it does not name, want one set of weights", indexFile, singleFile)
	}
	return idx, nil
}

func parseIndex(text []byte) (*index, error) {
	idx := &index{}
	err := eachField(text, func(key string, value json.RawMessage) error {
		switch key {
		case "metadata":
			return eachField(value, func(key string, value json.RawMessage) error {
				if key != "total_size" {
					return nil
				}
				if err := json.Unmarshal(value, &idx.totalSize); err != nil {
					return fmt.Errorf("metadata.total_size: %w, want a whole number", jsonError(err))
				}
				return nil
			})
		case "weight_map":
			idx.weightMap = map[string]string{}
			return eachField(value, func(name string, value json.RawMessage) error {
				var file string
				if err := json.Unmarshal(value, &file); err != nil {
					return fmt.Errorf("weight_map: tensor %s: %w, want a file's name", name, jsonError(err))
				}
				if !plainName(file) || !strings.HasSuffix(file, ".safetensors") {
					return fmt.Errorf("weight_map: tensor %s: got the file %q, want a .safetensors file in the model directory", name, file)
				}
				idx.weightMap[name] = file
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(idx.weightMap) == 0 {
		return nil, errors.New("weight_map: got no tensors, want at least one")
	}
	return idx, nil
}

// files returns the weight files that the index names, sorted.
func (x *index) files() []string {
	return slices.Compact(slices.Sorted(maps.Values(x.weightMap)))
}

// agree compares the index with what the files hold.
func (x *index) agree(c *Checkpoint, totalBytes uint64) error {
	for _, name := range slices.Sorted(maps.Keys(x.weightMap)) {
		t, ok := c.tensors[name]
		if !ok {
			return fmt.Errorf("%s: tensor %s: missing, want it here as %s says", x.weightMap[name], name, indexFile)
		}
		if t.File != x.weightMap[name] {
			return fmt.Errorf("%s: tensor %s: got it here, want it in %s as %s says", t.File, name, x.weightMap[name], indexFile)
		}
	}
	for _, name := range c.names {
		if _, ok := x.weightMap[name]; !ok {
			return fmt.Errorf("%s: tensor %s: got it here, want only tensors that %s names", c.tensors[name].File, name, indexFile)
		}
	}
	if x.totalSize != nil && *x.totalSize != totalBytes {
		return fmt.Errorf("index %s: metadata.total_size: got %d, want %d, the bytes of all tensors", indexFile, *x.totalSize, totalBytes)
	}
	return nil
}
