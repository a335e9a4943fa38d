// Package badhub is test support: a model hub on loopback that serves files as huggingface.co does, redirects and ranges included,
// and misbehaves on demand. It counts what it sent.
//
// It is no part of the product. Start with Hub; an Act is one misbehaviour, and Schedule a random, seeded series of them.
package badhub

import (
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"pond/inference/checkpoint/manifest"
)

// Content is the bytes of a file.
type Content interface {
	io.ReaderAt
	Size() int64
}

// Kind is what an Act does.
type Kind int

// The misbehaviours. After counts bytes of the body.
const (
	Well        Kind = iota // as it should
	Reset                   // the connection is reset after After bytes
	Cut                     // the connection is closed after After bytes
	Short                   // the answer is complete, but ends After bytes early: without a length
	Stall                   // after After bytes nothing more comes until the client leaves, at most for Wait
	Trickle                 // a few bytes every Wait
	Whole                   // the whole file, status 200, whatever the range
	WrongRange              // another range than the one asked for, by one byte
	NoRange                 // 206 without Content-Range
	Multipart               // 206 with multipart/byteranges
	OtherSize               // the size in Content-Range, or Content-Length, is one more
	LongLength              // Content-Length promises After bytes more than there are
	Twice                   // the body comes twice
	Corrupt                 // a byte of the body is another
	Login                   // a web page instead, status 200
	Status                  // Status instead, with Retry-After where RetryAfter is not empty
	OtherETag               // another strong validator
	BadRedirect             // a redirect that leads nowhere
	Gzip                    // says that the content is encoded
	kinds
)

func (k Kind) String() string {
	names := [...]string{"well", "reset", "cut", "short", "stall", "trickle", "whole", "wrong range", "no range", "multipart", "other size", "long length",
		"twice", "corrupt", "login", "status", "other etag", "bad redirect", "gzip"}
	if k < 0 || int(k) >= len(names) {
		return "kind " + strconv.Itoa(int(k))
	}
	return names[k]
}

// Act is how one request is answered.
type Act struct {
	Kind       Kind
	After      int64
	Wait       time.Duration
	Status     int
	RetryAfter string
}

// Ask is one request for a file's bytes.
type Ask struct {
	N        int // requests before it
	Repo     string
	File     string
	From, To int64 // what was asked for, of the file's bytes
	Redirect bool  // it asks the hub, which will redirect
}

// Hub is an http.Handler.
type Hub struct {
	mu       sync.Mutex // protects all below
	files    map[string]Content
	act      func(Ask) Act
	cdn      string
	digest   bool
	requests int
	sent     map[string]int64
	asked    map[string][][2]int64
	tokens   map[string]string // by host asked: the last Authorization
	epoch    int
	digests  map[string]string
}

// Of makes a hub of files, by name.
func Of(files map[string]Content) *Hub {
	return &Hub{
		files: maps.Clone(files), tokens: map[string]string{}, sent: map[string]int64{}, asked: map[string][][2]int64{}, digests: map[string]string{},
	}
}

// Misbehave lets act decide about every request from now on; nil is good behaviour. It is called by several goroutines.
func (h *Hub) Misbehave(act func(Ask) Act) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.act = act
}

// RedirectTo makes the hub send everyone to another host that the same Hub serves, such as http://127.0.0.1:9999.
func (h *Hub) RedirectTo(url string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cdn = url
}

// TellDigests makes redirects tell the file's SHA-256 (X-Linked-Etag).
func (h *Hub) TellDigests() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.digest = true
}

// Put changes or adds a file.
func (h *Hub) Put(name string, c Content) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.files[name] = c
	delete(h.digests, name)
}

// File is the content of a file; nil where there is none.
func (h *Hub) File(name string) Content {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.files[name]
}

// Manifest is the manifest of the hub's files, in the order of names, with one source a repo.
func (h *Hub) Manifest(id string, names []string, repos ...string) manifest.Manifest {
	m := manifest.Manifest{ID: id}
	for _, name := range names {
		c := h.File(name)
		m.Files = append(m.Files, manifest.File{Name: name, Bytes: c.Size(), SHA256: sum(c)})
	}
	for _, repo := range repos {
		m.Sources = append(m.Sources, manifest.Source{Repo: repo, Revision: "main"})
	}
	return m
}

func sum(c Content) manifest.Digest {
	d := sha256.New()
	if _, err := io.Copy(d, io.NewSectionReader(c, 0, c.Size())); err != nil {
		panic("badhub: internal error: " + err.Error()) // content is memory
	}
	return manifest.Digest(d.Sum(nil))
}

// Sent is how many bytes of bodies were handed to the network for a file.
func (h *Hub) Sent(file string) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sent[file]
}

// AllSent is Sent of all files.
func (h *Hub) AllSent() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	var n int64
	for _, s := range h.sent {
		n += s
	}
	return n
}

// Asked lists the ranges that were asked for of a file's bytes.
func (h *Hub) Asked(file string) [][2]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([][2]int64(nil), h.asked[file]...)
}

// Requests is how many requests there were, redirects included.
func (h *Hub) Requests() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.requests
}

// Tokens is the last Authorization header that came to each host; empty where none came.
func (h *Hub) Tokens() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.tokens)
}

// Expire makes every link that a redirect led to invalid: 403 from now on.
func (h *Hub) Expire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.epoch++
}

// ServeHTTP answers /<owner>/<name>/resolve/<revision>/<file> and /cdn/<epoch>/<owner>/<name>/<file>.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var repo, file string
	linked := len(p) == 5 && p[0] == "cdn"
	switch {
	case linked:
		repo, file = p[2]+"/"+p[3], p[4]
	case len(p) == 5 && p[2] == "resolve":
		repo, file = p[0]+"/"+p[1], p[4]
	default:
		http.NotFound(w, r)
		return
	}
	h.mu.Lock()
	c, known := h.files[file]
	ask := Ask{N: h.requests, Repo: repo, File: file, Redirect: !linked && h.cdn != ""}
	h.requests++
	h.tokens[r.Host] = r.Header.Get("Authorization")
	epoch, cdn, tell, decide := strconv.Itoa(h.epoch), h.cdn, h.digest, h.act
	h.mu.Unlock()
	ranged := false
	if known {
		ask.From, ask.To, ranged = asked(r.Header.Get("Range"), c.Size())
	}
	var act Act
	if decide != nil {
		act = decide(ask)
	}
	switch {
	case act.Kind == Status:
		if act.RetryAfter != "" {
			w.Header().Set("Retry-After", act.RetryAfter)
		}
		http.Error(w, http.StatusText(act.Status), act.Status)
	case act.Kind == Login:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, "<!doctype html><title>Welcome to Café Wi-Fi</title>"+strings.Repeat("<p>Please log in.", 1000))
	case !known:
		http.NotFound(w, r)
	case linked && p[1] != epoch:
		http.Error(w, "Request has expired", http.StatusForbidden)
	case ask.Redirect && act.Kind == BadRedirect:
		w.Header().Set("Location", "gopher://nowhere")
		w.WriteHeader(http.StatusFound)
	case ask.Redirect:
		if tell {
			w.Header().Set("X-Linked-Etag", `"`+h.digestOf(file)+`"`)
		}
		w.Header().Set("Location", cdn+"/cdn/"+epoch+"/"+repo+"/"+file+"?signature=secret")
		w.WriteHeader(http.StatusFound)
	default:
		h.serve(w, r, ask, ranged, c, act)
	}
}

func (h *Hub) digestOf(file string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.digests[file] == "" {
		h.digests[file] = sum(h.files[file]).String()
	}
	return h.digests[file]
}

// asked reads "bytes=A-B".
func asked(text string, size int64) (from, to int64, ranged bool) {
	span, ok := strings.CutPrefix(text, "bytes=")
	first, last, ok2 := strings.Cut(span, "-")
	a, err := strconv.ParseInt(first, 10, 64)
	b, err2 := strconv.ParseInt(last, 10, 64)
	if !ok || !ok2 || err != nil || err2 != nil || a > b {
		return 0, size, false
	}
	return a, b + 1, true
}

// serve sends a body as act says.
func (h *Hub) serve(w http.ResponseWriter, r *http.Request, ask Ask, ranged bool, c Content, act Act) {
	size := c.Size()
	from, to := ask.From, ask.To
	h.mu.Lock()
	h.asked[ask.File] = append(h.asked[ask.File], [2]int64{from, to})
	h.mu.Unlock()
	if ranged && (from >= size || to > size && from == 0 && size == 0) {
		w.Header().Set("Content-Range", "bytes */"+strconv.FormatInt(size, 10))
		w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		return
	}
	to = min(to, size)
	head := w.Header()
	head.Set("Content-Type", "application/octet-stream")
	head.Set("Etag", `"first"`)
	told := size
	switch act.Kind {
	case Whole:
		from, to, ranged = 0, size, false
	case WrongRange:
		if ranged {
			from, to = from+1, min(to+1, size)
		}
	case OtherSize:
		told++
	case OtherETag:
		head.Set("Etag", `"second"`)
	case Gzip:
		head.Set("Content-Encoding", "gzip")
	case Multipart:
		head.Set("Content-Type", "multipart/byteranges; boundary=x")
	}
	length := to - from
	switch {
	case act.Kind == OtherSize && !ranged:
		length++
	case act.Kind == LongLength:
		length += max(act.After, 1)
	case act.Kind == Twice:
		length *= 2
	}
	if act.Kind != Short {
		head.Set("Content-Length", strconv.FormatInt(max(length, 0), 10))
	}
	status := http.StatusOK
	if ranged {
		status = http.StatusPartialContent
		if act.Kind != NoRange {
			head.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to-1, told))
		}
	}
	w.WriteHeader(status)
	h.body(w, r, ask.File, c, from, to, act)
}

// body sends the bytes [from, to).
func (h *Hub) body(w http.ResponseWriter, r *http.Request, file string, c Content, from, to int64, act Act) {
	limited := act.Kind == Reset || act.Kind == Cut || act.Kind == Stall
	end := to
	switch {
	case limited:
		end = min(to, from+act.After)
	case act.Kind == Short:
		end = max(from, to-max(act.After, 1))
	}
	step := int64(256 << 10)
	if act.Kind == Trickle {
		step = 16
	}
	buf := make([]byte, min(step, max(end-from, 1)))
	send := func(from, end int64) bool {
		for at := from; at < end; {
			b := buf[:min(int64(len(buf)), end-at)]
			if _, err := c.ReadAt(b, at); err != nil && err != io.EOF {
				panic("badhub: internal error: " + err.Error())
			}
			if act.Kind == Corrupt && at == from {
				b[len(b)/2] ^= 0x40
			}
			n, err := w.Write(b)
			h.mu.Lock()
			h.sent[file] += int64(n)
			h.mu.Unlock()
			if err != nil {
				return false
			}
			at += int64(n)
			if act.Kind == Trickle {
				flush(w)
				select {
				case <-time.After(act.Wait):
				case <-r.Context().Done():
					return false
				}
			}
		}
		return true
	}
	if !send(from, end) {
		return
	}
	if limited && end == to {
		return // After lies beyond the body: all of it is sent
	}
	switch act.Kind {
	case Twice:
		send(from, end)
	case Stall:
		flush(w)
		wait := act.Wait
		if wait == 0 {
			wait = 30 * time.Second // longer than any client of a test has patience
		}
		select {
		case <-r.Context().Done():
		case <-time.After(wait):
		}
		panic(http.ErrAbortHandler)
	case Cut, LongLength:
		panic(http.ErrAbortHandler)
	case Reset:
		reset(w)
	}
}

func flush(w http.ResponseWriter) {
	_ = http.NewResponseController(w).Flush() // the next write tells
}

// reset ends a connection with RST, where it can.
func reset(w http.ResponseWriter) {
	flush(w)
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // without it the end is a clean one, which is a fault too
	}
	conn.Close() // the point of it
}
