package grammar

// Masks: for a situation, the tokens of a vocabulary that the network can read from it. Most of them are known beforehand where a JSON
// string or free text goes on; the rest, and everything elsewhere, is found by a walk through the tokens' common beginnings that leaves a
// branch at the first byte that cannot stand.

// mask returns the situation's mask, [size/64] words, worked out once.
func (m *machine) mask(v *Vocabulary, at int32) []uint64 {
	if mask := m.situations[at].mask; mask != nil {
		return mask
	}
	out := make([]uint64, (v.size+63)/64)
	m.text(v, at, out)
	m.others(v, at, out)
	m.situations[at].mask = out
	m.masks++
	return out
}

// text sets the tokens that are text.
func (m *machine) text(v *Vocabulary, at int32, out []uint64) {
	w := walker{m: m, out: out}
	s, where, alone := m.body(at)
	switch {
	case s == nil:
		w.walk(v.all, at, 0, len(v.all))
	case alone && s.body == stringBody:
		v.addPlain(out, int(s.room))
		w.walk(v.quoted, at, 0, len(v.quoted))
	case alone && s.body == freeText:
		copy(out, v.untagged)
		w.walk(v.tagged, at, 0, len(v.tagged))
	default:
		// As in the text that it may turn out to be: where a token's first byte leads to the same situation from both, so do the rest.
		if s.body == likeText {
			where.state = s.base
		}
		base := m.intern([]place{where})
		if base == at { // cannot be, since that is alone
			w.walk(v.all, at, 0, len(v.all))
			return
		}
		copy(out, m.mask(v, base))
		for i := 0; i < len(v.all); i = int(v.all[i].after) {
			c := symbol(v.all[i].b)
			if m.step(at, c) == m.step(base, c) {
				continue
			}
			for _, n := range v.all[i:v.all[i].after] {
				if n.token >= 0 {
					unset(out, n.token)
				}
			}
			w.walk(v.all, at, i, int(v.all[i].after))
		}
	}
}

// others sets or clears the tokens that are no text, and those that end the answer.
func (m *machine) others(v *Vocabulary, at int32, out []uint64) {
	for i, ids := range v.special {
		allowed := m.step(at, symbol(256+i)) != 0
		for _, id := range ids {
			if allowed {
				set(out, id)
			} else {
				unset(out, id)
			}
		}
	}
	for _, id := range v.stops {
		if m.situations[at].whole {
			set(out, id)
		} else {
			unset(out, id)
		}
	}
}

// addPlain adds the plain tokens of at most room characters.
func (v *Vocabulary) addPlain(out []uint64, room int) {
	switch {
	case room == unbounded:
		copy(out, v.allPlain)
	case room < plainLengths:
		copy(out, v.plain[room])
	default:
		copy(out, v.plain[plainLengths-1])
		for _, t := range v.longPlain {
			if t.chars > room {
				break
			}
			set(out, t.id)
		}
	}
}

type walker struct {
	m   *machine
	out []uint64
	at  []int32 // situation before each byte of the path
}

// walk sets the tokens of a part of a trie that can be read.
func (w *walker) walk(t trie, at int32, i, end int) {
	w.at = append(w.at[:0], at)
	for i < end {
		n := &t[i]
		w.at = w.at[:n.depth+1]
		to := w.m.step(w.at[n.depth], symbol(n.b))
		if to == 0 {
			i = int(n.after)
			continue
		}
		if n.token >= 0 {
			set(w.out, n.token)
		}
		w.at = append(w.at, to)
		i++
	}
}
