package chats

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// A chat is a file of lines, each one JSON object with one key (UTF-8, "\n" behind each):
//
//	{"pond_chat":1,"id":"...","at":"..."}            the first line: version of the format, name of the chat, when it began
//	{"title":"..."}                                  the user's name for it; the last one counts
//	{"params":{...}}                                 Params; the last ones count
//	{"message":{"id":1,"parent":0,"role":"user",...}} a message, whole, or an answer that begins
//	{"more":{"id":2,"thinking":"...","text":"..."}}  what was added to an answer
//	{"end":{"id":2,"end":"stop","figures":{...}}}    how it ended; an answer without this line was interrupted
//	{"head":4}                                       which branch is shown
//
// Lines are only added, so a process that dies leaves at most one torn line, the last. A file of a higher version is not touched.
const formatVersion = 1

type record struct {
	Version int        `json:"pond_chat,omitempty"`
	ID      string     `json:"id,omitempty"`
	At      *time.Time `json:"at,omitempty"`

	Title   *string  `json:"title,omitempty"`
	Params  *Params  `json:"params,omitempty"`
	Message *Message `json:"message,omitempty"`
	More    *more    `json:"more,omitempty"`
	End     *ended   `json:"end,omitempty"`
	Head    *int     `json:"head,omitempty"`
}

type more struct {
	ID       int    `json:"id"`
	Thinking string `json:"thinking,omitempty"`
	Text     string `json:"text,omitempty"`
}

type ended struct {
	ID      int      `json:"id"`
	End     End      `json:"end"`
	Error   string   `json:"error,omitempty"`
	Figures *Figures `json:"figures,omitempty"`
}

// VersionError says that a chat was written by a newer Pond.
type VersionError struct{ Version int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the chat has format %d, want %d: it was written by a newer Pond", e.Version, formatVersion)
}

// encode writes records as lines.
func encode(records ...record) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for _, r := range records {
		if err := e.Encode(r); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// apply adds a record to the chat; false: it makes no sense where it stands.
func (c *chat) apply(r record) bool {
	switch {
	case r.Title != nil:
		c.title = *r.Title
	case r.Params != nil:
		if r.Params.Validate() != nil {
			return false
		}
		c.params = *r.Params
	case r.Message != nil:
		m := *r.Message
		if m.ID != len(c.messages)+1 || m.Parent < 0 || m.Parent >= m.ID || m.Role != User && m.Role != Assistant {
			return false
		}
		c.add(m)
	case r.More != nil:
		m := c.message(r.More.ID)
		if m == nil {
			return false
		}
		m.Thinking += r.More.Thinking
		m.Text += r.More.Text
	case r.End != nil:
		m := c.message(r.End.ID)
		if m == nil {
			return false
		}
		m.End, m.Error, m.Figures = r.End.End, r.End.Error, r.End.Figures
	case r.Head != nil:
		if c.message(*r.Head) == nil {
			return false
		}
		c.head = *r.Head
	default:
		return false
	}
	return true
}

// reading is a chat as its file tells it, and what is wrong with the file.
type reading struct {
	chat
	lines   int   // whole lines
	whole   int64 // bytes of whole lines; what follows is torn
	torn    bool
	damaged int   // whole lines that make no sense
	open    []int // answers that have no end
}

var errNoChat = errors.New("the first line is not the beginning of a chat")

// read takes a file in. Answers without an end are marked as interrupted; lines that make no sense are passed over and counted.
func read(from io.Reader) (reading, error) {
	var r reading
	in := bufio.NewReaderSize(from, 64<<10)
	growing := map[int]*growth{}
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			r.torn = len(line) > 0
			break
		}
		if err != nil {
			return r, err
		}
		r.lines++
		r.whole += int64(len(line))
		var rec record
		bad := json.Unmarshal(line, &rec) != nil
		if r.lines == 1 {
			switch {
			case bad || rec.Version == 0:
				return r, errNoChat
			case rec.Version != formatVersion:
				return r, &VersionError{rec.Version}
			}
			r.id = rec.ID
			if rec.At != nil {
				r.created, r.updated = *rec.At, *rec.At
			}
			continue
		}
		if rec.More != nil && r.message(rec.More.ID) != nil { // joined once, at the end: adding line by line would copy the answer each time
			g := growing[rec.More.ID]
			if g == nil {
				g = &growth{}
				growing[rec.More.ID] = g
			}
			g.thinking.WriteString(rec.More.Thinking)
			g.text.WriteString(rec.More.Text)
			continue
		}
		if bad || !r.apply(rec) {
			r.damaged++
		}
	}
	if r.lines == 0 {
		return r, errNoChat
	}
	for id, g := range growing {
		m := r.message(id)
		m.Thinking += g.thinking.String()
		m.Text += g.text.String()
	}
	for i := range r.messages {
		if m := &r.messages[i]; m.Role == Assistant && m.End == Running {
			m.End = Interrupted
			r.open = append(r.open, m.ID)
		}
	}
	return r, nil
}

type growth struct{ thinking, text bytes.Buffer }

// records is the chat in as few lines as can be.
func (c *chat) records() []record {
	out := []record{c.header()}
	if c.title != "" {
		out = append(out, record{Title: &c.title})
	}
	out = append(out, record{Params: &c.params})
	for i := range c.messages {
		out = append(out, record{Message: &c.messages[i]})
	}
	if c.head != 0 && c.head != len(c.messages) {
		out = append(out, record{Head: &c.head})
	}
	return out
}

func (c *chat) header() record {
	return record{Version: formatVersion, ID: c.id, At: &c.created}
}
