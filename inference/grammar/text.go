package grammar

import (
	"fmt"
)

// Strings.

// anyString is a JSON string of any characters.
func (b *builder) anyString() stateID {
	return b.part("string", func(from, to stateID) {
		open := b.add()
		b.byte(from, open, '"')
		b.stringRest(open, to)
	})
}

// stringRest is a string from any place in it on, the closing quote included.
func (b *builder) stringRest(from, to stateID) {
	loop := b.add()
	b.skip(from, loop)
	b.states[loop].body, b.states[loop].room = stringBody, unbounded
	b.plainASCII(loop, loop)
	b.rest(loop, loop)
	b.byte(loop, to, '"')
}

func (b *builder) plainASCII(from, to stateID) {
	b.edge(from, to, 0x20, '"'-1)
	b.edge(from, to, '"'+1, '\\'-1)
	b.edge(from, to, '\\'+1, 0x7f)
}

// rest is a character that is not plain ASCII: one of several bytes, or an escape. Surrogates come in pairs.
func (b *builder) rest(from, to stateID) {
	b.runes(from, to, 0x80, 0x10ffff)
	esc, u := b.add(), b.add()
	b.byte(from, esc, '\\')
	for _, c := range []byte(`"\/bfnrt`) {
		b.byte(esc, to, c)
	}
	b.byte(esc, u, 'u')
	hex := func(from, to stateID) {
		b.edge(from, to, '0', '9')
		b.edge(from, to, 'A', 'F')
		b.edge(from, to, 'a', 'f')
	}
	three, two, one := b.add(), b.add(), b.add()
	hex(three, two)
	hex(two, one)
	hex(one, to)
	b.edge(u, three, '0', '9')
	d := b.add() // behind \ud
	for _, c := range []byte("aAbBcCeEfF") {
		b.byte(u, three, c)
	}
	b.byte(u, d, 'd')
	b.byte(u, d, 'D')
	b.edge(d, two, '0', '7')
	high := b.add()
	for _, c := range []byte("89aAbB") {
		b.byte(d, high, c)
	}
	h2, h3, slash, u2, d2, low := b.add(), b.add(), b.add(), b.add(), b.add(), b.add()
	hex(high, h2)
	hex(h2, h3)
	b.byte(h3, slash, '\\')
	b.byte(slash, u2, 'u')
	b.byte(u2, d2, 'd')
	b.byte(u2, d2, 'D')
	for _, c := range []byte("cCdDeEfF") {
		b.byte(d2, low, c)
	}
	hex(low, one)
}

func (b *builder) string(from, to stateID, s *shape) {
	if len(s.patterns)+len(s.formats) > 0 {
		d, err := b.stringDFA(s, true)
		if err != nil {
			b.fail(err)
			return
		}
		open, close := b.add(), b.add()
		b.byte(from, open, '"')
		b.dfa(open, close, d)
		b.byte(close, to, '"')
		return
	}
	if s.minLength == 0 && s.maxLength == unbounded {
		b.call(from, to, b.anyString())
		return
	}
	if most := max(s.minLength, s.maxLength); most > maxLength {
		b.unsupported(s.facts[0], "maxLength", fmt.Sprintf("want at most %d", maxLength))
		return
	}
	if s.maxLength != unbounded && s.minLength > s.maxLength {
		return
	}
	at := b.add()
	b.byte(from, at, '"')
	rest := b.part("character", func(from, to stateID) {
		b.rest(from, to)
		b.states[from].body = charRest
	})
	for i := 0; ; i++ {
		if i == s.minLength && s.maxLength == unbounded {
			b.stringRest(at, to)
			return
		}
		st := &b.states[at]
		st.body, st.room = stringBody, unbounded
		if s.maxLength != unbounded {
			st.room = int32(s.maxLength - i)
		}
		if i >= s.minLength {
			b.byte(at, to, '"')
		}
		if i == s.maxLength || b.full {
			return
		}
		next := b.add()
		b.plainASCII(at, next)
		b.call(at, next, rest)
		at = next
	}
}

// stringDFA is the text inside the quotes that satisfies patterns, formats and, with lengths, those.
func (b *builder) stringDFA(s *shape, lengths bool) (*dfa, error) {
	var all *dfa
	and := func(d *dfa, at *jsonNode, keyword string) error {
		if all == nil {
			all = d
			return nil
		}
		both, ok := intersect(all, d)
		if !ok {
			return &UnsupportedError{at.path, keyword, "want a simpler combination with the other keywords"}
		}
		all = both
		return nil
	}
	for _, p := range s.patterns {
		d, err := regular(p.text, jsonString, true)
		if err != nil {
			return nil, &UnsupportedError{parent(p.path), "pattern", err.Error()}
		}
		if err := and(d, p, "pattern"); err != nil {
			return nil, err
		}
	}
	for _, f := range s.formats {
		expr, ok := formats[f.text]
		if !ok {
			return nil, &UnsupportedError{parent(f.path), "format", fmt.Sprintf("got %q, want one of %s", f.text, formatNames())}
		}
		if expr == "" {
			continue
		}
		d, err := regular(expr, jsonString, false)
		if err != nil {
			panic("grammar: internal error: format " + f.text + ": " + err.Error())
		}
		if err := and(d, f, "format"); err != nil {
			return nil, err
		}
	}
	if all == nil {
		all, _ = regular(`(?s:.*)`, jsonString, false)
	}
	if lengths && (s.minLength > 0 || s.maxLength != unbounded) {
		if max(s.minLength, s.maxLength) > 1000 {
			return nil, &UnsupportedError{s.facts[0].path, "maxLength", "together with a pattern or format: want at most 1000"}
		}
		expr := fmt.Sprintf("(?s:.{%d,})", s.minLength)
		if s.maxLength != unbounded {
			if s.maxLength < s.minLength {
				return &dfa{next: [][256]int32{noWay()}, final: []bool{false}}, nil
			}
			expr = fmt.Sprintf("(?s:.{%d,%d})", s.minLength, s.maxLength)
		}
		d, err := regular(expr, jsonString, false)
		if err != nil {
			return nil, &UnsupportedError{s.facts[0].path, "maxLength", err.Error()}
		}
		if err := and(d, s.facts[0], "maxLength"); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func noWay() (row [256]int32) {
	for i := range row {
		row[i] = -1
	}
	return row
}
