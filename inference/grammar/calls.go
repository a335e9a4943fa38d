package grammar

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Calls: the frame in which the model writes the calls of tools.
//
//	<tool_call>
//	<function=NAME>
//	<parameter=KEY>
//	VALUE
//	</parameter>
//	</function>
//	</tool_call>
//
// The names are those of the tools, each parameter comes at most once and the required ones do come. A value that is no string is held
// to its schema, where that can be held to, and one of a list of strings to the list. Any other string is free: nothing is quoted or
// escaped on this wire, so every token stays allowed in it but those that would end the call too early. It ends where the
// parser of answers ends it: at a closing tag behind which the next tag of the frame stands, so text may mention the tags.

// tool is a function that may be called.
type tool struct {
	name   string
	params []param
	open   bool   // parameters beyond params are welcome
	need   uint64 // bits of the required ones
}

type param struct {
	name    string
	texts   []string // the only values, as they are written; nil: any
	doc     *document
	schema  *jsonNode
	rulable bool // it is written as JSON
}

// maxTracked is how many parameters of a tool are watched for being required or coming twice: a bit each. No known tool has as many.
const maxTracked = 64

// Calls is the form of an answer that calls tools, at least one of them, or exactly one. With a name only that tool is called.
// tools are in OpenAI's form, {"type":"function","function":{…}}, or flat.
func Calls(tools []json.RawMessage, name string, one bool) (*Grammar, error) {
	return calls(nil, tools, name, one)
}

// OrCalls is the form of an answer that is a value of g, or calls of tools.
func OrCalls(g *Grammar, tools []json.RawMessage, one bool) (*Grammar, error) {
	return calls(g, tools, "", one)
}

// TextOrCalls is the form of an answer that is free text, calls of tools, or text with calls behind it. What calls there are keep to their
// tools; in the text, the tags that would open one are left to the token that does.
func TextOrCalls(tools []json.RawMessage, one bool) (*Grammar, error) {
	g, err := calls(nil, tools, "", one)
	if err != nil {
		return nil, err
	}
	return &Grammar{key: "text or " + g.key, build: func(v *Vocabulary) (*network, stateID) {
		n, root := g.build(v)
		return n, n.textBefore(root, v)
	}}, nil
}

// textBefore reads free text and goes on as first does, whose first symbol opens a call.
func (n *network) textBefore(first stateID, v *Vocabulary) stateID {
	base := n.add()
	states := map[string]stateID{"": base} // by the beginning of a tag that was read
	tags := [...]string{callOpen, "<function="}
	for _, tag := range tags {
		for i := 1; i < len(tag); i++ {
			if states[tag[:i]] == 0 {
				states[tag[:i]] = n.add()
			}
		}
	}
	special := v != nil && v.has(symCallOpen)
	for read, s := range states {
		n.states[s].final = true
		if n.states[s].body = freeText; read != "" {
			n.states[s].body, n.states[s].base = likeText, base
		}
		for c := range 256 {
			to, now := base, read+string([]byte{byte(c)})
			switch next, begun := states[now]; {
			case begun:
				to = next
			case slices.Contains(tags[:], now):
				continue
			case c == '<':
				to = states["<"]
			}
			n.byte(s, to, byte(c))
		}
		n.edge(s, base, symCallClose, symOther)
		switch {
		case special:
			n.skip(s, first)
		case read == callOpen[:len(callOpen)-1]:
			for _, e := range n.behind(first, read) {
				n.states[s].edges = append(n.states[s].edges, e)
			}
		}
	}
	return base
}

// behind gives the edges of the state to which a text leads, one byte after the other.
func (n *network) behind(s stateID, text string) []edge {
	for i := range len(text) {
		at := slices.IndexFunc(n.states[s].edges, func(e edge) bool { return e.lo == symbol(text[i]) })
		if at < 0 {
			return nil
		}
		s = n.states[s].edges[at].to
	}
	return n.states[s].edges
}

func calls(g *Grammar, tools []json.RawMessage, name string, one bool) (*Grammar, error) {
	var all []*tool
	sum := sha256.New()
	for _, raw := range tools {
		fmt.Fprintf(sum, "%d ", len(raw))
		sum.Write(raw)
		t := readTool(raw)
		if t != nil && (name == "" || t.name == name) {
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		return nil, &SchemaError{Message: fmt.Sprintf("got a call of %q to be made, want the name of one of the tools", name)}
	}
	key := fmt.Sprintf("calls %q %v %x", name, one, sum.Sum(nil))
	if g != nil {
		key += g.key
	}
	return &Grammar{key: key, build: func(v *Vocabulary) (*network, stateID) {
		n := newNetwork()
		root := n.add()
		if g != nil {
			n.skip(root, n.adopt(g.build(v)))
		}
		f := &frames{network: n, vocab: v, one: one, tools: all, after: map[string]stateID{}}
		f.prepare()
		f.calls(root)
		return n, root
	}}, nil
}

// adopt copies another network in and returns where its rule is.
func (n *network) adopt(other *network, rule stateID) stateID {
	shift := stateID(len(n.states))
	for _, s := range other.states {
		c := state{final: s.final, body: s.body, room: s.room, base: s.base + shift}
		for _, e := range s.edges {
			c.edges = append(c.edges, edge{e.lo, e.hi, e.to + shift})
		}
		for _, e := range s.eps {
			c.eps = append(c.eps, e+shift)
		}
		for _, x := range s.calls {
			c.calls = append(c.calls, call{x.rule + shift, x.ret + shift})
		}
		n.states = append(n.states, c)
	}
	return rule + shift
}

func readTool(raw json.RawMessage) *tool {
	var in struct {
		Function *struct {
			Name       string
			Parameters json.RawMessage
		}
		Name       string
		Parameters json.RawMessage
	}
	if json.Unmarshal(raw, &in) != nil {
		return nil
	}
	if in.Function != nil {
		in.Name, in.Parameters = in.Function.Name, in.Function.Parameters
	}
	t := &tool{name: strings.TrimSpace(in.Name)}
	if t.name == "" || strings.ContainsAny(t.name, "<>\n") {
		return nil
	}
	doc, err := parseDocument(in.Parameters)
	if err != nil {
		return t
	}
	root := doc.root
	for range 8 {
		if root.get("$ref") == nil {
			break
		}
		if root, err = doc.resolve(root); err != nil {
			return t
		}
	}
	var required []string
	if r := root.get("required"); r != nil {
		for _, n := range r.items {
			required = append(required, n.text)
		}
	}
	add := func(name string, schema *jsonNode) {
		if name == "" || strings.ContainsAny(name, "<>\n") || name != strings.TrimSpace(name) {
			return
		}
		if i := len(t.params); i < maxTracked && slices.Contains(required, name) {
			t.need |= 1 << i
		}
		t.params = append(t.params, readParam(name, doc, schema))
	}
	if p := root.get("properties"); p != nil {
		// The required ones first, so that they are among those that are watched.
		for _, first := range []bool{true, false} {
			for _, name := range p.keys {
				if slices.Contains(required, name) == first {
					add(name, p.get(name))
				}
			}
		}
	}
	for _, name := range required {
		if p := root.get("properties"); p == nil || p.get(name) == nil {
			add(name, nil)
		}
	}
	more := root.get("additionalProperties")
	t.open = more != nil && more.kind != 'f'
	return t
}

// readParam decides how a parameter's value is written.
func readParam(name string, doc *document, schema *jsonNode) param {
	p := param{name: name, doc: doc, schema: schema}
	if schema == nil {
		return p
	}
	alts, err := doc.alternatives([]*jsonNode{schema}, nil)
	if err != nil {
		p.schema = typeAlone(schema)
		if alts, err = doc.alternatives([]*jsonNode{p.schema}, nil); err != nil {
			return p
		}
	}
	if len(alts) == 0 {
		return p
	}
	listed, texts, strs := true, []string(nil), false
	for _, facts := range alts {
		s, err := doc.merge(facts)
		if err != nil {
			return p
		}
		strs = strs || s.types&typeString != 0
		listed = listed && s.enum != nil
		for _, v := range s.enum {
			text := v.text
			if v.kind != '"' {
				text = v.literal()
			}
			if text == "" || v.kind == '{' || v.kind == '[' || strings.ContainsAny(text, "<\n") || strings.TrimSpace(text) != text {
				return p
			}
			texts = append(texts, text)
		}
	}
	switch {
	case listed:
		slices.Sort(texts)
		p.texts = slices.Compact(texts)
	case !strs:
		p.rulable = true
	}
	return p
}

// typeAlone is a schema that asks for no more than the type of another: what is left of one that cannot be held to.
func typeAlone(schema *jsonNode) *jsonNode {
	alone := &jsonNode{kind: '{', path: schema.path, id: -1}
	if t := schema.get("type"); t != nil {
		alone.keys, alone.vals = []string{"type"}, map[string]*jsonNode{"type": t}
	}
	return alone
}

// frames writes calls. Where a call stands depends on which parameters it has had, so what follows each is written when an answer gets there.
type frames struct {
	*network
	vocab *Vocabulary
	one   bool
	tools []*tool

	done   stateID            // behind </function>
	after  map[string]stateID // by tool and parameters had: behind a parameter, and behind <parameter=
	values map[string]stateID // by tool and parameter: the rule of a value
}

// prepare writes the rules of values. A schema that cannot be held to, or that nothing satisfies, leaves its type, or the value free.
func (f *frames) prepare() {
	f.values = map[string]stateID{}
	for ti, t := range f.tools {
		for pi, p := range t.params {
			if !p.rulable {
				continue
			}
			for _, schema := range []*jsonNode{p.schema, typeAlone(p.schema)} {
				b := newBuilder(newNetwork(), p.doc)
				rule := b.rule([]*jsonNode{schema})
				if b.err == nil && !b.full && b.trim(rule) && len(f.states)+len(b.states) < maxStates/2 {
					f.values[fmt.Sprint(ti, " ", pi)] = f.adopt(b.network, rule)
					break
				}
			}
		}
	}
}

func (f *frames) token(from, to stateID, s symbol, text string) {
	if f.vocab != nil && f.vocab.has(s) {
		f.edge(from, to, s, s)
		return
	}
	f.text(from, to, text)
}

// calls writes one or more calls.
func (f *frames) calls(from stateID) {
	opened, named := f.add(), f.add()
	end := f.end()
	f.done = f.add()
	line := f.add()
	f.byte(f.done, line, '\n')
	f.token(line, end, symCallClose, callClose)
	f.token(from, opened, symCallOpen, callOpen)
	f.text(opened, named, "\n<function=")
	for i, t := range f.tools {
		first := f.add()
		f.text(named, first, t.name+">\n")
		f.skip(first, f.members(i, 0))
	}
	if !f.one {
		next := f.add()
		f.byte(end, next, '\n')
		f.token(next, opened, symCallOpen, callOpen)
	}
}

// lazily returns a state that is written when it is reached.
func (f *frames) lazily(key string, write func(from stateID)) stateID {
	if s, ok := f.after[key]; ok {
		return s
	}
	s := f.add()
	f.after[key] = s
	f.states[s].grow = write
	return s
}

// members is where a parameter may begin, or the function end, after those in had.
func (f *frames) members(tool int, had uint64) stateID {
	return f.lazily(fmt.Sprint("members ", tool, " ", had), func(from stateID) {
		if f.more(tool, had) {
			f.text(from, f.keys(tool, had), "<parameter=")
		}
		if f.complete(tool, had) {
			f.text(from, f.done, "</function>")
		}
	})
}

// more reports whether another parameter may come, complete whether none must.
func (f *frames) more(tool int, had uint64) bool {
	t := f.tools[tool]
	return t.open || len(t.params) > maxTracked || had != 1<<len(t.params)-1
}

func (f *frames) complete(tool int, had uint64) bool { return f.tools[tool].need&^had == 0 }

// keys is the place behind <parameter=.
func (f *frames) keys(tool int, had uint64) stateID {
	return f.lazily(fmt.Sprint("keys ", tool, " ", had), func(from stateID) {
		t := f.tools[tool]
		for i, p := range t.params {
			now := had
			if i < maxTracked {
				if had>>i&1 == 1 {
					continue
				}
				now |= 1 << i
			}
			value := f.add()
			f.text(from, value, p.name+">\n")
			rule := f.values[fmt.Sprint(tool, " ", i)]
			if p.texts == nil && rule == 0 {
				f.skip(value, f.free(tool, now))
				continue
			}
			closing := f.add()
			if p.texts != nil {
				f.texts(value, closing, p.texts)
			} else {
				f.call(value, closing, rule)
			}
			f.text(closing, f.members(tool, now), "\n</parameter>\n")
		}
		if t.open {
			at := from
			value := f.add()
			for range 64 {
				next := f.add()
				for _, r := range [...][2]symbol{{'a', 'z'}, {'A', 'Z'}, {'0', '9'}, {'_', '_'}, {'-', '.'}} {
					f.edge(at, next, r[0], r[1])
				}
				f.text(next, value, ">\n")
				at = next
			}
			f.skip(value, f.free(tool, had))
		}
	})
}

// free is a value that is any text.
func (f *frames) free(tool int, had uint64) stateID {
	return f.lazily(fmt.Sprint("free ", tool, " ", had), func(from stateID) {
		w := freeValue{f: f, base: f.add()}
		f.skip(from, w.base)
		f.states[w.base].body = freeText
		w.open = w.tag()
		w.otherwise(w.base, "", true)

		slash, behind, next, end := w.tag(), w.tag(), w.tag(), w.tag()
		w.otherwise(w.open, "/", true)
		f.byte(w.open, slash, '/')
		// </parameter>, with what must follow for it to count.
		inName := w.chain(slash, "parameter>", behind)
		w.otherwise(behind, " \t\r\n<", true)
		for _, c := range []byte(" \t\r\n") {
			f.byte(behind, behind, c)
		}
		f.byte(behind, next, '<')
		w.otherwise(next, "p/", true)
		key := f.keys(tool, had)
		if !f.more(tool, had) {
			key = 0
		}
		w.chain(next, "parameter=", key)
		if f.complete(tool, had) {
			f.byte(next, end, '/')
			w.otherwise(end, "pf", true)
			f.byte(end, inName, 'p') // </parameter> twice
			w.chain(end, "function>", f.done)
		}
		// </function>, where </parameter> was forgotten.
		if f.vocab != nil && f.vocab.has(symCallClose) {
			forgot := w.tag()
			w.chain(slash, "function>", forgot)
			w.otherwise(forgot, " \t\r\n", false)
			for _, c := range []byte(" \t\r\n") {
				f.byte(forgot, forgot, c)
			}
			f.edge(forgot, w.base, symCallOpen, symCallOpen)
			f.edge(forgot, w.base, symOther, symOther)
			if f.complete(tool, had) {
				for _, e := range f.states[f.done].edges { // behind the line feed
					for _, x := range f.states[e.to].edges {
						f.edge(forgot, x.to, symCallClose, symCallClose)
					}
				}
			}
		} else {
			f.byte(slash, w.base, 'f')
		}
		w.otherwise(slash, "pf", true)
	})
}

// freeValue writes the automaton of a free value: a tag that does not go on as it began was text.
type freeValue struct {
	f    *frames
	base stateID
	open stateID // behind a <
}

func (w *freeValue) tag() stateID {
	s := w.f.add()
	w.f.states[s].body, w.f.states[s].base = likeText, w.base
	return s
}

// otherwise goes back to the text for every byte that is not in but, and for tokens that are no text.
func (w *freeValue) otherwise(from stateID, but string, tokens bool) {
	for c := range 256 {
		switch {
		case strings.IndexByte(but, byte(c)) >= 0:
		case c == '<':
			w.f.byte(from, w.open, '<')
		default:
			if n := len(w.f.states[from].edges); n > 0 {
				if e := &w.f.states[from].edges[n-1]; e.to == w.base && int(e.hi) == c-1 {
					e.hi++
					continue
				}
			}
			w.f.byte(from, w.base, byte(c))
		}
	}
	if tokens {
		w.f.edge(from, w.base, symCallOpen, symOther)
	}
}

// chain reads text, whose first byte only from chooses, and goes to to; 0 forbids its end. It returns the state behind the first byte.
func (w *freeValue) chain(from stateID, text string, to stateID) stateID {
	first := stateID(0)
	for i := range len(text) {
		next := to
		if i < len(text)-1 {
			next = w.tag()
		}
		if next != 0 {
			w.f.byte(from, next, text[i])
		}
		if i == 0 {
			first = next
		}
		if i < len(text)-1 {
			w.otherwise(next, text[i+1:i+2], true)
		}
		from = next
	}
	return first
}
