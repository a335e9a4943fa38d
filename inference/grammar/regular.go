package grammar

import (
	"slices"
)

// dfa is a deterministic automaton over bytes, for what has to be intersected: patterns, lengths, ranges of numbers. State 0 is the start.
type dfa struct {
	next  [][256]int32 // -1: none
	final []bool
}

// maxDFA bounds the states of one dfa; 1 KB each.
const maxDFA = 20_000

// determinize makes a dfa of what a rule of bytes reads, without calls. It fails where that is too large.
func determinize(n *network, rule stateID) (*dfa, bool) {
	d := &dfa{}
	ids := map[string]int32{}
	var sets [][]stateID
	intern := func(from []stateID) int32 {
		set := n.epsClosure(from)
		if len(set) == 0 {
			return -1
		}
		key := make([]byte, 0, 4*len(set))
		for _, s := range set {
			key = append(key, byte(s), byte(s>>8), byte(s>>16), byte(s>>24))
		}
		id, ok := ids[string(key)]
		if !ok {
			id = int32(len(sets))
			ids[string(key)] = id
			sets = append(sets, set)
			final := slices.ContainsFunc(set, func(s stateID) bool { return n.states[s].final })
			d.final = append(d.final, final)
			d.next = append(d.next, [256]int32{})
		}
		return id
	}
	intern([]stateID{rule})
	for i := 0; i < len(sets); i++ {
		if len(sets) > maxDFA {
			return nil, false
		}
		// Between two borders of edges all bytes go the same way.
		var border [257]bool
		border[0] = true
		for _, s := range sets[i] {
			for _, e := range n.states[s].edges {
				border[e.lo] = true
				border[e.hi+1] = true
			}
		}
		to := int32(-1)
		for b := range 256 {
			if border[b] {
				var all []stateID
				for _, s := range sets[i] {
					for _, e := range n.states[s].edges {
						if int(e.lo) <= b && b <= int(e.hi) {
							all = append(all, e.to)
						}
					}
				}
				to = intern(all)
			}
			d.next[i][b] = to
		}
	}
	return d, true
}

// epsClosure is every state reached without reading, sorted.
func (n *network) epsClosure(from []stateID) []stateID {
	seen := map[stateID]bool{}
	var out []stateID
	todo := slices.Clone(from)
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[s] {
			continue
		}
		seen[s] = true
		out = append(out, s)
		todo = append(todo, n.states[s].eps...)
	}
	slices.Sort(out)
	return out
}

// intersect is what both read.
func intersect(a, b *dfa) (*dfa, bool) {
	d := &dfa{}
	ids := map[[2]int32]int32{}
	var pairs [][2]int32
	intern := func(p [2]int32) int32 {
		if p[0] < 0 || p[1] < 0 {
			return -1
		}
		id, ok := ids[p]
		if !ok {
			id = int32(len(pairs))
			ids[p] = id
			pairs = append(pairs, p)
			d.final = append(d.final, a.final[p[0]] && b.final[p[1]])
			d.next = append(d.next, [256]int32{})
		}
		return id
	}
	intern([2]int32{0, 0})
	for i := 0; i < len(pairs); i++ {
		if len(pairs) > maxDFA {
			return nil, false
		}
		p := pairs[i]
		for c := range 256 {
			d.next[i][c] = intern([2]int32{a.next[p[0]][c], b.next[p[1]][c]})
		}
	}
	return d, true
}

// accepts reports whether the dfa reads s.
func (d *dfa) accepts(s string) bool {
	at := int32(0)
	for i := 0; i < len(s) && at >= 0; i++ {
		at = d.next[at][s[i]]
	}
	return at >= 0 && d.final[at]
}

// dfa writes a dfa between two states.
func (n *network) dfa(from, to stateID, d *dfa) {
	first := stateID(0)
	for i := range d.next {
		s := n.add()
		if i == 0 {
			first = s
		}
	}
	if n.full {
		return
	}
	n.skip(from, first)
	for i, row := range d.next {
		s := first + stateID(i)
		if d.final[i] {
			n.skip(s, to)
		}
		for b := 0; b < 256; {
			end := b
			for end+1 < 256 && row[end+1] == row[b] {
				end++
			}
			if row[b] >= 0 {
				n.edge(s, first+row[b], symbol(b), symbol(end))
			}
			b = end + 1
		}
	}
}
