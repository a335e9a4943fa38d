package tokenizer

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// The vocabulary and the merges are nearly all of the file (some 20 MB for the
// real model). encoding/json keeps the last of two equal keys without a word
// and is slow on them, so these two are read by hand. Both get JSON that
// encoding/json has found to be well formed; what is left to check is which
// values it holds.

// vocabJSON is model.vocab: token in the byte alphabet -> id.
type vocabJSON map[string]int64

// UnmarshalJSON implements json.Unmarshaler.
func (v *vocabJSON) UnmarshalJSON(raw []byte) error {
	s := scanner{raw: raw}
	if s.peek() != '{' {
		return fmt.Errorf("model.vocab: got %.20s, want an object", raw)
	}
	*v = make(vocabJSON, len(raw)/16)
	for s.p++; s.peek() != '}'; s.skip(',') {
		text, err := s.text()
		if err != nil {
			return fmt.Errorf("model.vocab: %w", err)
		}
		s.skip(':')
		id, err := s.integer()
		if err != nil {
			return fmt.Errorf("model.vocab: token %q: %w", text, err)
		}
		if _, twice := (*v)[text]; twice {
			return fmt.Errorf("model.vocab: got token %q twice, want it once", text)
		}
		(*v)[text] = id
	}
	return nil
}

// mergeJSON is model.merges, in both spellings: "a b" and ["a", "b"].
type mergeJSON [][2]string

// UnmarshalJSON implements json.Unmarshaler.
func (m *mergeJSON) UnmarshalJSON(raw []byte) error {
	s := scanner{raw: raw}
	if s.peek() != '[' {
		return fmt.Errorf("model.merges: got %.20s, want an array", raw)
	}
	*m = make(mergeJSON, 0, len(raw)/16)
	for s.p++; s.peek() != ']'; s.skip(',') {
		pair, err := s.pair()
		if err != nil {
			return fmt.Errorf("model.merges: merge %d: %w", len(*m), err)
		}
		*m = append(*m, pair)
	}
	return nil
}

// scanner walks well-formed JSON.
type scanner struct {
	raw []byte
	p   int
}

// peek skips blanks and returns the next byte.
func (s *scanner) peek() byte {
	for {
		switch b := s.raw[s.p]; b {
		case ' ', '\t', '\r', '\n':
			s.p++
		default:
			return b
		}
	}
}

// skip passes b where it is next.
func (s *scanner) skip(b byte) {
	if s.peek() == b {
		s.p++
	}
}

func (s *scanner) text() (string, error) {
	if s.peek() != '"' {
		return "", fmt.Errorf("got %.20s, want a string", s.raw[s.p:])
	}
	from, escaped := s.p, false
	for s.p++; s.raw[s.p] != '"'; s.p++ {
		if s.raw[s.p] == '\\' {
			escaped = true
			s.p++
		}
	}
	s.p++
	if !escaped {
		return string(s.raw[from+1 : s.p-1]), nil
	}
	var text string
	err := json.Unmarshal(s.raw[from:s.p], &text)
	return text, err
}

func (s *scanner) integer() (int64, error) {
	s.peek()
	from := s.p
	for s.raw[s.p] != ',' && s.raw[s.p] != '}' && s.raw[s.p] > ' ' {
		s.p++
	}
	id, err := strconv.ParseInt(string(s.raw[from:s.p]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("got id %.20s, want an integer", s.raw[from:])
	}
	return id, nil
}

func (s *scanner) pair() (pair [2]string, err error) {
	if s.peek() == '"' {
		both, err := s.text()
		if err != nil {
			return pair, err
		}
		for i := range both {
			if both[i] == ' ' { // the byte alphabet has no space
				return [2]string{both[:i], both[i+1:]}, nil
			}
		}
		return pair, fmt.Errorf("got %q, want two tokens", both)
	}
	if s.peek() != '[' {
		return pair, fmt.Errorf("got %.20s, want a pair of tokens", s.raw[s.p:])
	}
	n := 0
	for s.p++; s.peek() != ']'; s.skip(',') {
		text, err := s.text()
		if err != nil {
			return pair, err
		}
		if n < len(pair) {
			pair[n] = text
		}
		n++
	}
	s.p++
	if n != len(pair) {
		return pair, fmt.Errorf("got %d tokens, want 2", n)
	}
	return pair, nil
}
