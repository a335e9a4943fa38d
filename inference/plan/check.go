package plan

import "sort"

// span is a half-open byte range.
type span struct{ off, end int64 }

// spans is a sorted set of disjoint byte ranges: what has been written so far.
type spans []span

func (s spans) add(off, end int64) spans {
	s = append(s, span{off, end})
	sort.Slice(s, func(i, j int) bool { return s[i].off < s[j].off })
	out := s[:1]
	for _, r := range s[1:] {
		if last := &out[len(out)-1]; r.off <= last.end {
			last.end = max(last.end, r.end)
		} else {
			out = append(out, r)
		}
	}
	return out
}

func (s spans) covers(off, end int64) bool {
	for _, r := range s {
		if r.off <= off && end <= r.end {
			return true
		}
	}
	return false
}

// check finds what would be wrong on any device: ranges outside their buffer, a dispatch whose own arguments overlap with a write,
// weights or inputs that are written, scratch read before it was written, scratch written and never read, names used twice.
func (b *Builder) check() {
	written := make([]spans, len(b.buffers))
	read := make([]bool, len(b.buffers))
	seen := map[string]bool{}
	for _, d := range b.dispatches {
		if seen[d.Name] {
			b.fail("dispatch %s: name used twice", d.Name)
		}
		seen[d.Name] = true
		if d.Items < 1 {
			b.fail("dispatch %s: got %d work items, want at least 1", d.Name, d.Items)
		}
		for i, a := range d.Args {
			if a.Range.Buffer < 0 || int(a.Range.Buffer) >= len(b.buffers) {
				b.fail("dispatch %s: %s: no buffer %d", d.Name, a.Param, a.Range.Buffer)
				return
			}
			buf := b.buffers[a.Range.Buffer]
			off, end := a.Range.Off, a.Range.Off+a.Range.Len
			if off < 0 || a.Range.Len <= 0 || end > buf.LenBytes {
				b.fail("dispatch %s: %s: got bytes [%d, %d) of %s, want inside [0, %d)", d.Name, a.Param, off, end, buf.Name, buf.LenBytes)
			}
			if a.Access == 0 {
				b.fail("dispatch %s: %s: no access declared", d.Name, a.Param)
			}
			for _, o := range d.Args[:i] {
				if o.Range.Buffer == a.Range.Buffer && (o.Access|a.Access)&Write != 0 &&
					off < o.Range.Off+o.Range.Len && o.Range.Off < end {
					b.fail("dispatch %s: %s and %s overlap in %s and one is written", d.Name, o.Param, a.Param, buf.Name)
				}
			}
			if a.Access&Write != 0 && (buf.Class == Weight || buf.Class == Input) {
				b.fail("dispatch %s: %s writes %s, a %s", d.Name, a.Param, buf.Name, buf.Class)
			}
			if a.Access&Read != 0 {
				read[a.Range.Buffer] = true
				if (buf.Class == Scratch || buf.Class == Output) && !written[a.Range.Buffer].covers(off, end) {
					b.fail("dispatch %s: %s reads bytes [%d, %d) of %s before they are written", d.Name, a.Param, off, end, buf.Name)
				}
			}
		}
		for _, a := range d.Args {
			if a.Access&Write != 0 {
				id := a.Range.Buffer
				written[id] = written[id].add(a.Range.Off, a.Range.Off+a.Range.Len)
			}
		}
	}
	for i, buf := range b.buffers {
		switch {
		case buf.Class == Scratch && !read[i]:
			b.fail("buffer %s: written and never read", buf.Name)
		case buf.Class == Output && len(written[i]) == 0:
			b.fail("buffer %s: an output that nothing writes", buf.Name)
		}
	}
}
