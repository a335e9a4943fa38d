package fetch

import "slices"

// extent is the bytes from from up to, not including, to.
type extent struct{ from, to int64 }

// extents is a set of bytes of a file: disjoint, not touching, in order. A file that is fetched over n connections is seldom more than n+1.
type extents []extent

// add puts [from, to) into the set.
func (s *extents) add(from, to int64) {
	if from >= to {
		return
	}
	list := *s
	i, _ := slices.BinarySearchFunc(list, from, func(e extent, at int64) int {
		if e.to < at { // one that ends at from is joined
			return -1
		}
		return 1
	})
	j := i
	for j < len(list) && list[j].from <= to {
		from, to = min(from, list[j].from), max(to, list[j].to)
		j++
	}
	*s = slices.Replace(list, i, j, extent{from, to})
}

// remove takes [from, to) out of the set.
func (s *extents) remove(from, to int64) {
	if from >= to {
		return
	}
	var out extents
	for _, e := range *s {
		if e.to <= from || e.from >= to {
			out = append(out, e)
			continue
		}
		if e.from < from {
			out = append(out, extent{e.from, from})
		}
		if e.to > to {
			out = append(out, extent{to, e.to})
		}
	}
	*s = out
}

// gap is the first run of bytes from at on that are not in the set, at most limit bytes long and ending before end; empty when there is none.
func (s extents) gap(at, end, limit int64) extent {
	for _, e := range s {
		if e.to <= at {
			continue
		}
		if e.from > at {
			end = min(end, e.from)
			break
		}
		at = e.to
	}
	return extent{at, max(at, min(end, at+limit))}
}

// reach is the end of the run that holds the byte at; at itself when the set does not hold it.
func (s extents) reach(at int64) int64 {
	for _, e := range s {
		if e.from <= at && at < e.to {
			return e.to
		}
	}
	return at
}

func (s extents) bytes() int64 {
	var n int64
	for _, e := range s {
		n += e.to - e.from
	}
	return n
}
