package grammar

import (
	"fmt"
	"slices"
	"strings"
)

// builder writes a schema as a network. What an answer may look like, where JSON leaves a choice:
//   - properties come in the order of the schema; those that additionalProperties allows come behind them;
//   - white space: one space behind a colon or a comma, or a new line with its indentation; nothing else, so that an answer
//     cannot go on in blanks;
//   - numbers have at most 18 digits before and 17 behind the point, and an exponent of at most two, so that they end;
//   - without a schema for them, values nest at most anyDepth deep.
//
// So everything that is allowed is valid, and not everything valid is allowed.
type builder struct {
	*network
	doc   *document
	rules map[string]stateID // by the schemas that a value satisfies
	parts map[string]stateID // rules that do not depend on the schema
	err   error
}

const (
	anyDepth  = 24
	maxIndent = 32
	maxLength = 100_000 // of a string, where the schema bounds it
	maxCount  = 10_000  // of an array's items, where the schema bounds them
)

func newBuilder(n *network, d *document) *builder {
	return &builder{network: n, doc: d, rules: map[string]stateID{}, parts: map[string]stateID{}}
}

func (b *builder) fail(err error) {
	if b.err == nil && err != nil {
		b.err = err
	}
}

func (b *builder) unsupported(n *jsonNode, keyword, message string) {
	b.fail(&UnsupportedError{n.path, keyword, message})
}

// part makes a rule that is written once.
func (b *builder) part(name string, write func(from, to stateID)) stateID {
	if s, ok := b.parts[name]; ok {
		return s
	}
	from := b.add()
	b.parts[name] = from
	write(from, b.end())
	return from
}

// rule is the rule of a value that satisfies all of the schemas.
func (b *builder) rule(conj []*jsonNode) stateID {
	ids := make([]int, len(conj))
	for i, n := range conj {
		ids[i] = n.id
	}
	slices.Sort(ids)
	key := fmt.Sprint(slices.Compact(ids))
	if s, ok := b.rules[key]; ok {
		return s
	}
	from := b.add()
	b.rules[key] = from
	if b.err != nil || b.full {
		return from
	}
	to := b.end()
	alts, err := b.doc.alternatives(conj, nil)
	b.fail(err)
	for _, facts := range alts {
		s, err := b.doc.merge(facts)
		if err != nil {
			b.fail(err)
			break
		}
		b.value(from, to, s)
	}
	return from
}

// value writes a value of a shape.
func (b *builder) value(from, to stateID, s *shape) {
	if s.empty() || b.err != nil {
		return
	}
	if s.enum != nil {
		b.enum(from, to, s)
		return
	}
	if s.types&typeNull != 0 {
		b.text(from, to, "null")
	}
	if s.types&typeBool != 0 {
		b.texts(from, to, []string{"true", "false"})
	}
	if s.types&typeNumber != 0 {
		b.number(from, to, s)
	}
	if s.types&typeString != 0 {
		b.string(from, to, s)
	}
	if s.types&typeArray != 0 {
		b.array(from, to, s)
	}
	if s.types&typeObject != 0 {
		b.object(from, to, s)
	}
}

func (b *builder) enum(from, to stateID, s *shape) {
	var all []string
	for _, n := range s.enum {
		if n.kind == '{' || n.kind == '[' {
			for _, f := range s.facts {
				for _, key := range f.keys {
					if keywordTypes[key]&typeOf(n) != 0 {
						b.unsupported(f, key, "together with listed objects or arrays")
					}
				}
			}
		}
		if n.kind == '"' && len(s.patterns)+len(s.formats) > 0 {
			d, err := b.stringDFA(s, false)
			if err != nil {
				b.fail(err)
				return
			}
			if q := quote(n.text); !d.accepts(q[1 : len(q)-1]) {
				continue
			}
		}
		if n.kind == '0' && len(s.multiples) > 0 {
			b.unsupported(s.facts[0], "multipleOf", "together with listed numbers")
		}
		all = append(all, n.literal())
	}
	if len(all) > 0 {
		slices.Sort(all)
		b.texts(from, to, slices.Compact(all))
	}
}

// gap is the white space at a place where a line may end.
func (b *builder) gap() stateID {
	return b.part("gap", func(from, to stateID) {
		b.skip(from, to)
		b.byte(from, to, ' ')
		line := b.add()
		b.byte(from, line, '\n')
		b.skip(line, to)
		tabbed := line
		for range maxIndent {
			next := b.add()
			b.byte(line, next, ' ')
			b.skip(next, to)
			line = next
		}
		for range maxIndent / 4 {
			next := b.add()
			b.byte(tabbed, next, '\t')
			b.skip(next, to)
			tabbed = next
		}
	})
}

func (b *builder) array(from, to stateID, s *shape) {
	var prefix [][]*jsonNode
	var rest []*jsonNode // schemas of the items behind the prefix
	closed := false
	for _, f := range s.facts {
		items, first := f.get("items"), f.get("prefixItems")
		if items != nil && items.kind == '[' { // drafts before 2020-12
			first, items = items, f.get("additionalItems")
		}
		if first != nil {
			if first.kind != '[' {
				b.fail(&SchemaError{first.path, "want a list of schemas"})
				return
			}
			for i, n := range first.items {
				if i == len(prefix) {
					prefix = append(prefix, slices.Clone(rest))
				}
				prefix[i] = append(prefix[i], n)
			}
		}
		if items != nil {
			done := 0
			if first != nil {
				done = len(first.items)
			}
			for i := done; i < len(prefix); i++ {
				prefix[i] = append(prefix[i], items)
			}
			rest = append(rest, items)
			closed = closed || items.kind == 'f'
		} else if first != nil && len(rest) == 0 {
			// As with properties: what is listed is what there is, unless items says more.
			closed = true
		}
	}
	most := s.maxItems
	if closed && (most == unbounded || most > len(prefix)) {
		most = len(prefix)
	}
	if s.minItems > maxCount || most > maxCount {
		b.unsupported(s.facts[0], "maxItems", fmt.Sprintf("want at most %d", maxCount))
		return
	}
	least := s.minItems
	if most != unbounded && least > most {
		return
	}
	item := func(i int) stateID {
		if i < len(prefix) {
			return b.rule(prefix[i])
		}
		if len(rest) == 0 {
			return b.any(anyDepth)
		}
		return b.rule(rest)
	}
	open, first := b.add(), b.add()
	b.byte(from, open, '[')
	b.call(open, first, b.gap())
	if least == 0 {
		b.byte(first, to, ']')
	}
	at := first // where item i may begin
	for i := 0; most == unbounded || i < most; i++ {
		after, close, comma, next := b.add(), b.add(), b.add(), b.add()
		b.call(at, after, item(i))
		if i+1 >= least {
			b.call(after, close, b.gap())
			b.byte(close, to, ']')
		}
		b.byte(after, comma, ',')
		b.call(comma, next, b.gap())
		if most == unbounded && i+1 >= max(least, len(prefix)) {
			b.call(next, after, item(i+1))
			break
		}
		at = next
		if b.full || b.err != nil {
			return
		}
	}
}

// any is a value of any kind, down to a depth.
func (b *builder) any(depth int) stateID {
	return b.part(fmt.Sprintf("any %d", depth), func(from, to stateID) {
		b.texts(from, to, []string{"null", "true", "false"})
		b.anyNumber(from, to, false)
		b.call(from, to, b.anyString())
		if depth == 0 {
			b.texts(from, to, []string{"[]", "{}"})
			return
		}
		b.list(from, to, "[", "]", func(at, after stateID) { b.call(at, after, b.any(depth-1)) })
		b.list(from, to, "{", "}", func(at, after stateID) {
			key := b.add()
			b.call(at, key, b.anyString())
			b.member(key, after, b.any(depth-1))
		})
	})
}

// anyObject is an object of anything.
func (b *builder) anyObject() stateID {
	return b.part("any object", func(from, to stateID) {
		b.list(from, to, "{", "}", func(at, after stateID) {
			key := b.add()
			b.call(at, key, b.anyString())
			b.member(key, after, b.any(anyDepth))
		})
	})
}

// list writes any number of what item writes.
func (b *builder) list(from, to stateID, open, close string, item func(at, after stateID)) {
	opened, first, after, last, comma, next := b.add(), b.add(), b.add(), b.add(), b.add(), b.add()
	b.text(from, opened, open)
	b.call(opened, first, b.gap())
	b.text(first, to, close)
	item(first, after)
	b.call(after, last, b.gap())
	b.text(last, to, close)
	b.byte(after, comma, ',')
	b.call(comma, next, b.gap())
	item(next, after)
}

// member writes the colon behind a key, and the value.
func (b *builder) member(from, to, value stateID) {
	colon, space := b.add(), b.add()
	b.byte(from, colon, ':')
	b.byte(colon, space, ' ')
	b.call(colon, to, value)
	b.call(space, to, value)
}

// property is a member whose name the schema gives.
type property struct {
	name     string
	schemas  []*jsonNode // nil: anything
	required bool
}

// properties reads what the schemas say of an object's members. more is the schema of those that are not named; open says that there may be any.
func (b *builder) properties(s *shape) (all []property, more []*jsonNode, open bool) {
	var names []string
	shut, declared := false, false
	for _, f := range s.facts {
		if p := f.get("properties"); p != nil {
			if p.kind != '{' {
				b.fail(&SchemaError{p.path, "want an object of schemas"})
				return nil, nil, false
			}
			declared = declared || len(p.keys) > 0
			for _, name := range p.keys {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
		switch a := f.get("additionalProperties"); {
		case a == nil:
		case a.kind == 'f':
			shut = true
		default:
			open = true
			more = append(more, a)
		}
	}
	if !open && !declared && !b.doc.strict {
		open = true
	}
	open = open && !shut
	for _, name := range s.required {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		p := property{name: name, required: slices.Contains(s.required, name)}
		for _, f := range s.facts {
			if named := f.get("properties"); named != nil && named.get(name) != nil {
				p.schemas = append(p.schemas, named.get(name))
			} else if a := f.get("additionalProperties"); a != nil {
				p.schemas = append(p.schemas, a)
			}
		}
		all = append(all, p)
	}
	return all, more, open
}

func (b *builder) object(from, to stateID, s *shape) {
	all, more, open := b.properties(s)
	if b.err != nil {
		return
	}
	b.counts(s, all, open)
	if len(all) == 0 && open && len(more) == 0 {
		b.call(from, to, b.anyObject())
		return
	}
	// at[i]: the next key is the i-th property's or a later one's, or where all are passed, another. after[i]: a member was written, and those
	// before i count no more. The first key has places of its own, since no comma stands before it.
	states := func() []stateID {
		out := make([]stateID, len(all)+1)
		for i := range out {
			out[i] = b.add()
		}
		return out
	}
	first, next, after := states(), states(), states()
	for _, at := range [][]stateID{first, next} {
		for i, p := range all {
			if !p.required {
				b.skip(at[i], at[i+1])
			}
			key := b.add()
			b.text(at[i], key, quote(p.name))
			value := b.any(anyDepth)
			if p.schemas != nil {
				value = b.rule(p.schemas)
			}
			b.member(key, after[i+1], value)
		}
		if open {
			key, value := b.add(), b.any(anyDepth)
			if len(more) > 0 {
				value = b.rule(more)
			}
			b.otherKey(at[len(all)], key, all)
			b.member(key, after[len(all)], value)
		}
	}
	opened := b.add()
	b.byte(from, opened, '{')
	b.call(opened, first[0], b.gap())
	optional := true // all from here on
	for i := len(all); i >= 0; i-- {
		if i < len(all) {
			optional = optional && !all[i].required
		}
		comma := b.add()
		b.byte(after[i], comma, ',')
		b.call(comma, next[i], b.gap())
		if optional {
			last := b.add()
			b.call(after[i], last, b.gap())
			b.byte(last, to, '}')
			if i == 0 {
				b.byte(first[0], to, '}')
			}
		}
	}
}

// counts refuses bounds on the number of members that the names do not settle already.
func (b *builder) counts(s *shape, all []property, open bool) {
	required := 0
	for _, p := range all {
		if p.required {
			required++
		}
	}
	for _, f := range s.facts {
		if v := f.get("minProperties"); v != nil {
			if n, err := readCount(v); err != nil {
				b.fail(err)
			} else if n > required {
				b.unsupported(f, "minProperties", "want at most as many as are required")
			}
		}
		if v := f.get("maxProperties"); v != nil {
			if n, err := readCount(v); err != nil {
				b.fail(err)
			} else if open || n < len(all) {
				b.unsupported(f, "maxProperties", "want at least as many as are named, and no additional ones")
			}
		}
	}
}

// otherKey writes a key that is none of the named.
func (b *builder) otherKey(from, to stateID, named []property) {
	if len(named) == 0 {
		b.call(from, to, b.anyString())
		return
	}
	open := b.add()
	b.byte(from, open, '"')
	names := make([]string, len(named))
	for i, p := range named {
		names[i] = p.name
	}
	b.unlike(open, to, names)
}

// unlike goes on with a string that is none of names, which all begin like what was read. Only plain characters are read along
// the names: an escape could spell one of them.
func (b *builder) unlike(from, to stateID, names []string) {
	if b.full {
		return
	}
	byRune := map[rune][]string{}
	var order []rune
	whole := false
	for _, name := range names {
		if name == "" {
			whole = true
			continue
		}
		r := []rune(name)[0]
		if byRune[r] == nil {
			order = append(order, r)
		}
		byRune[r] = append(byRune[r], strings.TrimPrefix(name, string(r)))
	}
	if !whole {
		b.byte(from, to, '"')
	}
	other := b.part("string rest", func(at, end stateID) { b.stringRest(at, end) })
	diverged := b.add()
	b.call(diverged, to, other)
	b.states[from].body, b.states[from].base = likeText, diverged
	slices.Sort(order)
	low := rune(0x20)
	plain := func(lo, hi rune) {
		for _, part := range [...][2]rune{{0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, 0x10ffff}} {
			b.runes(from, diverged, max(lo, part[0]), min(hi, part[1]))
		}
	}
	for _, r := range order {
		plain(low, r-1)
		low = r + 1
		if r < 0x20 || r == '"' || r == '\\' {
			continue // could only be written with an escape
		}
		next := b.add()
		b.runes(from, next, r, r)
		b.unlike(next, to, byRune[r])
	}
	plain(low, 0x10ffff)
}
