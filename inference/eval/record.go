package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Record is a file of references; FORMAT.md describes it. Fields that eval does not use are left out here.
type Record struct {
	Source string               `json:"source"` // what made it
	Models map[string]Reference `json:"models"`
}

// Reference is what one model gave.
type Reference struct {
	SHA256    string `json:"sha256"` // over all tensors' bytes, byte-wise name order
	Positions Text   `json:"positions"`
}

// Text is n+1 tokens and what the reference held at each of the first n.
type Text struct {
	Tokens     []int32   `json:"tokens"`     // [n+1]
	Perplexity float64   `json:"perplexity"` // over all n
	Top1       []int32   `json:"top1"`       // [n], the best id after each token
	Gaps       []float64 `json:"gaps"`       // [n], difference of the two best logits; may be left out
	Logprobs   []float64 `json:"logprobs"`   // [n], natural logarithm, of the token that follows
}

func (t Text) gap(pos int) float64 {
	if pos < len(t.Gaps) {
		return t.Gaps[pos]
	}
	return 0
}

// ReadRecord parses a file of references and checks that each is whole.
func ReadRecord(text []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("reference: %w", err)
	}
	if len(r.Models) == 0 {
		return r, errors.New("reference: got no models, want at least one")
	}
	for _, name := range slices.Sorted(maps.Keys(r.Models)) {
		p := r.Models[name].Positions
		n := len(p.Tokens) - 1
		if n < 1 || len(p.Top1) != n || len(p.Logprobs) != n || (len(p.Gaps) != n && len(p.Gaps) != 0) {
			return r, fmt.Errorf("reference: model %s: got %d tokens, %d best ids, %d log-probabilities, %d gaps; want one token more than the others, at least 2",
				name, len(p.Tokens), len(p.Top1), len(p.Logprobs), len(p.Gaps))
		}
	}
	return r, nil
}

// WeightsError says that a record has nothing about these weights.
type WeightsError struct {
	SHA256 string
	Has    []string // "demo 95cfc7a7cafe"
}

func (e *WeightsError) Error() string {
	return fmt.Sprintf("reference: got weights %.12s, the record is of %s", e.SHA256, strings.Join(e.Has, ", "))
}

// For finds the reference of the weights with a digest. The error is a *WeightsError.
func (r Record) For(sha256 string) (name string, _ Reference, _ error) {
	var has []string
	for _, name := range slices.Sorted(maps.Keys(r.Models)) {
		if r.Models[name].SHA256 == sha256 {
			return name, r.Models[name], nil
		}
		has = append(has, fmt.Sprintf("%s %.12s", name, r.Models[name].SHA256))
	}
	return "", Reference{}, &WeightsError{sha256, has}
}
