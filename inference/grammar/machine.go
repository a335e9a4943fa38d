package grammar

import (
	"slices"
)

// machine runs a network as if it were deterministic: a situation is the set of all places, each with its stack, at which the text so far
// may stand. Situations are numbered as they are met and their ways remembered, so that a way is worked out once.
type machine struct {
	net        *network
	start      int32
	stacks     []frame // 0: the empty stack
	stackIDs   map[frame]int32
	situations []situation // 0: nothing can follow
	ids        map[string]int32
	masks      int // situations with a mask

	work    []place // scratch of intern
	visited map[place]bool
	key     []byte
}

// frame is a stack: where the running rule returns to, and the frame below.
type frame struct {
	ret  stateID
	next int32
}

type place struct {
	state stateID
	stack int32
}

type situation struct {
	places []place // only those that read something
	whole  bool    // the text so far is complete
	next   *[symbols]int32
	mask   []uint64
}

// unknown marks a way that nobody has gone yet.
const unknown = -1

func newMachine(n *network, rule stateID) *machine {
	m := &machine{net: n, stacks: make([]frame, 1), stackIDs: map[frame]int32{}, situations: make([]situation, 1), ids: map[string]int32{}, visited: map[place]bool{}}
	m.ids[""] = 0
	m.start = m.intern([]place{{state: rule}})
	return m
}

func (m *machine) push(f frame) int32 {
	id, ok := m.stackIDs[f]
	if !ok {
		id = int32(len(m.stacks))
		m.stacks = append(m.stacks, f)
		m.stackIDs[f] = id
	}
	return id
}

// intern returns the situation of some places and all that follow from them without reading.
func (m *machine) intern(from []place) int32 {
	clear(m.visited)
	m.work = append(m.work[:0], from...)
	var places []place
	whole := false
	for len(m.work) > 0 {
		p := m.work[len(m.work)-1]
		m.work = m.work[:len(m.work)-1]
		if m.visited[p] {
			continue
		}
		m.visited[p] = true
		if grow := m.net.states[p.state].grow; grow != nil {
			m.net.states[p.state].grow = nil
			grow(p.state)
		}
		s := &m.net.states[p.state]
		if len(s.edges) > 0 {
			places = append(places, p)
		}
		for _, e := range s.eps {
			m.work = append(m.work, place{e, p.stack})
		}
		for _, c := range s.calls {
			m.work = append(m.work, place{c.rule, m.push(frame{c.ret, p.stack})})
		}
		if s.final {
			if p.stack == 0 {
				whole = true
			} else {
				f := m.stacks[p.stack]
				m.work = append(m.work, place{f.ret, f.next})
			}
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		if a.state != b.state {
			return int(a.state) - int(b.state)
		}
		return int(a.stack) - int(b.stack)
	})
	m.key = m.key[:0]
	if whole {
		m.key = append(m.key, 1)
	}
	for _, p := range places {
		m.key = append(m.key, byte(p.state), byte(p.state>>8), byte(p.state>>16), byte(p.state>>24), byte(p.stack), byte(p.stack>>8), byte(p.stack>>16), byte(p.stack>>24))
	}
	id, ok := m.ids[string(m.key)]
	if !ok {
		id = int32(len(m.situations))
		m.ids[string(m.key)] = id
		m.situations = append(m.situations, situation{places: places, whole: whole})
	}
	return id
}

// step reads a symbol and returns the situation behind it, 0 where it cannot stand here.
func (m *machine) step(at int32, c symbol) int32 {
	s := &m.situations[at]
	if s.next == nil {
		if at == 0 {
			return 0
		}
		s.next = new([symbols]int32)
		for i := range s.next {
			s.next[i] = unknown
		}
	}
	if to := s.next[c]; to != unknown {
		return to
	}
	var all [16]place
	to := all[:0]
	for _, p := range s.places {
		for _, e := range m.net.states[p.state].edges {
			if e.lo <= c && c <= e.hi {
				to = append(to, place{e.to, p.stack})
			}
		}
	}
	next := s.next
	id := int32(0)
	if len(to) > 0 {
		id = m.intern(to)
	}
	next[c] = id
	return id
}

// read reads bytes.
func (m *machine) read(at int32, b []byte) int32 {
	for _, c := range b {
		if at == 0 {
			break
		}
		at = m.step(at, symbol(c))
	}
	return at
}

// body is a state of the situation from which most tokens are allowed, and its place; nil where there is none. alone says that the situation
// is no more than that.
func (m *machine) body(at int32) (found *state, where place, alone bool) {
	alone = true
	for _, p := range m.situations[at].places {
		switch s := &m.net.states[p.state]; {
		case s.body == charRest:
		case s.body == noBody || found != nil:
			alone = false
		default:
			found, where = s, p
		}
	}
	return found, where, alone
}

// size is a measure of what the machine remembers, in situations.
func (m *machine) size() int { return len(m.situations) }

// copyPlaces moves a situation into another machine of the same network.
func (m *machine) copyPlaces(at int32, into *machine) int32 {
	var places []place
	for _, p := range m.situations[at].places {
		var frames []frame
		for s := p.stack; s != 0; s = m.stacks[s].next {
			frames = append(frames, m.stacks[s])
		}
		stack := int32(0)
		for _, f := range slices.Backward(frames) {
			stack = into.push(frame{f.ret, stack})
		}
		places = append(places, place{p.state, stack})
	}
	id := into.intern(places)
	if m.situations[at].whole && !into.situations[id].whole {
		// The end of a rule is a place that reads nothing, so it is not among the places; it is carried over as it is.
		into.situations = append(into.situations, situation{places: into.situations[id].places, whole: true})
		id = int32(len(into.situations) - 1)
	}
	return id
}
