package plan

// use is an earlier access to a buffer, with the level at which it happens.
type use struct {
	off, end int64
	write    bool
	level    int
}

func overlap(off, end int64, u use) bool { return off < u.end && u.off < end }

// order gives each dispatch the first level after every earlier dispatch that it conflicts with, and sorts by level. Two
// accesses conflict when their bytes overlap and at least one writes (read after write, write after read, write after write),
// so a dispatch may move ahead of earlier ones only where no byte connects them.
func (p *Plan) order(ds []Dispatch) {
	uses := make([][]use, len(p.Buffers))
	level := make([]int, len(ds))
	for i, d := range ds {
		for _, a := range d.Args {
			off, end := a.Range.Off, a.Range.Off+a.Range.Len
			for _, u := range uses[a.Range.Buffer] {
				if (u.write || a.Access&Write != 0) && overlap(off, end, u) && u.level >= level[i] {
					level[i] = u.level + 1
				}
			}
		}
		for _, a := range d.Args {
			uses[a.Range.Buffer] = append(uses[a.Range.Buffer],
				use{a.Range.Off, a.Range.Off + a.Range.Len, a.Access&Write != 0, level[i]})
		}
		if level[i]+1 > p.Levels {
			p.Levels = level[i] + 1
		}
	}
	byLevel := make([][]int, p.Levels)
	for i, l := range level {
		byLevel[l] = append(byLevel[l], i)
	}
	for l, list := range byLevel {
		for _, i := range list {
			p.Dispatches = append(p.Dispatches, ds[i])
			p.Level = append(p.Level, l)
		}
	}
}

// At returns the dispatches of one level as a half-open index range.
func (p *Plan) At(level int) (lo, hi int) {
	for lo < len(p.Level) && p.Level[lo] < level {
		lo++
	}
	for hi = lo; hi < len(p.Level) && p.Level[hi] == level; hi++ {
	}
	return lo, hi
}
