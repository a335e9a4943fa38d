package chat

import (
	"bytes"
	"strings"
)

// Lookahead: is this "<" markup, or text that mentions markup?
//
// The wire has no escapes, so a value may hold any of the tags that frame it. Only
// what follows a tag tells. The rules, in a parameter's value:
//
//   - </parameter> ends it if what follows, after white space, is <parameter=KEY> with
//     a key that the tool declares, or the call's own end, or the end of the text.
//   - </function> ends it (its </parameter> is missing) if </tool_call> follows, or the
//     opening of a next call, or the end of the text. The same holds for a
//     </tool_call> alone, if a next call or the end follows.
//   - <parameter=KEY> at the start of a line ends it if the tool declares KEY and the
//     call has not had it yet.
//   - A call's end counts only if no later </parameter> closes the value again before a
//     next call opens: then it was part of the value, and so a file that quotes all
//     closing tags arrives whole. Prose after a call waits for that; the model is told
//     to write none.
//   - A number or boolean ends at the first </parameter>; so does an array or object
//     that is complete.
//
// What the wire cannot frame: a string that itself holds </parameter> and then
// <parameter=KEY> with a declared key, a line that starts with <parameter=KEY> of a
// declared key not yet given, or a closed call followed by the opening of another.
// Such a value is cut there, into valid JSON. On the way in it is rendered as it is,
// as the official template does.

// verdict is the answer to a question about text that may go on.
type verdict int

const (
	no verdict = iota
	wait
	yes
)

// maxName bounds the name of a function or parameter, in bytes: what has no ">" by
// then is a mention, and need not be held back.
const maxName = 256

// match tells whether b begins with token.
func match(b []byte, token string) verdict {
	n := min(len(b), len(token))
	switch {
	case string(b[:n]) != token[:n]:
		return no
	case n < len(token):
		return wait
	}
	return yes
}

func skipSpace(b []byte) []byte { return bytes.TrimLeftFunc(b, isSpace) }

// tagName reads a name up to ">", trimmed; n counts the bytes through ">".
func tagName(b []byte) (name string, n int, v verdict) {
	i := bytes.IndexAny(b, "<>")
	switch {
	case i < 0 && len(b) <= maxName:
		return "", 0, wait
	case i < 0 || i > maxName || b[i] == '<':
		return "", 0, no
	}
	name = trim(string(b[:i]))
	if name == "" || strings.Contains(name, "\n") {
		return "", 0, no
	}
	return name, i + 1, yes
}

// opening is the start of a call: "<tool_call>" and "<function=NAME>", or the latter
// alone.
type opening struct {
	verdict verdict
	name    string
	n       int // bytes through ">"
	bare    bool
}

// opening tells whether b begins with the start of a call. Without <tool_call> it must
// name a declared tool and go on like a call.
func (p *Parser) opening(b []byte, bare bool) opening {
	if p.noCalls {
		return opening{}
	}
	rest := b
	switch match(b, callOpen) {
	case wait:
		return opening{verdict: wait}
	case yes:
		rest, bare = skipSpace(b[len(callOpen):]), false
	case no:
		if !bare || len(p.tools) == 0 {
			return opening{}
		}
	}
	v := match(rest, functionOpen)
	if v != yes {
		return opening{verdict: v}
	}
	rest = rest[len(functionOpen):]
	name, n, v := tagName(rest)
	if v != yes {
		return opening{verdict: v}
	}
	o := opening{verdict: yes, name: name, n: len(b) - len(rest) + n, bare: bare}
	if bare {
		if _, declared := p.tools[name]; !declared {
			return opening{}
		}
		o.verdict = p.any(skipSpace(rest[n:]), parameterOpen, functionClose)
	}
	return o
}

// any tells whether b begins with one of the tokens. The end of the text counts as one.
func (p *Parser) any(b []byte, tokens ...string) verdict {
	result := no
	for _, token := range tokens {
		switch match(b, token) {
		case yes:
			return yes
		case wait:
			result = wait
		}
	}
	if result == wait && p.final {
		return yes
	}
	return result
}

// valueEnds tells whether the "<" that buf begins with ends the value.
func (p *Parser) valueEnds() verdict {
	b := p.buf
	result := no
	switch match(b, parameterClose) {
	case yes:
		if p.call.complete() {
			return yes
		}
		return p.closesValue(skipSpace(b[len(parameterClose):]))
	case wait:
		result = wait
	}
	switch match(b, functionClose) {
	case yes:
		return p.closesFunction(skipSpace(b[len(functionClose):]))
	case wait:
		result = wait
	}
	switch match(b, callClose) {
	case yes:
		return p.closesCall(skipSpace(b[len(callClose):]))
	case wait:
		result = wait
	}
	if p.call.lineStart() {
		switch match(b, parameterOpen) {
		case yes:
			return p.opensUnseen(b[len(parameterOpen):])
		case wait:
			result = wait
		}
	}
	return result
}

// closesValue: b is what follows </parameter>.
func (p *Parser) closesValue(b []byte) verdict {
	if match(b, parameterOpen) == yes {
		key, _, v := tagName(b[len(parameterOpen):])
		switch {
		case v == yes && !p.call.accepts(key):
			return no
		case v == wait && p.final:
			return yes
		}
		return v
	}
	if match(b, functionClose) == yes {
		return p.closesFunction(skipSpace(b[len(functionClose):]))
	}
	if match(b, callClose) == yes {
		return p.closesCall(skipSpace(b[len(callClose):]))
	}
	return p.any(b, parameterOpen, functionClose, callClose)
}

// closesFunction: b is what follows </function>.
func (p *Parser) closesFunction(b []byte) verdict {
	if match(b, callClose) == yes {
		return p.settled(skipSpace(b[len(callClose):]))
	}
	if v := p.any(b, callClose); v != no {
		return v
	}
	if p.call.bare {
		return p.settled(b)
	}
	return p.opensNext(b)
}

// closesCall: b is what follows a </tool_call> that has no </function> before it.
func (p *Parser) closesCall(b []byte) verdict {
	if len(b) == 0 {
		return p.any(b, callOpen)
	}
	return p.opensNext(b)
}

// opensNext tells whether b begins with the start of a next call.
func (p *Parser) opensNext(b []byte) verdict {
	o := p.opening(b, p.call.bare)
	if o.verdict == wait && p.final {
		return yes
	}
	return o.verdict
}

// opensUnseen: b is what follows <parameter= at the start of a line in a value.
func (p *Parser) opensUnseen(b []byte) verdict {
	key, n, v := tagName(b)
	switch {
	case v != yes:
		return v
	case p.call.seen[key] || !p.call.accepts(key):
		return no
	case p.call.tool.declares(key):
		return yes
	}
	// Nothing declares the key: it counts only in the form that the template writes.
	return match(b[n:], "\n")
}

// settled: b is what follows a call's end. It holds unless a </parameter> further on
// closes the value again. p.scan remembers how far of buf was looked through.
func (p *Parser) settled(b []byte) verdict {
	start := len(p.buf) - len(b)
	for i := max(start, p.scan); i < len(p.buf); {
		next := bytes.IndexByte(p.buf[i:], '<')
		if next < 0 {
			p.scan = len(p.buf)
			break
		}
		i += next
		p.scan = i
		o := p.opening(p.buf[i:], true)
		if o.verdict == yes {
			return yes
		}
		again := p.closesAgain(p.buf[i:])
		if again == yes {
			return no
		}
		if (o.verdict == wait || again == wait) && !p.final {
			return wait
		}
		i++
		p.scan = i
	}
	if p.final {
		return yes
	}
	return wait
}

// closesAgain tells whether b begins with a </parameter> that could end a value.
func (p *Parser) closesAgain(b []byte) verdict {
	if v := match(b, parameterClose); v != yes {
		return v
	}
	b = skipSpace(b[len(parameterClose):])
	if match(b, parameterOpen) == yes {
		key, _, v := tagName(b[len(parameterOpen):])
		if v == yes && !p.call.accepts(key) {
			return no
		}
		return v
	}
	if match(b, functionClose) == yes {
		if p.call.bare {
			return yes
		}
		b = skipSpace(b[len(functionClose):])
		return p.any(b, callClose)
	}
	if match(b, parameterOpen) == wait || match(b, functionClose) == wait {
		return wait
	}
	return no
}
