package grammar

// The automaton: a recursive transition network over symbols. Rules:
//   - a rule is known by its first state, and ends in every state marked final;
//   - a call runs a rule and goes on at ret, so nesting and recursion need no copies; no rule calls itself before it has read a symbol;
//   - after trim, every state can reach the end of its rule: whatever was read can be completed.

// symbol is a byte, or a token that stands for itself and is no text.
type symbol = uint16

const (
	symCallOpen  symbol = 256 + iota // <tool_call>
	symCallClose                     // </tool_call>
	symOther                         // any other added token
	symbols      = 256 + iota
)

type stateID = int32

// edge reads one symbol from lo to hi.
type edge struct {
	lo, hi symbol
	to     stateID
}

type call struct{ rule, ret stateID }

// body marks the states in which most tokens of a vocabulary are allowed, so that a mask need not look at each of them.
type body uint8

const (
	noBody     body = iota
	stringBody      // between two characters of a JSON string; room says how many more there may be
	charRest        // what goes on with a character in a stringBody; it reads none that is plain
	freeText        // in free text, at no beginning of a tag
	likeText        // in what turns into one of the others, as base stands, unless it goes on as it began: a tag in free text, a key
)

const unbounded = -1

type state struct {
	edges []edge
	eps   []stateID
	calls []call
	final bool
	body  body
	room  int32         // stringBody: characters that may follow, or unbounded
	base  stateID       // likeText: what it is like
	grow  func(stateID) // adds the edges when the state is reached first
}

type network struct {
	states []state
	limit  int
	full   bool // the limit was passed
}

// maxStates bounds a grammar: 100 bytes each.
const maxStates = 400_000

func newNetwork() *network { return &network{limit: maxStates, states: make([]state, 1, 64)} } // state 0 is none

func (n *network) add() stateID {
	if len(n.states) >= n.limit {
		n.full = true
		return stateID(len(n.states) - 1)
	}
	n.states = append(n.states, state{})
	return stateID(len(n.states) - 1)
}

func (n *network) edge(from, to stateID, lo, hi symbol) {
	n.states[from].edges = append(n.states[from].edges, edge{lo, hi, to})
}

func (n *network) byte(from, to stateID, b byte) { n.edge(from, to, symbol(b), symbol(b)) }

func (n *network) skip(from, to stateID) { n.states[from].eps = append(n.states[from].eps, to) }

func (n *network) call(from, to, rule stateID) {
	n.states[from].calls = append(n.states[from].calls, call{rule, to})
}

// text reads s.
func (n *network) text(from, to stateID, s string) {
	if s == "" {
		n.skip(from, to)
		return
	}
	for i := 0; i < len(s)-1; i++ {
		next := n.add()
		n.byte(from, next, s[i])
		from = next
	}
	n.byte(from, to, s[len(s)-1])
}

// end makes a final state.
func (n *network) end() stateID {
	s := n.add()
	n.states[s].final = true
	return s
}

// texts reads one of the given, which share their beginnings.
func (n *network) texts(from, to stateID, all []string) {
	type key struct {
		at stateID
		b  byte
	}
	next := map[key]stateID{}
	for _, s := range all {
		at := from
		for i := 0; i < len(s)-1; i++ {
			k := key{at, s[i]}
			if next[k] == 0 {
				next[k] = n.add()
				n.byte(at, next[k], s[i])
			}
			at = next[k]
		}
		n.text(at, to, s[max(0, len(s)-1):])
	}
}

// runes reads a character from lo to hi in UTF-8, surrogates left out.
func (n *network) runes(from, to stateID, lo, hi rune) {
	for _, r := range [...][2]rune{{0, 0x7f}, {0x80, 0x7ff}, {0x800, 0xd7ff}, {0xe000, 0xffff}, {0x10000, 0x10ffff}} {
		if a, b := max(lo, r[0]), min(hi, r[1]); a <= b {
			n.sequence(from, to, []byte(string(a)), []byte(string(b)))
		}
	}
}

// sequence reads the UTF-8 forms from a to b, of one length.
func (n *network) sequence(from, to stateID, a, b []byte) {
	if len(a) == 1 {
		n.edge(from, to, symbol(a[0]), symbol(b[0]))
		return
	}
	rest := func(first, last byte, a, b []byte) {
		next := n.add()
		n.edge(from, next, symbol(first), symbol(last))
		n.sequence(next, to, a, b)
	}
	if a[0] == b[0] {
		rest(a[0], a[0], a[1:], b[1:])
		return
	}
	lowest, highest := fill(len(a)-1, 0x80), fill(len(a)-1, 0xbf)
	first, last := a[0], b[0]
	if string(a[1:]) != string(lowest) {
		rest(first, first, a[1:], highest)
		first++
	}
	whole := last
	if string(b[1:]) != string(highest) {
		whole--
	}
	if first <= whole {
		rest(first, whole, lowest, highest)
	}
	if whole < last {
		rest(last, last, lowest, b[1:])
	}
}

func fill(n int, b byte) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = b
	}
	return out
}

// trim removes every way that cannot be completed and reports whether the rule can be.
func (n *network) trim(rule stateID) bool {
	good := make([]bool, len(n.states))
	for i := range n.states {
		good[i] = n.states[i].final
	}
	for changed := true; changed; {
		changed = false
		for i := len(n.states) - 1; i > 0; i-- {
			if good[i] {
				continue
			}
			s := &n.states[i]
			ok := s.grow != nil
			for _, e := range s.edges {
				ok = ok || good[e.to]
			}
			for _, e := range s.eps {
				ok = ok || good[e]
			}
			for _, c := range s.calls {
				ok = ok || good[c.rule] && good[c.ret]
			}
			if ok {
				good[i], changed = true, true
			}
		}
	}
	for i := range n.states {
		s := &n.states[i]
		s.edges = keep(s.edges, func(e edge) bool { return good[e.to] })
		s.eps = keep(s.eps, func(e stateID) bool { return good[e] })
		s.calls = keep(s.calls, func(c call) bool { return good[c.rule] && good[c.ret] })
	}
	return good[rule]
}

func keep[T any](all []T, ok func(T) bool) []T {
	out := all[:0]
	for _, v := range all {
		if ok(v) {
			out = append(out, v)
		}
	}
	return out
}
