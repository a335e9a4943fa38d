package chat

import (
	"bytes"
	"strings"
)

// Inside a call. The grammar, with what is forgiven in lookahead.go:
//
//	call := "<tool_call>" ws "<function=" NAME ">" body "</function>" ws "</tool_call>"
//	body := { ws "<parameter=" KEY ">" [nl] VALUE [nl] "</parameter>" } ws
//
// A string value leaves as it comes, in escaped fragments; any other waits until it is
// whole, for its type decides how it is written. A key that comes twice is written
// twice, since the first cannot be taken back from a stream: readers of JSON take the
// last. Text between the parameters is passed over; if the call ends with the text, it
// was prose behind a mention of a call, and goes back to where the call began.

// valueMode is how a value leaves.
type valueMode int

const (
	buffered  valueMode = iota // whole, at its end
	streaming                  // a string, in fragments
	deciding                   // a string or null: held while it may be null
)

// callState is the call that is being read.
type callState struct {
	index  int
	origin parserState // inReasoning or inContent: where it opened
	bare   bool        // opened without <tool_call>
	tool   *toolSchema // nil: not declared
	seen   map[string]bool
	args   int // arguments written
	cut    bool

	key     string
	typ     paramType
	mode    valueMode
	begun   bool   // the value's leading newline was dealt with
	newline bool   // a newline is held back: it may be the one before the closing tag
	some    bool   // the value has text
	value   []byte // held text of the value, unless streaming
}

// accepts tells whether a parameter of that name can follow.
func (c *callState) accepts(key string) bool {
	return c.tool == nil || c.tool.open || c.tool.declares(key)
}

// lineStart tells whether the next byte of the value starts a line.
func (c *callState) lineStart() bool { return c.newline || !c.some }

// complete tells whether the value needs no more text, whatever follows.
func (c *callState) complete() bool {
	switch c.typ.kind {
	case integerType, numberType, booleanType:
		return true
	case containerType, looseType:
		_, err := parseJSON(string(c.value))
		return err == nil
	}
	return false
}

func (p *Parser) channelOf(s parserState) *channel {
	if s == inReasoning {
		return &p.reasoning
	}
	return &p.content
}

// startCall takes the opening that buf begins with.
func (p *Parser) startCall(origin parserState) {
	o := p.opening(p.buf, true)
	p.take(o.n)
	p.call = callState{index: p.calls, origin: origin, bare: o.bare, tool: p.tools[o.name], seen: map[string]bool{}}
	p.calls++
	p.emit(Event{Kind: CallStart, Index: p.call.index, ID: p.newID(), Name: o.name})
	p.state = inCall
}

// stepCall looks for the next tag of the call. p.scan counts the text passed over.
func (p *Parser) stepCall() bool {
	for {
		i := bytes.IndexByte(p.buf[p.scan:], '<')
		if i < 0 {
			p.scan = len(p.buf)
			return p.callStalls()
		}
		p.scan += i
		b := p.buf[p.scan:]
		if match(b, parameterOpen) == yes {
			switch key, n, v := tagName(b[len(parameterOpen):]); v {
			case yes:
				p.take(p.scan + len(parameterOpen) + n)
				p.startValue(key)
				return true
			case wait:
				return p.callStalls()
			}
			p.scan++
			continue
		}
		if match(b, functionClose) == yes {
			p.take(p.scan + len(functionClose))
			p.state = afterFunction
			return true
		}
		if match(b, callClose) == yes {
			p.take(p.scan + len(callClose))
			p.endCall()
			return true
		}
		if match(b, parameterClose) == yes && isBlank(p.buf[:p.scan]) {
			p.take(p.scan + len(parameterClose)) // one too many
			continue
		}
		o := p.opening(b, false)
		if o.verdict == yes || p.call.origin == inReasoning && match(b, thinkClose) == yes {
			// The call was never closed; what was passed over is no part of it.
			p.abandon(p.scan)
			if o.verdict != yes {
				p.take(len(thinkClose))
			}
			return true
		}
		if o.verdict == wait || match(b, parameterOpen) == wait || match(b, functionClose) == wait || match(b, callClose) == wait ||
			match(b, parameterClose) == wait || p.call.origin == inReasoning && match(b, thinkClose) == wait {
			return p.callStalls()
		}
		p.scan++
	}
}

// callStalls waits for more text in stepCall, or ends the call with the text.
func (p *Parser) callStalls() bool {
	if !p.final {
		return false
	}
	p.call.cut = p.end == EndLength
	p.abandon(p.scan)
	p.take(len(p.buf)) // the beginning of a tag
	return true
}

// abandon gives n bytes that no tag followed back to where the call began, and ends it.
func (p *Parser) abandon(n int) {
	text := p.take(n)
	p.endCall()
	c := p.channelOf(p.call.origin)
	p.write(c, text)
	c.boundary()
}

// stepAfterFunction takes the </tool_call> that should follow </function>.
func (p *Parser) stepAfterFunction() bool {
	rest := skipSpace(p.buf)
	switch match(rest, callClose) {
	case wait:
		if !p.final {
			return false
		}
		p.take(len(p.buf))
	case yes:
		p.take(len(p.buf) - len(rest) + len(callClose))
	}
	p.endCall()
	return true
}

func (p *Parser) startValue(key string) {
	c := &p.call
	c.key, c.seen[key] = key, true
	c.typ = c.tool.param(key)
	c.begun, c.newline, c.some, c.value = false, false, false, nil
	switch {
	case c.typ.kind != stringType:
		c.mode = buffered
	case c.typ.nullable:
		c.mode = deciding
	default:
		p.startString()
	}
	p.state = inValue
}

// stepValue takes the value up to the next tag that could end it.
func (p *Parser) stepValue() bool {
	c := &p.call
	if !c.begun && len(p.buf) > 0 {
		// Exactly one newline belongs to the opening tag.
		if p.buf[0] == '\n' {
			p.take(1)
		}
		c.begun = true
	}
	i := bytes.IndexByte(p.buf, '<')
	if i < 0 {
		p.addValue(p.take(len(p.buf)))
		if p.final {
			p.cutValue()
		}
		return p.final
	}
	if i > 0 {
		p.addValue(p.take(i)) // not at 0: p.scan is kept
	}
	switch p.valueEnds() {
	case no:
		p.addValue(p.take(1))
	case wait:
		if !p.final {
			return false
		}
		rest := p.take(len(p.buf))
		if p.end == EndLength || len(rest) == 1 {
			p.addValue(rest)
		}
		p.cutValue()
	case yes:
		if match(p.buf, parameterClose) == yes {
			p.take(len(parameterClose))
		}
		p.endValue()
	}
	return true
}

// cutValue ends a value, and its call, with the text.
func (p *Parser) cutValue() {
	if p.call.newline && p.end == EndLength {
		p.call.newline = false
		p.addHeld([]byte("\n"))
	}
	p.call.cut = p.end == EndLength
	p.endValue()
	p.endCall()
}

// addValue adds text to the value, less a newline at its end.
func (p *Parser) addValue(text []byte) {
	if len(text) == 0 {
		return
	}
	c := &p.call
	c.some = true
	if c.newline {
		c.newline = false
		p.addHeld([]byte("\n"))
	}
	if n := len(text) - 1; text[n] == '\n' {
		c.newline = true
		text = text[:n]
	}
	p.addHeld(text)
}

func (p *Parser) addHeld(text []byte) {
	c := &p.call
	if c.mode == streaming {
		p.emitArguments(appendEscaped(nil, string(text)))
		return
	}
	c.value = append(c.value, text...)
	if c.mode == deciding && !maybeNull(string(c.value)) {
		p.startString()
	}
}

// startString writes the start of a string value, and what of it is there.
func (p *Parser) startString() {
	p.startArgument()
	p.emitArguments(appendEscaped([]byte{'"'}, string(p.call.value)))
	p.call.mode, p.call.value = streaming, nil
}

// endValue writes the rest of the value.
func (p *Parser) endValue() {
	c := &p.call
	switch c.mode {
	case streaming:
		p.emitArguments([]byte{'"'})
	default:
		if value, ok := coerce(c.typ, string(c.value)); ok {
			p.startArgument()
			p.emitArguments(appendJSON(nil, value, compactForm))
		}
	}
	c.value = nil
	p.scan = 0
	p.state = inCall
}

func (p *Parser) startArgument() {
	b := []byte{','}
	if p.call.args == 0 {
		b[0] = '{'
	}
	p.call.args++
	p.emitArguments(append(appendQuoted(b, p.call.key), ':'))
}

func (p *Parser) emitArguments(json []byte) {
	p.emitText(Event{Kind: CallArguments, Index: p.call.index}, json)
}

func (p *Parser) endCall() {
	if p.call.args == 0 {
		p.emitArguments([]byte("{}"))
	} else {
		p.emitArguments([]byte("}"))
	}
	p.emit(Event{Kind: CallEnd, Index: p.call.index, Cut: p.call.cut})
	p.scan = 0
	p.state = inContent
}

// maybeNull tells whether s may become null or None.
func maybeNull(s string) bool {
	s = strings.ToLower(trim(s))
	return strings.HasPrefix("null", s) || strings.HasPrefix("none", s)
}
