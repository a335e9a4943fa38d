package sample

// Repeats notices a text that goes round in circles: a passage that comes again and again, word for word. It only notices; what to do
// about it is for whoever asked. Lists, tables and code repeat a little, so it takes four rounds and repeatTokens in all.
//
// A Repeats belongs to one goroutine.
type Repeats struct {
	recent []int32 // the last tokens, at most repeatWindow
	since  int     // tokens since the last look
	found  bool
	border []int // scratch
}

const (
	repeatWindow = 1024 // tokens looked at: four rounds of a passage of 256
	repeatRounds = 4
	repeatTokens = 96
	repeatEvery  = 16 // tokens between two looks
)

// Accept adds a token and reports whether the text repeats itself, as of the last look.
func (r *Repeats) Accept(id int32) bool {
	if len(r.recent) == repeatWindow {
		copy(r.recent, r.recent[1:])
		r.recent = r.recent[:repeatWindow-1]
	}
	r.recent = append(r.recent, id)
	if r.since++; r.since >= repeatEvery {
		r.since, r.found = 0, r.look()
	}
	return r.found
}

// look asks whether some end of the text is a passage four times over. Read backwards, an end is a beginning, and the longest border of a
// beginning gives its shortest period (Knuth, Morris and Pratt).
func (r *Repeats) look() bool {
	n := len(r.recent)
	at := func(i int) int32 { return r.recent[n-1-i] }
	r.border = append(r.border[:0], 0)
	for i := 1; i < n; i++ {
		b := r.border[i-1]
		for b > 0 && at(b) != at(i) {
			b = r.border[b-1]
		}
		if at(b) == at(i) {
			b++
		}
		r.border = append(r.border, b)
		if length, period := i+1, i+1-b; length >= repeatTokens && length >= repeatRounds*period {
			return true
		}
	}
	return false
}
