package tokenizer

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unicode/utf8"
)

// byteIDs returns one id for each byte.
func byteIDs(tk *Tokenizer, b string) []int32 {
	var ids []int32
	for i := range len(b) {
		ids = append(ids, tk.byteID[b[i]])
	}
	return ids
}

// checkStream pushes ids one by one and checks the rules of Decoder.
func checkStream(t *testing.T, tk *Tokenizer, ids []int32) (deltas []string) {
	t.Helper()
	d := tk.NewDecoder()
	var all []byte // bytes pushed
	joined := ""
	for _, id := range ids {
		delta := d.Push(id)
		if !utf8.ValidString(delta) {
			t.Fatalf("ids %v: Push(%d) gave %q, want valid UTF-8", ids, id, delta)
		}
		all = append(all, tk.Bytes(id)...)
		joined += delta
		deltas = append(deltas, delta)
		// Nothing that is settled may wait, whatever comes next.
		settled, open := slowSettled(all)
		if joined != settled || len(d.held) != open || open > 3 {
			t.Fatalf("ids %v after %d: got %q with %d bytes held, want %q with %d", ids, id, joined, len(d.held), settled, open)
		}
	}
	tail := d.Flush()
	joined += tail
	if want := tk.Decode(ids); joined != want {
		t.Fatalf("ids %v: deltas give %q, whole decode %q", ids, joined, want)
	}
	if again := d.Flush(); again != "" {
		t.Fatalf("second Flush: got %q, want nothing", again)
	}
	return append(deltas, tail)
}

// slowSettled is the reference for invalid bytes: table 3-7 of the Unicode
// standard, byte by byte. It returns the settled text and how many bytes at the
// end are the start of a character.
func slowSettled(b []byte) (string, int) {
	in := func(v, lo, hi byte) bool { return v >= lo && v <= hi }
	out := []byte{}
	for i := 0; i < len(b); {
		lead, n, lo, hi := b[i], 0, byte(0x80), byte(0xbf)
		switch {
		case lead < 0x80:
			n = 1
		case in(lead, 0xc2, 0xdf):
			n = 2
		case in(lead, 0xe0, 0xef):
			n = 3
			if lead == 0xe0 {
				lo = 0xa0
			} else if lead == 0xed {
				hi = 0x9f
			}
		case in(lead, 0xf0, 0xf4):
			n = 4
			if lead == 0xf0 {
				lo = 0x90
			} else if lead == 0xf4 {
				hi = 0x8f
			}
		}
		good := 1
		for good < n && i+good < len(b) && in(b[i+good], lo, hi) {
			good, lo, hi = good+1, 0x80, 0xbf
		}
		switch {
		case good == n:
			out = append(out, b[i:i+n]...)
		case n > 0 && i+good == len(b):
			return string(out), good
		default:
			out = append(out, "\ufffd"...)
		}
		i += good
	}
	return string(out), 0
}

func TestDecoder(t *testing.T) {
	tk := small(t)
	join := func(bytesOf string, more ...int32) []int32 { return append(byteIDs(tk, bytesOf), more...) }
	think, _ := tk.ID("<think>")
	for name, c := range map[string]struct {
		ids    []int32
		deltas []string // of each Push and, last, of Flush
	}{
		"emoji in bytes":      {join("🌍"), []string{"", "", "", "🌍", ""}},
		"two-byte letter":     {join("ď"), []string{"", "ď", ""}},
		"cut in an emoji":     {join("a\xf0\x9f\x8c"), []string{"a", "", "", "", "\ufffd"}},
		"invalid byte":        {join("a\xffb"), []string{"a", "\ufffd", "b", ""}},
		"broken start":        {join("\xf0\x9fb"), []string{"", "", "\ufffdb", ""}},
		"start after a start": {join("\xe4\xe4\xbd\xa0"), []string{"", "\ufffd", "", "你", ""}},
		"surrogate":           {join("\xed\xa0\x80"), []string{"", "\ufffd\ufffd", "\ufffd", ""}},
		"added token":         {join("\xe4\xbd", think), []string{"", "", "\ufffd<think>", ""}},
		"unknown id":          {join("\xe4\xbd", 99999), []string{"", "", "", "\ufffd"}},
	} {
		got := checkStream(t, tk, c.ids)
		for i := range max(len(got), len(c.deltas)) {
			if i >= len(got) || i >= len(c.deltas) || got[i] != c.deltas[i] {
				t.Errorf("%s: got %q, want %q", name, got, c.deltas)
				break
			}
		}
	}
	for _, text := range []string{"👨‍👩‍👧‍👦", "你好世界", "ď", "🌍", "नमस्ते"} {
		for cut := range len(text) {
			ids := append(tk.Encode(text), byteIDs(tk, text[:cut])...)
			checkStream(t, tk, ids)
		}
		if got := tk.Decode(tk.Encode(text)); got != text {
			t.Errorf("Decode(Encode(%q)): got %q", text, got)
		}
	}
}

func TestDecoderRandom(t *testing.T) {
	tk := small(t)
	r := rand.New(rand.NewPCG(5, 6))
	for range 5000 {
		ids := make([]int32, r.IntN(12))
		for i := range ids {
			ids[i] = int32(r.IntN(tk.Vocab()))
			if r.IntN(3) > 0 {
				ids[i] = tk.byteID[r.IntN(256)]
			}
		}
		checkStream(t, tk, ids)
	}
}

func FuzzDecoderStream(f *testing.F) {
	tk := small(f)
	f.Add([]byte("\xf0\x9f\x8c\x8d"))
	f.Add([]byte("a\xff\xe4\xbd\xf0\x9f\x8cz\xed\xa0\x80\xf4\x90"))
	f.Add(bytes.Repeat([]byte{0xf0, 0x9f}, 9))
	f.Fuzz(func(t *testing.T, b []byte) {
		b = b[:min(len(b), 200)] // checkStream is quadratic
		checkStream(t, tk, byteIDs(tk, string(b)))
		var ids []int32
		for i := 0; i+1 < len(b); i += 2 {
			ids = append(ids, (int32(b[i])<<8|int32(b[i+1]))%int32(tk.Vocab()+2))
		}
		checkStream(t, tk, ids)
	})
}
