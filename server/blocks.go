package server

import (
	"pond/inference/chat"
)

// block is a stretch of an answer of one kind: thinking, text, or one call.
type block struct {
	index    int
	kind     chat.EventKind // chat.Reasoning, chat.Text or chat.CallStart
	text     string         // of a call: its arguments
	id, name string         // of a call
	cut      bool           // the answer ended within it
	read     int            // bytes of the arguments that moreInput has given
}

// blockWriter hears of blocks as they come. Blocks do not overlap.
type blockWriter interface {
	opened(b *block) error
	grew(b *block, text string) error
	closed(b *block) error
}

// blocks cuts the events of an answer into blocks, for the APIs that send an answer as a list of them: streamed and whole answers then have the
// same ones.
type blocks struct {
	list []*block
	open bool // the last one
}

// apply adds one event.
func (l *blocks) apply(e chat.Event, w blockWriter) error {
	switch e.Kind {
	case chat.Reasoning, chat.Text:
		if e.Text == "" {
			return nil
		}
		if !l.open || l.last().kind != e.Kind {
			if err := l.start(&block{kind: e.Kind}, w); err != nil {
				return err
			}
		}
		return l.grow(e.Text, w)
	case chat.CallStart:
		return l.start(&block{kind: e.Kind, id: e.ID, name: e.Name}, w)
	case chat.CallArguments:
		return l.grow(e.Text, w)
	}
	if e.Cut && l.open { // chat.CallEnd
		l.last().cut = true
	}
	return l.end(w)
}

func (l *blocks) last() *block { return l.list[len(l.list)-1] }

func (l *blocks) start(b *block, w blockWriter) error {
	if err := l.end(w); err != nil {
		return err
	}
	b.index = len(l.list)
	l.list, l.open = append(l.list, b), true
	return w.opened(b)
}

func (l *blocks) grow(text string, w blockWriter) error {
	if text == "" || !l.open {
		return nil
	}
	l.last().text += text
	return w.grew(l.last(), text)
}

// end closes the block that is open, if one is.
func (l *blocks) end(w blockWriter) error {
	if !l.open {
		return nil
	}
	l.open = false
	return w.closed(l.last())
}

// finish ends the last block with the answer.
func (l *blocks) finish(w blockWriter) error {
	if l.open {
		l.last().cut = true
	}
	return l.end(w)
}

// unheard is the writer of an answer that is not streamed.
type unheard struct{}

func (unheard) opened(*block) error       { return nil }
func (unheard) grew(*block, string) error { return nil }
func (unheard) closed(*block) error       { return nil }

// blocksOf cuts a whole answer.
func blocksOf(events []chat.Event) []*block {
	var l blocks
	for _, e := range events {
		l.apply(e, unheard{}) // which has no errors
	}
	l.finish(unheard{})
	return l.list
}
