package grammar

import (
	"fmt"
	"regexp/syntax"
	"strings"
)

// Regular expressions: the bounded subset that both JSON Schema (ECMA-262) and Go's syntax package read alike. Anchors count at the
// edges of the expression, or of one alternative of it, and nowhere else; look-around, back references and word borders are refused.

// encoding says how a character of the matched text is written.
type encoding int

const (
	plainText  encoding = iota
	jsonString          // inside a JSON string, escaped where it must be and nowhere else
)

// regular compiles an expression that has to match the whole text, or with search, some part of it.
func regular(expr string, enc encoding, search bool) (*dfa, error) {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("got %q, want a regular expression of the supported subset: %w", expr, err)
	}
	p := patternBuilder{network: newNetwork(), enc: enc}
	start, end := p.add(), p.end()
	if search {
		err = p.searched(start, end, re)
	} else {
		err = p.build(start, end, re)
	}
	if err != nil {
		return nil, err
	}
	if p.full {
		return nil, fmt.Errorf("got %q, want a smaller expression", expr)
	}
	d, ok := determinize(p.network, start)
	if !ok {
		return nil, fmt.Errorf("got %q, want an expression of at most %d states", expr, maxDFA)
	}
	return d, nil
}

type patternBuilder struct {
	*network
	enc encoding
}

// searched matches anywhere, unless anchors say otherwise.
func (p *patternBuilder) searched(from, to stateID, re *syntax.Regexp) error {
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}
	if re.Op == syntax.OpAlternate {
		for _, sub := range re.Sub {
			if err := p.searched(from, to, sub); err != nil {
				return err
			}
		}
		return nil
	}
	parts := []*syntax.Regexp{re}
	if re.Op == syntax.OpConcat {
		parts = re.Sub
	}
	open := func(op syntax.Op) bool { return op == syntax.OpBeginText || op == syntax.OpBeginLine }
	closed := func(op syntax.Op) bool { return op == syntax.OpEndText || op == syntax.OpEndLine }
	atStart, atEnd := false, false
	for len(parts) > 0 && open(parts[0].Op) {
		atStart, parts = true, parts[1:]
	}
	for len(parts) > 0 && closed(parts[len(parts)-1].Op) {
		atEnd, parts = true, parts[:len(parts)-1]
	}
	if !atStart {
		from = p.anything(from)
	}
	last := to
	if !atEnd {
		last = p.add()
		p.skip(p.anything(last), to)
	}
	return p.concat(from, last, parts)
}

// anything reads any characters and returns where it ends.
func (p *patternBuilder) anything(from stateID) stateID {
	loop := p.add()
	p.skip(from, loop)
	p.chars(loop, loop, 0, 0x10ffff)
	return loop
}

func (p *patternBuilder) concat(from, to stateID, parts []*syntax.Regexp) error {
	for i, sub := range parts {
		next := to
		if i < len(parts)-1 {
			next = p.add()
		}
		if err := p.build(from, next, sub); err != nil {
			return err
		}
		from = next
	}
	if len(parts) == 0 {
		p.skip(from, to)
	}
	return nil
}

func (p *patternBuilder) build(from, to stateID, re *syntax.Regexp) error {
	if p.full {
		return nil
	}
	switch re.Op {
	case syntax.OpEmptyMatch:
		p.skip(from, to)
	case syntax.OpNoMatch:
	case syntax.OpLiteral:
		for i, r := range re.Rune {
			next := to
			if i < len(re.Rune)-1 {
				next = p.add()
			}
			p.chars(from, next, r, r)
			if re.Flags&syntax.FoldCase != 0 {
				for _, other := range []string{strings.ToUpper(string(r)), strings.ToLower(string(r))} {
					if f := []rune(other); len(f) == 1 && f[0] != r {
						p.chars(from, next, f[0], f[0])
					}
				}
			}
			from = next
		}
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			p.chars(from, to, re.Rune[i], re.Rune[i+1])
		}
	case syntax.OpAnyChar:
		p.chars(from, to, 0, 0x10ffff)
	case syntax.OpAnyCharNotNL:
		p.chars(from, to, 0, '\n'-1)
		p.chars(from, to, '\n'+1, '\r'-1)
		p.chars(from, to, '\r'+1, 0x2027)
		p.chars(from, to, 0x202a, 0x10ffff)
	case syntax.OpCapture:
		return p.build(from, to, re.Sub[0])
	case syntax.OpStar, syntax.OpPlus:
		loop := p.add()
		if re.Op == syntax.OpPlus {
			if err := p.build(from, loop, re.Sub[0]); err != nil {
				return err
			}
		} else {
			p.skip(from, loop)
		}
		p.skip(loop, to)
		return p.build(loop, loop, re.Sub[0])
	case syntax.OpQuest:
		p.skip(from, to)
		return p.build(from, to, re.Sub[0])
	case syntax.OpRepeat:
		for range re.Min {
			next := p.add()
			if err := p.build(from, next, re.Sub[0]); err != nil {
				return err
			}
			from = next
		}
		if re.Max < 0 {
			p.skip(from, to)
			loop := p.add()
			p.skip(from, loop)
			p.skip(loop, to)
			return p.build(loop, loop, re.Sub[0])
		}
		for range re.Max - re.Min {
			p.skip(from, to)
			next := p.add()
			if err := p.build(from, next, re.Sub[0]); err != nil {
				return err
			}
			from = next
		}
		p.skip(from, to)
	case syntax.OpConcat:
		return p.concat(from, to, re.Sub)
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			if err := p.build(from, to, sub); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("got %q, want an expression with anchors at its edges only, and without word borders", re)
	}
	return nil
}

// chars reads a character from lo to hi in its encoding.
func (p *patternBuilder) chars(from, to stateID, lo, hi rune) {
	if p.enc == plainText {
		p.runes(from, to, lo, hi)
		return
	}
	for r := lo; r <= min(hi, 0x1f); r++ {
		p.text(from, to, escapedControl(byte(r)))
	}
	for _, part := range [...][2]rune{{0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, 0x10ffff}} {
		p.runes(from, to, max(lo, part[0]), min(hi, part[1]))
	}
	for _, r := range `"\` {
		if lo <= r && r <= hi {
			p.text(from, to, `\`+string(r))
		}
	}
}

func escapedControl(b byte) string {
	switch b {
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	case '\b':
		return `\b`
	case '\f':
		return `\f`
	}
	return fmt.Sprintf(`\u%04x`, b)
}
