package grammar

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// Vocabulary is a tokenizer's tokens, sorted for masks. It does not change, and any number of grammars may use it at the same time.
type Vocabulary struct {
	size    int
	bytes   [][]byte
	stops   []int32
	symbol  map[int32]symbol // added tokens
	special [symbols - 256][]int32

	all    trie // every token that is text
	quoted trie // those that need a look in a JSON string: not plain
	tagged trie // those that need a look in free text: with a <

	plain     [plainLengths][]uint64 // plain[n]: tokens of at most n characters that may stand in a JSON string as they are
	allPlain  []uint64
	longPlain []plainToken // of plainLengths characters and more, shortest first
	untagged  []uint64     // tokens without a <, added ones too
}

type plainToken struct {
	chars int
	id    int32
}

const plainLengths = 33

// node is one byte of some tokens; a trie is its nodes in the order of a walk.
type node struct {
	b     byte
	depth uint16
	token int32 // that ends here, or -1
	after int32 // index of the first node behind this one's own
}

type trie []node

// NewVocabulary sorts size tokens. added reports those that are no text, stops are the ones that end an answer.
func NewVocabulary(size int, text func(id int32) []byte, added func(id int32) bool, stops []int32) *Vocabulary {
	v := &Vocabulary{size: size, bytes: make([][]byte, size), stops: slices.Clone(stops), symbol: map[int32]symbol{}}
	words := (size + 63) / 64
	v.untagged = make([]uint64, words)
	v.allPlain = make([]uint64, words)
	byLength := make([][]int32, plainLengths)
	var all, quoted, tagged []int32
	for id := range int32(size) {
		b := text(id)
		v.bytes[id] = b
		switch {
		case slices.Contains(stops, id):
			v.symbol[id] = symbols // never read
		case added(id):
			s := symOther
			switch string(b) {
			case callOpen:
				s = symCallOpen
			case callClose:
				s = symCallClose
			}
			v.symbol[id] = s
			v.special[s-256] = append(v.special[s-256], id)
			if s == symOther {
				set(v.untagged, id)
			}
		case len(b) > 0 && len(b) < 1<<16:
			all = append(all, id)
			if n := plainChars(b); n < 0 {
				quoted = append(quoted, id)
			} else {
				set(v.allPlain, id)
				if n < plainLengths {
					byLength[n] = append(byLength[n], id)
				} else {
					v.longPlain = append(v.longPlain, plainToken{n, id})
				}
			}
			if bytes.IndexByte(b, '<') < 0 {
				set(v.untagged, id)
			} else {
				tagged = append(tagged, id)
			}
		}
	}
	slices.SortStableFunc(v.longPlain, func(a, b plainToken) int { return a.chars - b.chars })
	mask := make([]uint64, words)
	for n, ids := range byLength {
		for _, id := range ids {
			set(mask, id)
		}
		v.plain[n] = slices.Clone(mask)
	}
	v.all, v.quoted, v.tagged = v.trie(all), v.trie(quoted), v.trie(tagged)
	return v
}

// The tags of a call that are tokens of their own.
const (
	callOpen  = "<tool_call>"
	callClose = "</tool_call>"
)

// plainChars counts the characters of a token that may stand in a JSON string as it is; below 0 for one that may not.
func plainChars(b []byte) int {
	n := 0
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r < 0x20 || r == '"' || r == '\\' || r == utf8.RuneError && size == 1 {
			return -1
		}
		b = b[size:]
		n++
	}
	return n
}

func (v *Vocabulary) trie(ids []int32) trie {
	slices.SortFunc(ids, func(a, b int32) int { return bytes.Compare(v.bytes[a], v.bytes[b]) })
	var t trie
	var path []int32 // nodes from the root to the last token
	var last []byte
	for _, id := range ids {
		b := v.bytes[id]
		common := 0
		for common < len(last) && common < len(b) && last[common] == b[common] {
			common++
		}
		if common == len(b) { // the same text again: a node beside the other
			common--
		}
		for _, n := range path[common:] {
			t[n].after = int32(len(t))
		}
		path = path[:common]
		for i := common; i < len(b); i++ {
			path = append(path, int32(len(t)))
			t = append(t, node{b: b[i], depth: uint16(i), token: -1})
		}
		t[path[len(path)-1]].token = id
		last = b
	}
	for _, n := range path {
		t[n].after = int32(len(t))
	}
	return t
}

func set(mask []uint64, id int32)   { mask[id/64] |= 1 << (id % 64) }
func unset(mask []uint64, id int32) { mask[id/64] &^= 1 << (id % 64) }

// has reports whether the vocabulary has the tag as a token of its own.
func (v *Vocabulary) has(s symbol) bool { return len(v.special[s-256]) > 0 }
