package console

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// Marks stand on the prompt's line for what would break it, and are turned back when the message is sent: the two symbols that
// Unicode has for showing these characters.
const (
	newlineMark = '␊'
	tabMark     = '␉'
)

// Bytes that a keyboard sends.
const (
	ctrlC  = 0x03
	ctrlZ  = 0x1a
	escape = 0x1b

	// interruptKey is given to the line editor for Ctrl-C: it hands on a key that it does not know, where Ctrl-C itself ends the line.
	interruptKey = 0x1c
)

const (
	pasteStart = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// editingKeys are the control characters that the line editor acts on.
const editingKeys = "\x01\x02\x04\x05\x06\x08\x0b\x0c\x0e\x10\x14\x15\x17\x7f"

// sequences are the keys with an escape sequence of their own, by what follows "ESC [", as the line editor knows them. What is not here
// is left out, so no sequence ever becomes text.
func sequences(s string) string {
	switch s {
	case "A", "B", "C", "D", "H", "F", "3~":
		return "\x1b[" + s
	case "1~", "7~":
		return "\x1b[H"
	case "4~", "8~":
		return "\x1b[F"
	case "1;3C", "1;5C":
		return "\x1b[1;3C"
	case "1;3D", "1;5D":
		return "\x1b[1;3D"
	}
	return ""
}

// keys turns what a terminal sends into what golang.org/x/term's line editor takes.
//
//   - Text goes to the editor as a paste, because it bounds a typed line to 4,096 characters and a pasted one not at all.
//   - A newline inside the terminal's own paste becomes a mark: a paste is one message, sent by the Enter after it.
//   - Incomplete characters and sequences wait for their rest; invalid ones are left out.
type keys struct {
	held    []byte // an incomplete character or sequence
	pasting bool   // between the terminal's marks of a paste
	text    bool   // the editor is told of a paste
	cr      bool   // the last character of the paste was a carriage return
}

// push returns what the editor is to be given for what came. Ctrl-C is interruptKey, Ctrl-Z stays Ctrl-Z.
func (k *keys) push(in []byte) []byte {
	in = slices.Concat(k.held, in)
	k.held = nil
	var out []byte
	key := func(s string) {
		if k.text {
			out = append(out, pasteEnd...)
			k.text = false
		}
		out = append(out, s...)
	}
	text := func(r rune) {
		if !k.text {
			out = append(out, pasteStart...)
			k.text = true
		}
		out = utf8.AppendRune(out, r)
	}
	for len(in) > 0 {
		if in[0] == escape {
			n, whole := sequenceLength(in)
			if !whole {
				k.held = slices.Clone(in)
				break
			}
			s := string(in[:n])
			in = in[n:]
			switch {
			case s == pasteStart:
				k.pasting, k.cr = true, false
			case s == pasteEnd:
				k.pasting = false
			case n > 2 && !k.pasting:
				key(sequences(s[2:]))
			}
			continue
		}
		if !utf8.FullRune(in) {
			k.held = slices.Clone(in)
			break
		}
		r, n := utf8.DecodeRune(in)
		invalid := r == utf8.RuneError && n == 1
		in = in[n:]
		wasCR := k.cr
		k.cr = r == '\r'
		switch {
		case invalid:
		case r == ctrlC:
			k.pasting = false // the way out of a paste whose end never comes
			key(string(rune(interruptKey)))
		case k.pasting && r == '\n' && wasCR: // the second half of CR LF
		case k.pasting && (r == '\r' || r == '\n'):
			text(newlineMark)
		case k.pasting && r == '\t':
			text(tabMark)
		case unicode.IsControl(r):
			if !k.pasting && (r == '\r' || r == '\n' || r == ctrlZ || slices.Contains([]rune(editingKeys), r)) {
				key(string(r))
			}
		default:
			text(r)
		}
	}
	key("")
	return out
}

// sequenceLength is the length of the escape sequence that b begins with (ECMA-48 5.4, and ESC O of the keypad's application mode), 1
// for an escape that begins none. whole is false while more has to come.
func sequenceLength(b []byte) (n int, whole bool) {
	switch {
	case len(b) == 1:
		return 0, false
	case b[1] == 'O':
		return min(len(b), 3), len(b) >= 3
	case b[1] != '[':
		return 1, true
	}
	for i := 2; i < len(b); i++ {
		switch c := b[i]; {
		case c >= 0x40 && c <= 0x7e:
			return i + 1, true
		case c < 0x20 || c > 0x7e:
			return i, true // not a sequence after all
		}
	}
	return 0, false
}
