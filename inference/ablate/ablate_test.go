package ablate

import (
	"slices"
	"strings"
	"testing"
)

func TestTableIsSortedAndSaysBothWays(t *testing.T) {
	names := all()
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("got %v, want each switch once, sorted", names)
	}
	if len(names) > 64 {
		t.Errorf("got %d switches, want at most the 64 that a Set can note", len(names))
	}
	for _, e := range Table() {
		if e.On == "" || e.Off == "" {
			t.Errorf("%s: does not say what happens with and without it", e.Switch)
		}
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""}, {" , ", ""}, {"fused-gdn", "fused-gdn"}, {"fused-norm, concurrent-encoding,fused-norm", "concurrent-encoding,fused-norm"},
	} {
		s, err := Parse(c.in)
		if err != nil || s.String() != c.want {
			t.Errorf("%q: got %q and %v, want %q", c.in, s, err, c.want)
		}
	}
	if _, err := Parse("fused-gdn,fast"); err == nil || !strings.Contains(err.Error(), `got "fast"`) || !strings.Contains(err.Error(), "fused-norm") {
		t.Errorf("got %v, want an error that names the word and the table", err)
	}
}

// A switch that nobody asked about has not acted: a report must not claim that it was measured.
func TestActed(t *testing.T) {
	s, err := Parse("fused-gdn,fused-norm")
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Acted(); len(got) != 0 {
		t.Errorf("got %v, want none before anyone asks", got)
	}
	if !s.Off(FusedNorm) || s.Off(FusedExperts) {
		t.Error("fused-norm is off and fused-experts is not")
	}
	if got := s.Acted(); !slices.Equal(got, []Switch{FusedNorm}) {
		t.Errorf("got %v, want fused-norm", got)
	}
	var none *Set
	if none.Off(FusedNorm) || none.Acted() != nil || none.String() != "" {
		t.Error("nil is not a set of none")
	}
}
