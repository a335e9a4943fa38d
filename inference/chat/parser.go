package chat

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// The machine that reads what the model writes. Its invariants:
//
//   - One machine for streamed and whole answers: a whole answer is the fold of its
//     events, so the two cannot differ.
//   - A decision is made only when no further text could change it, so every split of
//     the text gives the same answer. Until then the text waits in buf.
//   - buf holds complete UTF-8; bytes that are not become U+FFFD, one each.
//   - Thoughts never become content: text that ends while reasoning stays reasoning.
//   - Arguments are valid JSON at every CallEnd, and every call that starts ends.
//
// Markers are matched as text, not as token ids: normally each is one token, but a
// model may also spell one out.

// End says why the text ended.
type End int

const (
	// EndStop: the model stopped. What looks like the beginning of a marker is dropped,
	// except a lone "<", which is an answer's last character more often.
	EndStop End = iota
	// EndLength: a limit cut the text. What was held back goes where it would have gone.
	EndLength
)

// ParserOptions is what the parser must know of the request.
type ParserOptions struct {
	// Thinking says that the text starts inside a think block: Prompt.Thinking.
	Thinking bool
	// Tools are the request's tools. Their schemas give arguments their types, and
	// their parameter names tell markup from text that mentions it.
	Tools []json.RawMessage
	// NoCalls says that the text holds no calls: what looks like one is text.
	NoCalls bool
	// Literal says that the content is a document of its own, such as JSON: unless it begins with a call, all of it is text, whatever it holds.
	Literal bool
	// NewID names calls; nil means "call_" and 24 random hexadecimal digits.
	NewID func() string
}

type parserState int

const (
	inReasoning   parserState = iota
	inContent                 // outside of everything; also between and after calls
	inCall                    // in a call, between parameters
	inValue                   // in a parameter's value
	afterFunction             // behind </function>, where </tool_call> should follow
)

// Parser turns the text of one answer into events. The zero value is not usable;
// see NewParser.
type Parser struct {
	state    parserState
	tools    toolSet
	newID    func() string
	events   []Event // of the running Push
	pending  Event   // text that may still grow, in fragment; follows events
	fragment []byte

	partial []byte // an incomplete character at the end of what came, at most 3 bytes
	buf     []byte // text not yet decided on
	scan    int    // bytes of buf that need no second look, in the states that wait long
	final   bool   // no more text will come
	end     End    // why, if final

	noCalls, literal bool

	reasoning, content channel
	call               callState
	calls              int // calls begun
}

// channel is the reasoning or the content: text in segments, between which calls or
// think blocks stand. Newlines at a segment's edges belong to the protocol, not to
// the text, and a blank segment is none.
type channel struct {
	kind EventKind
	some bool   // text was emitted, in this segment or an earlier one
	open bool   // text was emitted in this segment
	held []byte // a segment's blank start, or newlines that may turn out to be its end
}

// NewParser returns a parser for one answer. Tools that are not valid JSON are
// passed over; Normalise has refused them.
func NewParser(o ParserOptions) *Parser {
	p := &Parser{
		state:     inContent,
		tools:     newToolSet(o.Tools),
		newID:     o.NewID,
		noCalls:   o.NoCalls,
		literal:   o.Literal,
		reasoning: channel{kind: Reasoning},
		content:   channel{kind: Text},
	}
	if o.Thinking {
		p.state = inReasoning
	}
	if p.newID == nil {
		p.newID = newCallID
	}
	return p
}

// InReasoning reports whether the text so far ends inside a think block. After a
// stop it means that the model never answered.
func (p *Parser) InReasoning() bool { return p.state == inReasoning }

// Push adds text and returns what is certain by now. Text after Close is ignored.
func (p *Parser) Push(text string) []Event {
	if p.final {
		return nil
	}
	p.decode([]byte(text))
	return p.run()
}

// Close ends the text and returns the rest.
func (p *Parser) Close(end End) []Event {
	if p.final {
		return nil
	}
	for range p.partial {
		p.buf = append(p.buf, "\uFFFD"...)
	}
	p.partial = nil
	p.final, p.end = true, end
	return p.run()
}

// decode appends complete characters to buf.
func (p *Parser) decode(b []byte) {
	if len(p.partial) > 0 {
		b = append(p.partial, b...)
	}
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			if !utf8.FullRune(b) {
				break
			}
			p.buf = append(p.buf, "\uFFFD"...)
		} else {
			p.buf = append(p.buf, b[:n]...)
		}
		b = b[n:]
	}
	p.partial = append([]byte(nil), b...)
}

// run steps until nothing more can be decided.
func (p *Parser) run() []Event {
	p.events = nil
	for more := true; more; {
		switch p.state {
		case inReasoning:
			more = p.stepText(&p.reasoning)
		case inContent:
			more = p.stepText(&p.content)
		case inCall:
			more = p.stepCall()
		case inValue:
			more = p.stepValue()
		case afterFunction:
			more = p.stepAfterFunction()
		}
	}
	if p.final {
		p.finish(&p.reasoning)
		p.finish(&p.content)
	}
	p.flush()
	return p.events
}

// finish ends a channel with the text.
func (p *Parser) finish(c *channel) {
	// Newlines at the end of complete thinking are the protocol's, as before </think>;
	// those at the end of content are the model's own.
	if c.open && (p.end == EndLength || c.kind == Text) {
		p.emitText(Event{Kind: c.kind}, c.held)
	}
	c.held = nil
}

// stepText moves on in reasoning or content. It reports false when it must wait for
// more text, or has come to the end.
func (p *Parser) stepText(c *channel) bool {
	i := bytes.IndexByte(p.buf, '<')
	if i < 0 {
		i = len(p.buf)
	}
	p.write(c, p.take(i))
	if len(p.buf) == 0 {
		return false
	}
	marker, m := p.marker(c)
	switch m {
	case wait:
		if !p.final {
			return false
		}
		// The text ends in the beginning of a marker, or in a call without a name,
		// which is passed on as the text that it is.
		if len(p.buf) > 1 && p.end == EndStop && !bytes.HasPrefix(p.buf, []byte(callOpen)) && !bytes.HasPrefix(p.buf, []byte(functionOpen)) {
			p.take(len(p.buf))
			return false
		}
		p.write(c, p.take(len(p.buf)))
		return false
	case no:
		p.write(c, p.take(1))
		return true
	}
	switch marker {
	case thinkClose:
		p.take(len(marker))
		if c.kind == Reasoning {
			c.boundary()
			p.state = inContent
		}
	case thinkOpen:
		p.take(len(marker))
		if c.kind == Text {
			c.boundary()
			p.state = inReasoning
		}
	case callClose:
		p.take(len(marker))
	default:
		c.boundary()
		p.startCall(p.state)
	}
	return true
}

// marker tells which marker buf begins with, where it is one in this channel.
func (p *Parser) marker(c *channel) (string, verdict) {
	result := no
	see := func(token string, v verdict) bool {
		if v == wait {
			result = wait
		}
		return v == yes
	}
	if p.literal && c.kind == Text && p.calls == 0 {
		if !c.some && see(callOpen, p.opening(p.buf, false).verdict) {
			return callOpen, yes
		}
		return "", result
	}
	if see(thinkClose, match(p.buf, thinkClose)) {
		return thinkClose, yes // in content a stray one is dropped
	}
	// Some prompts make the model repeat the opening tag; later on it is a mention.
	if (c.kind == Text || !c.open) && see(thinkOpen, match(p.buf, thinkOpen)) {
		return thinkOpen, yes
	}
	if o := p.opening(p.buf, c.kind == Text); see(callOpen, o.verdict) {
		return callOpen, yes
	}
	// A closing tag too many, right behind a call, is no content.
	if c.kind == Text && !c.open && p.calls > 0 && see(callClose, match(p.buf, callClose)) {
		return callClose, yes
	}
	return "", result
}

// take removes the first n bytes of buf and returns them. They are valid until the
// next Push.
func (p *Parser) take(n int) []byte {
	taken := p.buf[:n:n]
	p.buf = p.buf[n:]
	p.scan = 0
	return taken
}

// write adds text to a channel, holding back what may be a segment's edge.
func (p *Parser) write(c *channel, text []byte) {
	if len(text) == 0 {
		return
	}
	text = append(c.held, text...)
	c.held = nil
	if !c.open {
		if len(bytes.TrimFunc(text, isSpace)) == 0 {
			c.held = text
			return
		}
		if !c.some {
			text = bytes.TrimLeft(text, "\n")
		}
		c.open, c.some = true, true
	}
	body := bytes.TrimRight(text, "\n")
	c.held = append(c.held, text[len(body):]...)
	p.emitText(Event{Kind: c.kind}, body)
}

// boundary ends a segment and drops the newlines at its end.
func (c *channel) boundary() { c.open, c.held = false, nil }

// emit appends an event without text.
func (p *Parser) emit(e Event) {
	p.flush()
	p.events = append(p.events, e)
}

// emitText appends text to an event of e's kind and index, joining neighbours.
func (p *Parser) emitText(e Event, text []byte) {
	if p.pending != e {
		p.flush()
		p.pending = e
	}
	p.fragment = append(p.fragment, text...)
}

// flush ends the pending event.
func (p *Parser) flush() {
	if len(p.fragment) > 0 {
		p.pending.Text = string(p.fragment)
		p.events = append(p.events, p.pending)
	}
	p.pending, p.fragment = Event{}, p.fragment[:0]
}

// isBlank reports whether s is white space only.
func isBlank(b []byte) bool { return strings.TrimFunc(string(b), isSpace) == "" }
