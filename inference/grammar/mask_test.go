package grammar

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"pond/inference/sample"
)

// made is a vocabulary of a given size in the likeness of a real one: every byte, words in several scripts with and without a space,
// runs of punctuation and white space as code has them, parts of characters, and added tokens at the end.
func made(size int) *Vocabulary {
	rnd := rand.New(rand.NewPCG(7, 7))
	seen := map[string]bool{}
	var all []string
	add := func(s string) {
		if s != "" && !seen[s] {
			seen[s] = true
			all = append(all, s)
		}
	}
	for b := range 256 {
		add(string([]byte{byte(b)}))
	}
	punctuation := []rune("\"\"\"''{}[]():;,.<>/\\=+-*&|!?#@$%^_`~  \n\t")
	for range size / 20 {
		var s []rune
		for range 1 + rnd.IntN(5) {
			s = append(s, punctuation[rnd.IntN(len(punctuation))])
		}
		add(string(s))
	}
	for n := range 100 {
		add(string(slices.Repeat([]rune(" "), n+1)))
		add("\n" + string(slices.Repeat([]rune(" "), n)))
	}
	for _, s := range []string{"</", "parameter", ">\n", "function", "</parameter", "\n</", "=\"", "\":", "\",", "\"}", "\"]", "true", "false", "null", "{\"", "[\"", " \"", "\": ", "\\u", "\\\"", "\\n"} {
		add(s)
	}
	scripts := [][2]rune{{'a', 'z'}, {'a', 'z'}, {'a', 'z'}, {'A', 'Z'}, {0xe0, 0xff}, {0x430, 0x44f}, {0x4e00, 0x9fff}, {0x3040, 0x30ff}, {0x1f300, 0x1f5ff}}
	for len(all) < size-30 {
		script := scripts[rnd.IntN(len(scripts))]
		var s []rune
		if rnd.IntN(2) == 0 {
			s = append(s, ' ')
		}
		for range 1 + rnd.IntN(9) {
			s = append(s, script[0]+rnd.Int32N(script[1]-script[0]+1))
		}
		text := string(s)
		if rnd.IntN(40) == 0 {
			text = text[:len(text)-1] // may end inside a character
		}
		if rnd.IntN(60) == 0 {
			text += "\""
		}
		add(text)
	}
	first := len(all)
	added := []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>", callOpen, callClose, "<think>", "</think>"}
	for i := len(added); i < size-first; i++ {
		added = append(added, fmt.Sprintf("<|%d|>", i))
	}
	all = append(all, added...)
	return NewVocabulary(size, func(id int32) []byte { return []byte(all[id]) }, func(id int32) bool { return int(id) >= first }, []int32{int32(first), int32(first + 2)})
}

// slowMask asks for each token whether it can be read.
func slowMask(m *machine, v *Vocabulary, at int32) []uint64 {
	out := make([]uint64, (v.size+63)/64)
	for id := range int32(v.size) {
		s, special := v.symbol[id]
		switch {
		case special && s == symbols:
			if m.situations[at].whole {
				set(out, id)
			}
		case special:
			if m.step(at, s) != 0 {
				set(out, id)
			}
		case len(v.bytes[id]) > 0 && m.read(at, v.bytes[id]) != 0:
			set(out, id)
		}
	}
	return out
}

func has(mask []uint64, id int32) bool { return mask[id/64]>>(id%64)&1 == 1 }

// drive draws tokens at random from the masks, as a model at a very high temperature would, and calls each at every place.
func drive(t testing.TB, b *Bound, rnd *rand.Rand, steps int, each func(m *Matcher, mask []uint64)) {
	m := b.Start()
	for range steps {
		mask := m.Mask()
		each(m, mask)
		var ids []int32
		for id := range int32(b.vocab.size) {
			if has(mask, id) {
				ids = append(ids, id)
			}
		}
		if len(ids) == 0 {
			t.Fatal("got a mask without a token")
		}
		id := ids[rnd.IntN(len(ids))]
		if slices.Contains(b.vocab.stops, id) || m.Ended() {
			m = b.Start()
			continue
		}
		if err := m.Accept(id); err != nil {
			t.Fatal(err)
		}
	}
}

var maskSchemas = []string{
	`{"type":"object"}`,
	`{"type":"object","properties":{"name":{"type":"string","maxLength":40},"tags":{"type":"array","items":{"type":"string","minLength":1,"maxLength":3},"maxItems":3},"n":{"type":"integer","minimum":0,"maximum":77},"é":{"enum":["ja","jaja","日本"]}},"required":["name","tags"],"additionalProperties":false}`,
	`{"type":"array","items":{"anyOf":[{"type":"string","maxLength":5},{"type":"string","pattern":"^[a-z]+x$"},{"type":"null"}]}}`,
	`{"type":"object","properties":{"when":{"type":"string","format":"date-time"}},"required":["when"],"additionalProperties":{"type":"number"}}`,
}

func TestMaskEqualsAskingEachToken(t *testing.T) {
	v := made(3000)
	for _, schema := range maskSchemas {
		g, err := Compile([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		drive(t, g.Bind(v), rand.New(rand.NewPCG(3, 4)), 150, func(m *Matcher, mask []uint64) {
			if want := slowMask(m.m, v, m.at); !slices.Equal(mask, want) {
				for id := range int32(v.size) {
					if has(mask, id) != has(want, id) {
						t.Fatalf("%s: token %q: got allowed %v, want %v", schema, v.bytes[id], has(mask, id), has(want, id))
					}
				}
			}
		})
	}
}

// A Bound that remembers too much begins anew under the answers that run.
func TestBoundBeginsAnew(t *testing.T) {
	v := made(1000)
	g, err := Compile([]byte(maskSchemas[1]))
	if err != nil {
		t.Fatal(err)
	}
	b := g.Bind(v)
	n := 0
	drive(t, b, rand.New(rand.NewPCG(5, 6)), 100, func(m *Matcher, mask []uint64) {
		if want := slowMask(m.m, v, m.at); !slices.Equal(mask, want) {
			t.Fatal("got another mask after a renewal")
		}
		if n++; n%7 == 0 {
			b.m.masks = maxMasks + 1
		}
	})
}

// TestMaskCost prints what masks cost with a vocabulary of the real model's size; make schemas runs it.
func TestMaskCost(t *testing.T) {
	if os.Getenv("POND_MASKS") == "" {
		t.Skip("a measurement: set POND_MASKS, or run make masks")
	}
	start := time.Now()
	v := made(248_320)
	t.Logf("vocabulary of %d tokens: %d nodes (%d to look at in strings, %d in free text), made in %v", v.size, len(v.all), len(v.quoted), len(v.tagged), time.Since(start))
	for _, schema := range maskSchemas {
		start := time.Now()
		g, err := Compile([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		b := g.Bind(v)
		compiled := time.Since(start)
		for _, round := range []string{"first", "second"} {
			var took []time.Duration
			rnd := rand.New(rand.NewPCG(9, 9))
			m := b.Start()
			for range 2000 {
				start := time.Now()
				mask := m.Mask()
				took = append(took, time.Since(start))
				id := likely(mask, v, rnd)
				if slices.Contains(v.stops, id) || m.Ended() {
					m = b.Start()
					continue
				}
				if err := m.Accept(id); err != nil {
					t.Fatal(err)
				}
			}
			slices.Sort(took)
			t.Logf("%.40s…: compiled in %v; %s 2000 masks: median %v, p99 %v, most %v", schema, compiled, round, took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
		}
	}
	// What the sampler takes longer for a mask: a copy of the logits and a pass over it.
	s, err := sample.New(sample.Params{}, v.size, nil)
	if err != nil {
		t.Fatal(err)
	}
	logits := make([]float32, v.size)
	for name, mask := range map[string][]uint64{"no mask": nil, "a mask of a string": v.allPlain, "a mask of one token": make([]uint64, len(v.allPlain))} {
		if mask != nil {
			set(mask, 5)
		}
		var took []time.Duration
		for pos := range 200 {
			start := time.Now()
			if _, err := s.NextAmong(logits, mask, pos, -1); err != nil {
				t.Fatal(err)
			}
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		t.Logf("choosing with %s: median %v, p99 %v", name, took[100], took[197])
	}
}

// likely draws an allowed token at random, every fourth time one that is short, as those that close something are.
func likely(mask []uint64, v *Vocabulary, rnd *rand.Rand) int32 {
	for range 2000 {
		id := rnd.Int32N(int32(v.size))
		if rnd.IntN(4) == 0 {
			id = rnd.Int32N(256)
		}
		if has(mask, id) {
			return id
		}
	}
	for id := range int32(v.size) {
		if has(mask, id) {
			return id
		}
	}
	return -1
}
