// Package chats keeps conversations and holds them: a Store is the folder with one file a chat, a Talk is one chat that is open,
// with at most one answer being written.
//
// It knows no window and no device. Answers come through Ask, so the same code talks to the engine and, in tests, to a script.
//
// What it promises:
//   - Nothing is told to a watcher that is not in the file before. A process that is killed loses no word that was seen.
//   - A chat is a tree: editing a question or asking again adds a branch and removes nothing.
//   - One chat that cannot be read costs no other chat; it stays where it is, and is counted.
//
// Start with Store; record.go is the format of a file, talk.go the life of an answer.
package chats

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Role is who said something.
type Role string

// The roles of a chat. System text is a parameter, not a message.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// End is why an answer ended.
type End string

// The ends of an answer.
const (
	Running     End = ""            // it has not
	Complete    End = "stop"        // the model had no more to say
	Length      End = "length"      // a limit cut it
	Stopped     End = "stopped"     // the user did
	Interrupted End = "interrupted" // the program went away while it was written
	Broken      End = "failed"      // Message.Error says why
)

// Message is one turn.
type Message struct {
	ID       int       `json:"id"`               // from 1, in the order of their making
	Parent   int       `json:"parent,omitempty"` // what it answers or follows; 0: it is a first one
	Role     Role      `json:"role"`
	Text     string    `json:"text,omitempty"`
	Thinking string    `json:"thinking,omitempty"`
	Files    []File    `json:"files,omitempty"`
	At       time.Time `json:"at"`
	End      End       `json:"end,omitempty"` // of an answer
	Error    string    `json:"error,omitempty"`
	Figures  *Figures  `json:"figures,omitempty"` // of an answer that got so far
}

// File is a text file that was attached to a question.
type File struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Figures are the numbers of one answer. Zero: not known.
type Figures struct {
	PromptTokens   int     `json:"prompt_tokens,omitempty"`
	CachedTokens   int     `json:"cached_tokens,omitempty"` // of the prompt, not computed again
	DiskTokens     int     `json:"disk_tokens,omitempty"`   // the same where they were read from the disk
	Tokens         int     `json:"tokens,omitempty"`        // of the answer, thinking included
	FirstTokenMS   int64   `json:"first_token_ms,omitempty"`
	ThinkingMS     int64   `json:"thinking_ms,omitempty"`
	TokensASecond  float64 `json:"tokens_a_second,omitempty"` // of decoding alone
	ThinkingTokens int     `json:"thinking_tokens,omitempty"`
}

// Line is the figures in a few words: decoding and waiting apart, because one blended rate says nothing.
func (f Figures) Line() string {
	var parts []string
	if f.TokensASecond > 0 {
		parts = append(parts, fmt.Sprintf("%.3g tok/s", f.TokensASecond))
	}
	if f.FirstTokenMS > 0 {
		parts = append(parts, "first token after "+Seconds(time.Duration(f.FirstTokenMS)*time.Millisecond))
	}
	if f.Tokens > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens", f.Tokens))
	}
	if f.CachedTokens > 0 {
		reused := fmt.Sprintf("%d of %d prompt tokens reused", f.CachedTokens, f.PromptTokens)
		if f.DiskTokens > 0 {
			reused += " from disk"
		}
		parts = append(parts, reused)
	}
	return strings.Join(parts, " · ")
}

// Seconds writes a short time: "40 ms", "0.4 s", "12 s", "2 min 5 s".
func Seconds(d time.Duration) string {
	switch s := d.Seconds(); {
	case s > 0 && s < 0.095:
		return fmt.Sprintf("%d ms", max(1, d.Milliseconds()))
	case s < 9.95:
		return fmt.Sprintf("%.1f s", s)
	case s < 59.5:
		return fmt.Sprintf("%.0f s", s)
	default:
		n := int(math.Round(s))
		if n%60 == 0 {
			return fmt.Sprintf("%d min", n/60)
		}
		return fmt.Sprintf("%d min %d s", n/60, n%60)
	}
}

// Params are the parameters of one chat. A nil or zero field leaves the choice to the model's defaults.
type Params struct {
	Temperature *float64 `json:"temperature,omitempty"` // 0 to 2
	TopP        *float64 `json:"top_p,omitempty"`       // 0 to 1; 0 and 1 leave it out
	TopK        *int     `json:"top_k,omitempty"`       // 0: all
	Thinking    *bool    `json:"thinking,omitempty"`    // nil: on
	System      string   `json:"system,omitempty"`
	MaxTokens   int      `json:"max_tokens,omitempty"` // of an answer
}

// Thinks says whether answers begin with thinking.
func (p Params) Thinks() bool { return p.Thinking == nil || *p.Thinking }

// Validate checks the ranges; the error names the parameter as the window does.
func (p Params) Validate() error {
	if t := p.Temperature; t != nil && !(*t >= 0 && *t <= 2) {
		return fmt.Errorf("temperature: got %v, want 0 to 2", *t)
	}
	if t := p.TopP; t != nil && !(*t >= 0 && *t <= 1) {
		return fmt.Errorf("top-p: got %v, want 0 to 1", *t)
	}
	if k := p.TopK; k != nil && *k < 0 {
		return fmt.Errorf("top-k: got %d, want 0 (no limit) or more", *k)
	}
	if p.MaxTokens < 0 {
		return fmt.Errorf("longest answer: got %d, want 0 (no limit of your own) or more", p.MaxTokens)
	}
	return nil
}

// chat is the tree of a conversation. It is a plain value without locks; Talk guards it.
type chat struct {
	id       string
	title    string // empty: the first words of the first question
	created  time.Time
	updated  time.Time
	params   Params
	messages []Message // messages[i].ID == i+1
	head     int       // the message that the shown path ends with; 0: none
}

// message returns the message, or nil.
func (c *chat) message(id int) *Message {
	if id < 1 || id > len(c.messages) {
		return nil
	}
	return &c.messages[id-1]
}

// path is what is shown: from a first message to the head.
func (c *chat) path() []Message {
	var ids []int
	for id := c.head; id != 0; id = c.message(id).Parent {
		ids = append(ids, id)
	}
	out := make([]Message, 0, len(ids))
	for i := len(ids) - 1; i >= 0; i-- {
		out = append(out, *c.message(ids[i]))
	}
	return out
}

// versions are the messages that stand in the same place, and which of them id is, from 0.
func (c *chat) versions(id int) (ids []int, at int) {
	parent := c.message(id).Parent
	for i := range c.messages {
		m := &c.messages[i]
		if m.Parent == parent && m.Role == c.message(id).Role {
			if m.ID == id {
				at = len(ids)
			}
			ids = append(ids, m.ID)
		}
	}
	return ids, at
}

// leaf is the newest message below id.
func (c *chat) leaf(id int) int {
	leaf := id
	below := map[int]bool{id: true}
	for i := range c.messages { // a message is younger than its parent
		if m := &c.messages[i]; below[m.Parent] {
			below[m.ID], leaf = true, m.ID
		}
	}
	return leaf
}

// add appends a message as the new head and returns its id.
func (c *chat) add(m Message) int {
	m.ID = len(c.messages) + 1
	c.messages = append(c.messages, m)
	c.head, c.updated = m.ID, m.At
	return m.ID
}

// name is the title that is shown.
func (c *chat) name() string {
	if c.title != "" {
		return c.title
	}
	for i := range c.messages {
		if m := &c.messages[i]; m.Role == User {
			if line := firstLine(m.Text); line != "" {
				return line
			}
			if len(m.Files) > 0 {
				return m.Files[0].Name
			}
		}
	}
	return "New chat"
}

// titleRunes is the longest title made from a question.
const titleRunes = 60

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.Join(strings.Fields(line), " ")
	if r := []rune(line); len(r) > titleRunes {
		line = strings.TrimSpace(string(r[:titleRunes])) + "…"
	}
	return line
}
