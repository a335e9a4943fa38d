package fetch

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pond/inference/checkpoint/badhub"
	"pond/inference/checkpoint/manifest"
)

func TestContentRange(t *testing.T) {
	for text, want := range map[string][3]int64{
		"bytes 0-0/1":                   {0, 1, 1},
		"bytes 5-9/*":                   {5, 10, -1},
		"bytes 100-199/5288196018":      {100, 200, 5288196018},
		"bytes 0-5288196017/5288196018": {0, 5288196018, 5288196018},
	} {
		from, to, size, err := contentRange(text)
		if got := [3]int64{from, to, size}; err != nil || got != want {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "bytes", "bytes 0-9", "bytes */10", "bytes 9-0/10", "bytes 0-10/10", "bytes -1-5/10", "bytes 0-9/x", "items 0-9/10",
		"bytes 0-99999999999999999999/1", "bytes 0-4611686018427387903/*x"} {
		if _, _, _, err := contentRange(text); err == nil {
			t.Errorf("%q: got no error", text)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, "-3": 0, "soon": 0, "999999": maxRetryAfter,
		"Fri, 01 May 2026 12:00:30 GMT": 30 * time.Second, "Fri, 01 May 2026 11:00:00 GMT": 0,
	} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

// TestRetryAfterIsKept: a source that asks for a second gets it.
func TestRetryAfterIsKept(t *testing.T) {
	r := newRig(t, 100)
	r.job.Sources = r.job.Sources[:1]
	var asked atomic.Int64
	r.hub.Misbehave(func(a badhub.Ask) badhub.Act {
		if asked.Add(1) == 1 {
			return badhub.Act{Kind: badhub.Status, Status: 429, RetryAfter: "1"}
		}
		return badhub.Act{}
	})
	began := time.Now()
	if err := r.run(t, t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("got the next request after %v, want a second", took)
	}
}

// TestRedirects: loops end, and nothing leads from https to http.
func TestRedirects(t *testing.T) {
	var tokens atomic.Int64
	plain := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			tokens.Add(1)
		}
		http.Redirect(w, r, "/again", http.StatusFound)
	}))
	safe := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plain, http.StatusFound)
	}))
	defer safe.Close()
	for base, want := range map[string]string{
		plain + "/":    "more than 8 redirects",
		safe.URL + "/": "got a redirect from https to http",
	} {
		c := newClient(Options{}.withDefaults())
		c.http.Transport = safe.Client().Transport
		_, err := c.ask(t.Context(), request{of: Source{Name: "hub", Base: base}, file: "f", size: 1, to: 1})
		var bad *fault
		if !errors.As(err, &bad) || !bad.refusal || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want a refusal with %q", base, err, want)
		}
	}
	if tokens.Load() > 0 {
		t.Error("a token was sent that nobody gave")
	}
}

// TestErrorsKeepSignatures: the text of a failed request holds no URL, because links are signed.
func TestErrorsKeepSignatures(t *testing.T) {
	c := newClient(Options{}.withDefaults())
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := c.ask(ctx, request{of: Source{Name: "hub", Base: "http://127.0.0.1:1/?signature=secret&file="}, file: "f", size: 1, to: 1})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v, want an error without the link", err)
	}
}

func FuzzContentRange(f *testing.F) {
	f.Add("bytes 0-99/200")
	f.Fuzz(func(t *testing.T, text string) {
		from, to, size, err := contentRange(text)
		if err == nil && (from < 0 || to <= from || size >= 0 && to > size) {
			t.Errorf("%q: got %d, %d, %d", text, from, to, size)
		}
	})
}

// FuzzState: whatever a state file holds, what is believed of it lies within the file, and the hash is the front's.
func FuzzState(f *testing.F) {
	of := manifest.File{Name: "f", Bytes: 1000}
	f.Add(int64(100), int64(0), int64(100), int64(200), int64(300), []byte("sha\x03"))
	f.Fuzz(func(t *testing.T, front, a, b, c, d int64, hash []byte) {
		s := state{Version: 1, Name: "f", Bytes: 1000, Front: front, Hash: hash, Have: [][2]int64{{a, b}, {c, d}}}
		if s.check(of) != nil {
			return
		}
		_, at := s.resume()
		if at != 0 && at != front || at < 0 || at > 1000 || a < 0 || b <= a || c < b || d <= c || d > 1000 {
			t.Errorf("got front %d of %+v", at, s)
		}
	})
}
