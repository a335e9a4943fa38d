package tokenizer

import "unicode/utf8"

// Decoder turns a stream of ids into text. Rules:
//   - what Push and Flush return, joined, is what Decode returns for all ids;
//   - Push returns valid UTF-8 and never a part of a character: the start of
//     one (at most 3 bytes) is held until it is complete or certainly invalid;
//   - each maximal invalid part becomes one U+FFFD (Unicode 3.9, table 3-8; the
//     reference decoder and WHATWG do the same), as soon as it is certain.
//
// A Decoder belongs to one goroutine.
type Decoder struct {
	t    *Tokenizer
	held []byte
	text []byte // scratch of Push
}

// NewDecoder returns a decoder at the start of a text.
func (t *Tokenizer) NewDecoder() *Decoder { return &Decoder{t: t} }

// Push returns the text that id completes; "" while a character is incomplete
// and for an id outside [0, Vocab()).
func (d *Decoder) Push(id int32) string {
	d.held = append(d.held, d.t.Bytes(id)...)
	text, rest := appendSettled(d.text[:0], d.held, false)
	d.text = text
	d.held = append(d.held[:0], rest...)
	return string(text)
}

// Pending reports whether the ids so far end inside a character.
func (d *Decoder) Pending() bool { return len(d.held) > 0 }

// Flush ends the text: it returns the held bytes as U+FFFD, and "" where none
// are held. The decoder is at the start of a new text then.
func (d *Decoder) Flush() string {
	text, _ := appendSettled(nil, d.held, true)
	d.held = d.held[:0]
	return string(text)
}

// Decode returns the text of ids, added tokens included.
func (t *Tokenizer) Decode(ids []int32) string {
	var all []byte
	for _, id := range ids {
		all = append(all, t.Bytes(id)...)
	}
	if utf8.Valid(all) {
		return string(all)
	}
	text, _ := appendSettled(nil, all, true)
	return string(text)
}

// appendSettled appends b to dst with invalid parts replaced. Unless final, an
// incomplete character at the end of b is left over: it returns that.
func appendSettled(dst, b []byte, final bool) (text, rest []byte) {
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r != utf8.RuneError || size > 1 {
			dst = append(dst, b[:size]...)
			b = b[size:]
			continue
		}
		if !final && !utf8.FullRune(b) {
			break
		}
		// The maximal part is the longest that a valid character starts with.
		part := 1
		for part < len(b) && !utf8.FullRune(b[:part+1]) {
			part++
		}
		dst = utf8.AppendRune(dst, utf8.RuneError)
		b = b[part:]
	}
	return dst, b
}
