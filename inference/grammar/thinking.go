package grammar

import (
	"bytes"
	"math"
	"slices"
)

// Thinking masks what comes before a form holds, or where none does but calls must not come: all tokens but a few. It belongs to
// one answer.
type Thinking struct {
	v    *Vocabulary
	held bool // the answer has a form
	base []uint64
	tail []byte // the last bytes, as many as could begin a tag
}

// The tags that must not be spelled out: only as the tokens that they are do they count.
var spelled = [...]string{"</think>", callOpen}

const longestTag = len(callOpen)

// NewThinking is the start of an answer. With held, the end of the answer and tags that are spelled out are not allowed either.
func (v *Vocabulary) NewThinking(held bool) *Thinking {
	t := &Thinking{v: v, held: held, base: make([]uint64, (v.size+63)/64)}
	for i := range t.base {
		t.base[i] = math.MaxUint64
	}
	for _, id := range v.special[symCallOpen-256] {
		unset(t.base, id)
	}
	if held {
		for _, id := range v.stops {
			unset(t.base, id)
		}
	}
	return t
}

// Mask returns the tokens that may come next. The caller must not change it; it is valid until the next call.
func (t *Thinking) Mask() []uint64 {
	if !t.held {
		return t.base
	}
	var out []uint64
	for _, tag := range spelled {
		for n := 1; n < len(tag) && n <= len(t.tail); n++ {
			if string(t.tail[len(t.tail)-n:]) != tag[:n] {
				continue
			}
			for _, id := range t.v.beginning(tag[n:]) {
				if out == nil {
					out = slices.Clone(t.base)
				}
				unset(out, id)
			}
		}
	}
	if out != nil {
		return out
	}
	return t.base
}

// Accept goes on by a token.
func (t *Thinking) Accept(id int32) {
	if id < 0 || int(id) >= t.v.size {
		return
	}
	t.tail = append(t.tail, t.v.bytes[id]...)
	t.tail = bytes.Clone(t.tail[max(0, len(t.tail)-longestTag):])
}

// beginning lists the tokens of text that begin with s.
func (v *Vocabulary) beginning(s string) []int32 {
	i, end := 0, len(v.all)
	for d := 0; d < len(s); {
		if i >= end {
			return nil
		}
		n := &v.all[i]
		switch {
		case n.b != s[d]:
			i = int(n.after)
		case d == len(s)-1:
			var out []int32
			for _, x := range v.all[i:n.after] {
				if x.token >= 0 {
					out = append(out, x.token)
				}
			}
			return out
		default:
			end = int(n.after)
			i++
			d++
		}
	}
	return nil
}
