package grammar

// Masks: for a situation, the tokens of a vocabulary that the network can read from it. Most of them are known beforehand where a JSON
// string or free text goes on; the rest, and everything elsewhere, is found by a walk through the tokens' common beginnings that leaves a
// branch at the first byte that cannot stand.

// maskOf fills out, [size/64] words.
func (m *machine) maskOf(v *Vocabulary, at int32, out []uint64) {
	clear(out)
	w := walker{m: m, out: out}
	switch s, where := m.body(at); {
	case s == nil:
		w.walk(v.all, at)
	case s.body == stringBody:
		v.addPlain(out, int(s.room))
		w.walk(v.quoted, at)
	case s.body == freeText:
		copy(out, v.untagged)
		w.walk(v.tagged, at)
	case s.body == freeTag:
		// As in free text, but for the tokens whose first byte goes on with the tag or is not allowed.
		base := m.intern([]place{{s.base, where.stack}})
		copy(out, v.untagged)
		for i := 0; i < len(v.all); i = int(v.all[i].after) {
			if m.step(at, symbol(v.all[i].b)) == base {
				continue
			}
			branch := v.all[i:v.all[i].after]
			for _, n := range branch {
				if n.token >= 0 {
					unset(out, n.token)
				}
			}
			w.walk(v.all, at, i, int(v.all[i].after))
		}
		w.walk(v.tagged, at)
	}
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
	if m.situations[at].whole {
		for _, id := range v.stops {
			set(out, id)
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

// walk sets the tokens of a trie, or of a range of it, that can be read.
func (w *walker) walk(t trie, at int32, within ...int) {
	i, end := 0, len(t)
	if len(within) == 2 {
		i, end = within[0], within[1]
	}
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
