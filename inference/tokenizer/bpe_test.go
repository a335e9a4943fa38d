package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

// slowMerge is the reference: again and again the leftmost pair of the lowest
// rank.
func slowMerge(t *mergeTable, ids []int32) []int32 {
	ids = slices.Clone(ids)
	for {
		best, at, made := int32(noMerge), 0, int32(0)
		for i := 0; i+1 < len(ids); i++ {
			if rank, id := t.find(ids[i], ids[i+1]); rank < best {
				best, at, made = rank, i, id
			}
		}
		if best == noMerge {
			return ids
		}
		ids = slices.Replace(ids, at, at+2, made)
	}
}

func TestMerge(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var m merger
	for range 300 {
		// A few symbols and many merges, so that pairs overlap and chain.
		table := newMergeTable(60)
		next := int32(3)
		for range r.IntN(60) {
			if table.add(r.Int32N(next), r.Int32N(next), next) {
				next++
			}
		}
		for _, n := range []int{1, 2, 3, 10, scanLimit - 1, scanLimit, scanLimit + 1, 200} {
			ids := make([]int32, n)
			for i := range ids {
				ids[i] = r.Int32N(3)
			}
			want := slowMerge(&table, ids)
			if got := slices.Clone(ids); !slices.Equal(got[:m.merge(&table, got)], want) {
				t.Fatalf("merge of %d ids: got %v, want %v", n, got, want)
			}
			if got := slices.Clone(ids); !slices.Equal(got[:m.mergeLong(&table, got)], want) {
				t.Fatalf("mergeLong of %d ids: got %v, want %v", n, got, want)
			}
		}
	}
}

func TestMergeTable(t *testing.T) {
	table := newMergeTable(1000)
	r := rand.New(rand.NewPCG(9, 10))
	want := map[[2]int32][2]int32{}
	for len(want) < 1000 {
		pair := [2]int32{r.Int32N(300), r.Int32N(300)}
		_, twice := want[pair]
		if added := table.add(pair[0], pair[1], int32(len(want))+7); added == twice {
			t.Fatalf("add %v: got %v, want %v", pair, added, !twice)
		}
		if !twice {
			want[pair] = [2]int32{int32(len(want)), int32(len(want)) + 7}
		}
	}
	for left := range int32(300) {
		for right := range int32(300) {
			rank, id := table.find(left, right)
			w, ok := want[[2]int32{left, right}]
			if !ok {
				w = [2]int32{noMerge, 0}
			}
			if rank != w[0] || id != w[1] {
				t.Fatalf("find(%d, %d): got %d %d, want %v", left, right, rank, id, w)
			}
		}
	}
}

// nfcPlain is norm's NFC wherever that does not insert characters.
func TestNFCPlain(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	alphabet := []rune("aeEoOsAKi\u0300\u0301\u0302\u0308\u030a\u0323\u0327\u0338\u0345\u1100\u1161\u11a8\uac00\uac01\u0958\u212b\u1e9b\u0344\u0f73\u0bc6\u0bd7\u0bbe中<=\U000110a5\U000110ba\u0653\u0627")
	for range 50_000 {
		s := make([]rune, r.IntN(9))
		for i := range s {
			s[i] = alphabet[r.IntN(len(alphabet))]
			if r.IntN(4) == 0 {
				s[i] = r.Int32N(0x20000)
			}
		}
		text := string(s) // surrogates become U+FFFD
		if got, want := nfcPlain(text), norm.NFC.String(text); got != want {
			t.Fatalf("nfcPlain(%+q): got %+q, want %+q", text, got, want)
		}
	}
}

// Long runs of marks keep their characters: no U+034F comes in between.
func TestNFCLongRuns(t *testing.T) {
	for n := range 45 {
		acutes, cedillas := strings.Repeat("\u0301", n), strings.Repeat("\u0327", n)
		for text, want := range map[string]string{
			"e" + acutes + "\u0301x":                      "é" + acutes + "x",
			"가" + strings.Repeat("\u1161", n):             "가" + strings.Repeat("\u1161", n),
			"q" + strings.Repeat("\u0301\u0327", n) + "x": "q" + cedillas + acutes + "x",
			"c" + acutes + "\u0327y":                      "\u1e09" + strings.TrimPrefix(acutes, "\u0301") + "y",
			"=" + acutes + strings.Repeat("\u0344", n):    "=" + acutes + strings.Repeat("\u0308\u0301", n),
		} {
			if n == 0 {
				want = norm.NFC.String(text)
			}
			if got := nfc(text); got != want {
				t.Fatalf("nfc(%+q): got %+q, want %+q", text, got, want)
			}
		}
	}
}
