package sample

// Stopper finds stop strings in a text that arrives in pieces. Rules:
//   - the text ends where a stop string is first complete; of several that
//     complete at the same byte the longest counts (it starts first);
//   - the text before that stop string is emitted, the stop string and what
//     follows are not;
//   - what may still become a stop string is held back: the longest end of the
//     text that some stop string starts with. All else is emitted at once;
//   - where the borders of the pieces lie makes no difference to the whole.
//
// An earlier start does not win over an earlier end: with the stops "abcd" and
// "bc", "abc" ends at "bc", because waiting for the d would cost tokens that the
// caller asked not to be made.
//
// A Stopper belongs to one goroutine.
type Stopper struct {
	stops   []stopString
	held    string // emitted by nobody yet
	matched string
}

// stopString is a Knuth-Morris-Pratt automaton: constant work for a byte.
type stopString struct {
	text    string
	retreat []int // [len(text)+1] length of the longest proper border of text[:i]
	length  int   // how much of text the text so far ends with
}

// NewStopper returns a stopper at the start of a text. Empty stop strings are
// left out: they would end every text before it begins.
func NewStopper(stops []string) *Stopper {
	s := &Stopper{}
	for _, text := range stops {
		if text != "" {
			s.stops = append(s.stops, stopString{text: text, retreat: borders(text)})
		}
	}
	return s
}

func borders(text string) []int {
	out := make([]int, len(text)+1)
	for i, n := 1, 0; i < len(text); i++ {
		for n > 0 && text[n] != text[i] {
			n = out[n]
		}
		if text[n] == text[i] {
			n++
		}
		out[i+1] = n
	}
	return out
}

// step reads one byte and reports whether the stop string is complete.
func (s *stopString) step(b byte) bool {
	for s.length > 0 && s.text[s.length] != b {
		s.length = s.retreat[s.length]
	}
	if s.text[s.length] == b {
		s.length++
	}
	return s.length == len(s.text)
}

// Push reads the next piece of text. It returns the text that may be shown and
// whether a stop string has ended the text; behind that it returns nothing more.
// Where pieces and stop strings are whole characters, so is what it returns.
func (s *Stopper) Push(text string) (emit string, stopped bool) {
	if s.matched != "" {
		return "", true
	}
	all := s.held + text
	for i := len(s.held); i < len(all); i++ {
		for j := range s.stops {
			stop := &s.stops[j]
			if stop.step(all[i]) && len(stop.text) > len(s.matched) {
				s.matched = stop.text
			}
		}
		if s.matched != "" {
			s.held = ""
			return all[:i+1-len(s.matched)], true
		}
	}
	hold := 0
	for _, stop := range s.stops {
		hold = max(hold, stop.length)
	}
	s.held = all[len(all)-hold:]
	return all[:len(all)-hold], false
}

// Flush ends the text and returns what was held back.
func (s *Stopper) Flush() string {
	held := s.held
	s.held = ""
	for j := range s.stops {
		s.stops[j].length = 0
	}
	return held
}

// Matched returns the stop string that ended the text, "" while none has.
func (s *Stopper) Matched() string { return s.matched }
