package chats

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// extension is that of a chat's file.
const extension = ".jsonl"

// Store is a folder of chats. Its methods are safe for concurrent use; one Talk a chat is open at most.
type Store struct {
	dir string
	ask Ask

	mu   sync.Mutex // protects what follows
	open map[string]*Talk
	seen map[string]seen // by file name
}

// seen is what a file held when it had this size and time.
type seen struct {
	size    int64
	at      time.Time
	summary Summary
	err     error
}

// Summary is a line of the list of chats.
type Summary struct {
	ID       string
	Title    string
	Updated  time.Time
	Messages int
	Found    string // the words around what was searched for, when they stand in a message
}

// List is what the folder holds.
type List struct {
	Chats []Summary // youngest first
	Bad   []Bad     // files that cannot be read; they are left alone
}

// Bad is a file that is no readable chat.
type Bad struct {
	File string
	Err  error
}

// New is the store in a folder, which is made when the first chat is.
func New(dir string, ask Ask) *Store {
	return &Store{dir: dir, ask: ask, open: map[string]*Talk{}, seen: map[string]seen{}}
}

// Dir is the folder.
func (s *Store) Dir() string { return s.dir }

// List finds the chats whose title or messages hold all words of the query, whatever their case; an empty query finds all. A folder
// that is not there holds none.
func (s *Store) List(query string) (List, error) {
	var out List
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return out, fmt.Errorf("the chats cannot be listed: %w", err)
	}
	words := strings.Fields(strings.ToLower(query))
	there := map[string]bool{}
	for _, e := range entries {
		if e.IsDir() || filepath.Ext(e.Name()) != extension {
			continue
		}
		there[e.Name()] = true
		summary, err := s.look(e, words)
		switch {
		case errors.Is(err, fs.ErrNotExist): // deleted while we looked
		case err != nil:
			out.Bad = append(out.Bad, Bad{e.Name(), err})
		case summary.ID != "":
			out.Chats = append(out.Chats, summary)
		}
	}
	s.mu.Lock()
	for name := range s.seen {
		if !there[name] {
			delete(s.seen, name)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(out.Chats, func(a, b Summary) int {
		return cmp.Or(b.Updated.Compare(a.Updated), strings.Compare(b.ID, a.ID))
	})
	return out, nil
}

// look is one chat of the list; an empty summary when it does not hold the words.
func (s *Store) look(e fs.DirEntry, words []string) (Summary, error) {
	info, err := e.Info()
	if err != nil {
		return Summary{}, err
	}
	s.mu.Lock()
	known, ok := s.seen[e.Name()]
	s.mu.Unlock()
	ok = ok && known.size == info.Size() && known.at.Equal(info.ModTime())
	if ok && (known.err != nil || contains(known.summary.Title, words)) {
		return known.summary, known.err
	}
	r, err := s.load(e.Name())
	known = seen{size: info.Size(), at: info.ModTime(), err: err}
	if err == nil {
		known.summary = Summary{ID: strings.TrimSuffix(e.Name(), extension), Title: r.name(), Updated: r.updated, Messages: len(r.messages)}
	}
	s.mu.Lock()
	s.seen[e.Name()] = known
	s.mu.Unlock()
	if err != nil || contains(known.summary.Title, words) {
		return known.summary, err
	}
	found, ok := find(r.messages, words)
	if !ok {
		return Summary{}, nil
	}
	known.summary.Found = found
	return known.summary, nil
}

func (s *Store) load(name string) (reading, error) {
	f, err := os.Open(filepath.Join(s.dir, name))
	if err != nil {
		return reading{}, err
	}
	defer f.Close()
	return read(f)
}

func contains(text string, words []string) bool {
	text = strings.ToLower(text)
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// find looks for words in messages and quotes the place of the first.
func find(messages []Message, words []string) (quote string, ok bool) {
	for _, w := range words {
		found := false
		for i := range messages {
			text := messages[i].Text
			at := strings.Index(strings.ToLower(text), w)
			if at < 0 {
				continue
			}
			found = true
			if quote == "" {
				quote = around(text, min(at, len(text)))
			}
			break
		}
		if !found {
			return "", false
		}
	}
	return quote, true
}

// around is a short piece of text with the place in its middle.
func around(text string, at int) string {
	const before, length = 20, 70
	from := at
	for n := 0; from > 0 && n < before; n++ {
		from--
		for from > 0 && text[from]&0xC0 == 0x80 {
			from--
		}
	}
	for from < len(text) && text[from]&0xC0 == 0x80 {
		from++
	}
	r := []rune(text[from:min(len(text), from+4*length)])
	out := strings.Join(strings.Fields(string(r[:min(len(r), length)])), " ")
	if from > 0 {
		out = "…" + out
	}
	return out
}

// Begin is a new chat. It has no file before its first message.
func (s *Store) Begin(p Params) *Talk {
	now := time.Now()
	var b [4]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	t := newTalk(s, chat{id: now.UTC().Format("20060102-150405-") + hex.EncodeToString(b[:]), created: now, updated: now, params: p})
	s.mu.Lock()
	s.open[t.c.id] = t
	s.mu.Unlock()
	return t
}

// Open is the chat of a name from the list. What a crash left of it is repaired.
func (s *Store) Open(id string) (*Talk, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.open[id]; t != nil {
		return t, nil
	}
	if id == "" || filepath.Base(id) != id {
		return nil, fmt.Errorf("chat %q: want a name from the list", id)
	}
	r, err := s.load(id + extension)
	if err != nil {
		return nil, fmt.Errorf("the chat cannot be opened: %w", err)
	}
	r.id = id
	t := newTalk(s, r.chat)
	if err := t.journal.open(r); err != nil {
		t.notice = notSaved(err)
	}
	s.open[id] = t
	return t, nil
}

// Rename gives a chat a title; an empty one brings back that of its first question.
func (s *Store) Rename(id, title string) error {
	t, err := s.Open(id)
	if err != nil {
		return err
	}
	return t.rename(strings.Join(strings.Fields(title), " "))
}

// Delete stops what is being written in a chat and removes it.
func (s *Store) Delete(id string) error {
	s.mu.Lock()
	t := s.open[id]
	delete(s.open, id)
	s.mu.Unlock()
	if t != nil {
		t.close()
	}
	if err := os.Remove(filepath.Join(s.dir, filepath.Base(id)+extension)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the chat cannot be deleted: %w", err)
	}
	return nil
}

// Leave says that nobody looks at a chat any more. One that is being answered goes on; the file of another is closed.
func (s *Store) Leave(id string) {
	s.mu.Lock()
	t := s.open[id]
	idle := t != nil && !t.answering()
	if idle {
		delete(s.open, id)
	}
	s.mu.Unlock()
	if idle {
		t.close()
	}
}

// Close stops all answers and closes all files; what was written of an answer is kept, and marked as interrupted.
func (s *Store) Close() {
	s.mu.Lock()
	open := s.open
	s.open = map[string]*Talk{}
	s.mu.Unlock()
	for _, t := range open {
		t.close()
	}
}

func notSaved(err error) string { return "This chat is not being saved: " + err.Error() + "." }
