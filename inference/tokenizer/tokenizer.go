// Package tokenizer turns text into token ids and back: byte-level BPE as a
// tokenizer.json of the Qwen3.5/3.6 family describes it.
//
// It is not a general reader of Hugging Face tokenizer files. It implements
// one pipeline (NFC, one split pattern, byte-level BPE, added tokens matched
// exactly) and refuses every file that asks for another. It knows nothing of
// chat templates or of devices.
//
// Start at Tokenizer.appendText, which is the whole pipeline for one piece of
// text: nfc.go, split.go and bpe.go are its three steps. load.go reads the
// file, decode.go is the way back.
package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Tokenizer is a loaded vocabulary. It does not change after Load, so any
// number of goroutines may use one at the same time.
type Tokenizer struct {
	classes *classTable
	merges  mergeTable
	byteID  [256]int32 // id of each single byte

	arena   []byte           // bytes of all tokens, id after id
	offsets []uint32         // [Vocab()+1] into arena
	added   []bool           // [Vocab()] true for added tokens
	addedID map[string]int32 // text of an added token -> id
	matcher addedMatcher
	whole   map[string]int32 // bytes of a base token -> id; nil unless the file sets ignore_merges
}

// Piece is a run of a rendered prompt.
type Piece struct {
	Text    string
	Control bool // a literal of the template: added tokens are recognised in it; in other text, never
}

// Encode returns the ids of text. The text of an added token in it is ordinary
// text and never becomes that token's id. Each maximal invalid part of the
// input (not valid UTF-8) counts as one U+FFFD, as Decode would write it.
func (t *Tokenizer) Encode(text string) []int32 {
	return t.appendText(make([]int32, 0, len(text)/4+1), text)
}

// EncodeSpecial is Encode with added tokens recognised everywhere, the longest
// first. It is for text that the program itself wrote.
func (t *Tokenizer) EncodeSpecial(text string) []int32 {
	return t.EncodePieces([]Piece{{Text: text, Control: true}})
}

// EncodePieces encodes a rendered prompt. Added tokens are recognised in
// control pieces only, and whatever lies between two recognised tokens is
// encoded as one text, across the borders of pieces: a user's "}" and the
// template's line feed may share a token, as they do where the whole prompt is
// encoded at once.
func (t *Tokenizer) EncodePieces(pieces []Piece) []int32 {
	total := 0
	for _, p := range pieces {
		total += len(p.Text)
	}
	dst := make([]int32, 0, total/4+1)
	var text strings.Builder // what has been read since the last added token
	flush := func() {
		dst = t.appendText(dst, text.String())
		text.Reset()
	}
	for i := 0; i < len(pieces); {
		run := pieces[i].Text
		control := pieces[i].Control
		for i++; i < len(pieces) && pieces[i].Control == control; i++ {
			run += pieces[i].Text
		}
		if !control {
			text.WriteString(run)
			continue
		}
		for run != "" {
			start, token := t.matcher.find(run)
			text.WriteString(run[:start])
			if token == "" {
				break
			}
			flush()
			dst = append(dst, t.addedID[token])
			run = run[start+len(token):]
		}
	}
	flush()
	return dst
}

// Vocab returns the number of usable ids: the largest id plus one. Every id
// below it has a token. A model may have more logits; those are padding.
func (t *Tokenizer) Vocab() int { return len(t.added) }

// ID returns the id of an added token by its text.
func (t *Tokenizer) ID(token string) (int32, bool) {
	id, ok := t.addedID[token]
	return id, ok
}

// Bytes returns the bytes that a token decodes to, for an added token its
// text, and nil for an id outside [0, Vocab()). The caller must not change
// them. They need not be whole characters.
func (t *Tokenizer) Bytes(id int32) []byte {
	if id < 0 || int(id) >= len(t.added) {
		return nil
	}
	from, to := t.offsets[id], t.offsets[id+1]
	return t.arena[from:to:to]
}

// Added reports whether id is an added token.
func (t *Tokenizer) Added(id int32) bool {
	return id >= 0 && int(id) < len(t.added) && t.added[id]
}

// appendText is the pipeline for text without added tokens.
func (t *Tokenizer) appendText(dst []int32, text string) []int32 {
	if !utf8.ValidString(text) {
		settled, _ := appendSettled(nil, []byte(text), true)
		text = string(settled)
	}
	text = nfc(text)
	var m merger
	for p := 0; p < len(text); {
		end := t.classes.next(text, p)
		dst = t.appendPretoken(dst, text[p:end], &m)
		p = end
	}
	return dst
}

// appendPretoken appends the ids of one pre-token, which is not empty.
func (t *Tokenizer) appendPretoken(dst []int32, s string, m *merger) []int32 {
	if len(s) == 1 {
		return append(dst, t.byteID[s[0]])
	}
	if t.whole != nil {
		if id, ok := t.whole[s]; ok {
			return append(dst, id)
		}
	}
	first := len(dst)
	for i := 0; i < len(s); i++ {
		dst = append(dst, t.byteID[s[i]])
	}
	return dst[:first+m.merge(&t.merges, dst[first:])]
}

// addedMatcher finds added tokens in text: the leftmost, and of those that
// start there the longest.
type addedMatcher [256][]string // tokens by first byte, longest first

// find returns the start of the first added token in s and its text, or
// len(s) and "" where there is none.
func (a *addedMatcher) find(s string) (int, string) {
	for p := 0; p < len(s); p++ {
		for _, token := range a[s[p]] {
			if strings.HasPrefix(s[p:], token) {
				return p, token
			}
		}
	}
	return len(s), ""
}
