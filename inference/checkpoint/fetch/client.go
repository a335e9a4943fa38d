package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// What a server may answer, and what is made of it. Nothing here is believed about size or content beyond the manifest: an answer
// that disagrees with the manifest is a fault of the source, and one that agrees is still hashed.
//
//	206 for the very range, of a file of the right size     its bytes are taken
//	206 that ends early                                     its bytes are taken, the rest is asked for again
//	206 for another range, without Content-Range, multipart refusal
//	206 or 416 that tells another size                      refusal
//	200 where the range begins at 0, of the right size      the beginning of its body is taken
//	200 where it begins later                               refusal; when no source knows ranges, its body is read from the start
//	3xx                                                     followed, at most maxHops; the token stays with the first host
//	401 403 404 410 of a place that a redirect led to once  the source is asked for a new redirect
//	X-Linked-Etag with another SHA-256 than the manifest's  refusal: the source has another file
//	HTML                                                    fault: a login page of the network, or an error page
//	408 425 429 5xx                                         fault, not asked again before Retry-After
//	any other                                               refusal
//
// A fault may pass by itself and is tried again until Options.Patience ends; a source that refuses a file maxRefusals times in a row
// is not asked for it again.
const (
	maxHops       = 8
	maxRefusals   = 4
	maxRetryAfter = 10 * time.Minute
	stallBytes    = 16 << 10 // a connection that brings less than this in Options.Stall has stalled
)

// fault is why a request brought nothing, or no more.
type fault struct {
	source, file string
	host         string // that was asked: the source's, or one that it led to
	err          error
	short        string        // err without what differs from request to request; empty: err says it
	refusal      bool          // asking again will not help
	offline      bool          // no connection could be made
	led          bool          // but one to the source, which led there
	rangeless    bool          // the source answers with the whole file
	stalled      bool          // nothing came
	pause        time.Duration // the source asks for so much time
}

func (f *fault) Error() string { return fmt.Sprintf("%s: %s: %v", f.source, f.file, f.err) }
func (f *fault) Unwrap() error { return f.err }

var errStalled = errors.New("nothing came for too long")

// client asks sources for files and remembers where they sent it.
type client struct {
	http *http.Client
	idle func()

	mu     sync.Mutex // protects places
	places map[place]*url.URL
}

// place is a file at a source; its URL in client.places is where a redirect led.
type place struct {
	source int
	file   string
}

func newClient(o Options) *client {
	t := &http.Transport{
		Proxy:                  o.Proxy,
		DialContext:            (&net.Dialer{Timeout: o.Stall, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:    o.Stall,
		DisableCompression:     true, // the bytes as published
		MaxIdleConnsPerHost:    o.Connections,
		IdleConnTimeout:        30 * time.Second,
		ReadBufferSize:         16 << 10,
		Protocols:              new(http.Protocols),
		MaxResponseHeaderBytes: 64 << 10,
	}
	t.Protocols.SetHTTP1(true) // HTTP/2 would put all requests on one connection, and one slow path
	return &client{
		http:   &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		idle:   t.CloseIdleConnections,
		places: map[place]*url.URL{},
	}
}

func (c *client) close() { c.idle() }

// request is one thing to ask for: the bytes [from, to) of a file of size bytes.
type request struct {
	source   int
	of       Source
	file     string
	sha256   string // hexadecimal, as the hub would name it
	size     int64
	from, to int64
	whole    bool // no Range: the file from its first byte
	anyStart bool // an answer with the whole file will do
	host     string
}

func (q request) fault(err error) *fault {
	return &fault{source: q.of.Name, file: q.file, host: q.host, err: err}
}

func (q request) refusal(format string, args ...any) *fault {
	return &fault{source: q.of.Name, file: q.file, host: q.host, err: fmt.Errorf(format, args...), refusal: true}
}

// because gives a fault whose error holds numbers a short text without them.
func (f *fault) because(short string) *fault {
	f.short = short
	return f
}

// answer is a body that brings the bytes [from, to) of the file.
type answer struct {
	body     io.ReadCloser
	from, to int64
	host     string
	etag     string // strong validator, or empty
}

// ask sends a request and checks the answer's head. ctx ends the request and its body. The error is a *fault, or ctx's own.
func (c *client) ask(ctx context.Context, q request) (*answer, error) {
	start, err := url.Parse(q.of.Base + url.PathEscape(q.file))
	if err != nil {
		return nil, q.refusal("%w", err)
	}
	key := place{q.source, q.file}
	c.mu.Lock()
	at := c.places[key]
	c.mu.Unlock()
	remembered := at != nil
	if !remembered {
		at = start
	}
	for range maxHops {
		q.host = at.Host
		resp, connected, err := c.send(ctx, q, start, at)
		if err != nil {
			if cause := context.Cause(ctx); errors.Is(cause, errStalled) {
				err = errStalled
			}
			f := q.fault(err)
			f.stalled = errors.Is(err, errStalled)
			f.offline = f.stalled && !connected || unreachable(err)
			f.led = !remembered && at != start
			return nil, f
		}
		switch code := resp.StatusCode; {
		case code == 200 || code == 206:
			a, err := q.accept(resp)
			if err != nil {
				resp.Body.Close() // what it holds is not wanted
				return nil, err
			}
			a.host = at.Host
			if at != start && !remembered {
				c.mu.Lock()
				c.places[key] = at
				c.mu.Unlock()
			}
			return a, nil
		case code == 301 || code == 302 || code == 303 || code == 307 || code == 308:
			drain(resp)
			if tag := strings.Trim(resp.Header.Get("X-Linked-Etag"), `"`); len(tag) == len(q.sha256) && !strings.EqualFold(tag, q.sha256) {
				return nil, q.refusal("it has another file: got SHA-256 %s, want %s", tag, q.sha256).because(otherFile)
			}
			next, err := at.Parse(resp.Header.Get("Location"))
			switch {
			case err != nil || next.Host == "":
				return nil, q.refusal("got a redirect to %q, want a URL", resp.Header.Get("Location")).because("it redirects to what is no URL")
			case next.Scheme != "https" && (next.Scheme != "http" || at.Scheme == "https"):
				return nil, q.refusal("got a redirect from %s to %s, want one that is no less safe", at.Scheme, next.Scheme)
			}
			at = next
		case remembered && (code == 401 || code == 403 || code == 404 || code == 410):
			drain(resp)
			c.forget(key, at)
			remembered, at = false, start
		default:
			drain(resp)
			return nil, q.status(resp)
		}
	}
	return nil, q.refusal("got more than %d redirects", maxHops)
}

// forget drops a remembered place, unless another request has renewed it already.
func (c *client) forget(key place, stale *url.URL) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.places[key] == stale {
		delete(c.places, key)
	}
}

func (c *client) send(ctx context.Context, q request, start, at *url.URL) (resp *http.Response, connected bool, err error) {
	var got atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { got.Store(true) }})
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, false, err
	}
	r.Header.Set("User-Agent", "pond")
	r.Header.Set("Accept-Encoding", "identity")
	if !q.whole {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", q.from, q.to-1))
	}
	if q.of.Token != "" && at.Scheme == start.Scheme && strings.EqualFold(at.Host, start.Host) {
		r.Header.Set("Authorization", "Bearer "+q.of.Token)
	}
	resp, err = c.http.Do(r)
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // it names the URL, which may hold a signature
	}
	return resp, got.Load(), err
}

// accept checks the head of a 200 or 206.
func (q request) accept(resp *http.Response) (*answer, error) {
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/html" {
		return nil, q.fault(errors.New("got a web page, want the file; does this network ask for a login?"))
	} else if strings.HasPrefix(kind, "multipart/") {
		return nil, q.refusal("got %s, want one range", kind)
	}
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return nil, q.refusal("got content encoding %s, want none", enc)
	}
	a := &answer{body: resp.Body, etag: resp.Header.Get("Etag")}
	if strings.HasPrefix(a.etag, "W/") {
		a.etag = ""
	}
	if resp.StatusCode == http.StatusPartialContent && !q.whole {
		from, to, size, err := contentRange(resp.Header.Get("Content-Range"))
		switch {
		case err != nil:
			return nil, q.refusal("%w", err).because(otherRange)
		case size >= 0 && size != q.size:
			return nil, q.refusal("it has another file: got %d bytes, want %d", size, q.size).because(otherFile)
		case from != q.from || to > q.to:
			return nil, q.refusal("got bytes %d to %d, want %d to %d", from, to, q.from, q.to).because(otherRange)
		}
		a.from, a.to = from, to
		return a, nil
	}
	switch {
	case resp.StatusCode != http.StatusOK:
		return nil, q.refusal("got status %s, want 200", resp.Status)
	case resp.ContentLength >= 0 && resp.ContentLength != q.size:
		return nil, q.refusal("it has another file: got %d bytes, want %d", resp.ContentLength, q.size).because(otherFile)
	case q.from > 0 && !q.anyStart:
		f := q.refusal("got the whole file, want bytes %d to %d", q.from, q.to).because("it answers with whole files, want parts of them")
		f.rangeless = true
		return nil, f
	}
	a.from, a.to = 0, q.to
	return a, nil
}

// contentRange reads "bytes 0-99/200" as 0, 100, 200; size is -1 for "*".
func contentRange(text string) (from, to, size int64, err error) {
	bad := fmt.Errorf("content range: got %q, want bytes FROM-TO/SIZE", text)
	rest, ok := strings.CutPrefix(text, "bytes ")
	span, total, ok2 := strings.Cut(rest, "/")
	first, last, ok3 := strings.Cut(span, "-")
	if !ok || !ok2 || !ok3 {
		return 0, 0, 0, bad
	}
	number := func(s string) int64 {
		n, perr := strconv.ParseUint(strings.TrimSpace(s), 10, 62)
		if perr != nil {
			err = bad
		}
		return int64(n)
	}
	from, to, size = number(first), number(last)+1, -1
	if total != "*" {
		size = number(total)
	}
	if err == nil && (to <= from || size >= 0 && to > size) {
		err = bad
	}
	return from, to, size, err
}

// status turns any other answer into a fault.
func (q request) status(resp *http.Response) *fault {
	code := resp.StatusCode
	switch {
	case code == http.StatusRequestedRangeNotSatisfiable:
		return q.refusal("got status %s: it has another file, or none of this size", resp.Status)
	case code == 408 || code == 425 || code == 429 || code >= 500:
		f := q.fault(fmt.Errorf("got status %s", resp.Status))
		f.pause = retryAfter(resp.Header.Get("Retry-After"), time.Now())
		return f
	case code == 401 || code == 403:
		return q.refusal("got status %s; if the repository is private, HF_TOKEN must hold a token that may read it", resp.Status)
	}
	return q.refusal("got status %s, want 200 or 206", resp.Status)
}

// retryAfter reads seconds or a date (RFC 9110, 10.2.3); 0 where there is neither.
func retryAfter(text string, now time.Time) time.Duration {
	var d time.Duration
	if n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 32); err == nil {
		d = time.Duration(n) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), maxRetryAfter)
}

// drain reads a short body, so that the connection serves again, and closes it.
func drain(resp *http.Response) {
	io.CopyN(io.Discard, resp.Body, 4<<10) // only a courtesy to the connection
	resp.Body.Close()                      // nothing is read from it any more
}

// watch ends a request that brings less than stallBytes in every limit of waiting. Time that is not spent in reading does not count.
type watch struct {
	limit time.Duration
	timer *time.Timer
	spent time.Duration // of waiting since the last stallBytes came
	got   int64
}

// newWatch starts counting: the answer's head is waited for first.
func newWatch(limit time.Duration, cancel context.CancelCauseFunc) *watch {
	return &watch{limit: limit, timer: time.AfterFunc(limit, func() { cancel(errStalled) })}
}

// head tells that the answer's head has come.
func (w *watch) head() { w.timer.Stop() }

func (w *watch) read(r io.Reader, buf []byte) (int, error) {
	began := time.Now()
	w.timer.Reset(w.limit - w.spent)
	n, err := r.Read(buf)
	w.timer.Stop()
	w.spent += time.Since(began)
	if w.got += int64(n); w.got >= stallBytes {
		w.spent, w.got = 0, 0
	}
	return n, err
}
