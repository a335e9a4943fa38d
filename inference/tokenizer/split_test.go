package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// slowSplit is the reference: the seven alternatives of the pattern on a slice
// of characters, each tried at every position, with the unicode package's own
// look-ups.
func slowSplit(text string) []string {
	s := []rune(text)
	isWord := func(r rune) bool { return unicode.In(r, unicode.L, unicode.M) }
	isNumber := func(r rune) bool { return unicode.Is(unicode.N, r) }
	isEnd := func(r rune) bool { return r == '\r' || r == '\n' }
	isSymbol := func(r rune) bool { return !unicode.IsSpace(r) && !isWord(r) && !isNumber(r) }
	while := func(from int, is func(rune) bool) int {
		for from < len(s) && is(s[from]) {
			from++
		}
		return from
	}
	rules := []func(p int) int{ // each returns the end of its match, p for none
		func(p int) int {
			for _, suffix := range []string{"s", "t", "re", "ve", "m", "ll", "d"} {
				end := p + 1 + len(suffix)
				if s[p] == '\'' && end <= len(s) && strings.EqualFold(string(s[p+1:end]), suffix) {
					return end
				}
			}
			return p
		},
		func(p int) int {
			if !isEnd(s[p]) && !unicode.IsLetter(s[p]) && !isNumber(s[p]) {
				if end := while(p+1, isWord); end > p+1 {
					return end
				}
			}
			return while(p, isWord)
		},
		func(p int) int {
			if isNumber(s[p]) {
				return p + 1
			}
			return p
		},
		func(p int) int {
			from := p
			if s[p] == ' ' {
				from++
			}
			if end := while(from, isSymbol); end > from {
				return while(end, isEnd)
			}
			return p
		},
		func(p int) int {
			for end := while(p, unicode.IsSpace); end > p; end-- {
				if isEnd(s[end-1]) {
					return end
				}
			}
			return p
		},
		func(p int) int {
			end := while(p, unicode.IsSpace)
			if end == len(s) {
				return end
			}
			return max(end-1, p)
		},
		func(p int) int { return while(p, unicode.IsSpace) },
	}
	var out []string
	for p := 0; p < len(s); {
		end := p
		for _, rule := range rules {
			if end = rule(p); end > p {
				break
			}
		}
		out = append(out, string(s[p:end]))
		p = end
	}
	return out
}

func fastSplit(c *classTable, text string) []string {
	var out []string
	for p := 0; p < len(text); {
		end := c.next(text, p)
		out = append(out, text[p:end])
		p = end
	}
	return out
}

// The positions follow from the pattern; they hold for every vocabulary.
func TestSplit(t *testing.T) {
	c := newClassTable()
	for text, want := range map[string]string{
		"Hello, world!":                  "Hello|,| world|!",
		"I'm 1234, we're coding.":        "I|'m| |1|2|3|4|,| we|'re| coding|.",
		"  one\t two\n\nthree  \n":       " | one|\t| two|\n\n|three|  \n",
		"def f(x: int):\n    return 1\n": "def| f|(x|:| int|):\n|   | return| |1|\n",
		"Caffè già, l'AI è":              "Caffè| già|,| l|'AI| è",
		"'sample 'S 'ſx":                 "'s|ample| '|S| '|ſx",
		"it'ſx":                          "it|'ſ|x",
		"\u0301!I":                       "\u0301|!I",
		"!\u0301x \u0301":                "!\u0301x| \u0301",
		"☀️x":                            "☀\ufe0fx",
		"☀☀️x":                           "☀☀|\ufe0fx",
		"\r\n \r\n x":                    "\r\n \r\n| x",
		"\n\u00a0\u00a0x":                "\n|\u00a0|\u00a0x",
		"x \u3000":                       "x| \u3000",
		" \n":                            " \n",
		"   !!\r\n\r\n  ":                "  | !!\r\n\r\n|  ",
		"²½Ⅷ٣":                           "²|½|Ⅷ|٣",
		"\tx\vy\u0085z":                  "\tx|\vy|\u0085z",
		"'''ll'":                         "'''|ll|'",
	} {
		if got := strings.Join(fastSplit(c, text), "|"); got != want {
			// A | in no input above, so the joined text is the split.
			t.Errorf("split %q: got %q, want %q", text, got, want)
		}
		if got := strings.Join(slowSplit(text), "|"); got != want {
			t.Errorf("reference split %q: got %q, want %q", text, got, want)
		}
	}
}

func TestSplitRandom(t *testing.T) {
	c := newClassTable()
	r := rand.New(rand.NewPCG(3, 4))
	alphabet := []rune("aZé'sStTrReEvVmMlLdD \t\r\n\u00a0\u2028 109²½!?(<😀\u0301\ufe0f\u0903中ſK\u200d\ufffd\x00\x1c\u180e")
	for range 100_000 {
		s := make([]rune, r.IntN(9))
		for i := range s {
			s[i] = alphabet[r.IntN(len(alphabet))]
		}
		if got, want := fastSplit(c, string(s)), slowSplit(string(s)); !slices.Equal(got, want) {
			t.Fatalf("split %q: got %q, want %q", string(s), got, want)
		}
	}
}

func TestClassTable(t *testing.T) {
	c := newClassTable()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		var want class
		if unicode.In(r, unicode.L, unicode.M) {
			want |= letter
		}
		if unicode.Is(unicode.N, r) {
			want |= number
		}
		if unicode.IsSpace(r) {
			want |= space
		}
		if r == '\r' || r == '\n' {
			want |= newline
		}
		if c[r] != want {
			t.Fatalf("class of %U: got %d, want %d", r, c[r], want)
		}
	}
}

func FuzzSplit(f *testing.F) {
	c := newClassTable()
	for _, s := range []string{"I'm 1234, we're coding.", " \r\n x", "\u0301!I", "'ſ'LL", "☀️ \u3000\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for p := 0; p < len(text); {
			end := c.next(text, p)
			if end <= p || end > len(text) {
				t.Fatalf("next(%q, %d): got %d, want progress within %d bytes", text, p, end, len(text))
			}
			p = end
		}
		if !utf8.ValidString(text) {
			return // the tokenizer never splits such text
		}
		if got, want := fastSplit(c, text), slowSplit(text); !slices.Equal(got, want) {
			t.Fatalf("split %q: got %q, want %q", text, got, want)
		}
	})
}
