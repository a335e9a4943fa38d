package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pond/inference/checkpoint/fetch"
	"pond/inference/checkpoint/manifest"
	"pond/inference/checkpoint/store"
)

// TestPullWithoutNetwork: it ran for 26 minutes and printed 351 lines, one for each file and repository in every round; then it was "paused
// at 0.0 MB", with 5.3 GB taken on the disk.
func TestPullWithoutNetwork(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	m := manifest.Manifest{ID: "model", Sources: []manifest.Source{{Repo: "first/model"}, {Repo: "second/model"}}}
	var sources []fetch.Source
	for _, s := range m.Sources {
		sources = append(sources, fetch.Source{Name: host + "/" + s.Repo, Base: "http://" + host + "/" + s.Repo + "/"})
	}
	for i := range 4 {
		m.Files = append(m.Files, manifest.File{Name: fmt.Sprintf("model-%d.safetensors", i), Bytes: 5 << 20}, manifest.File{Name: fmt.Sprintf("small-%d.json", i), Bytes: 100})
	}
	at := store.Store{Root: filepath.Join(t.TempDir(), "models"), Create: true}
	o := store.PullOptions{Sources: sources, Headroom: 1, Options: fetch.Options{Offline: 500 * time.Millisecond, Backoff: time.Millisecond}}

	var out, told bytes.Buffer
	err = pull(t.Context(), streams{out: &out, err: &told}, at, m, o)
	var exit *exitError
	if !errors.As(err, &exit) || exit.code != exitSources {
		t.Fatalf("got %v, want exit code %d", err, exitSources)
	}
	if text := err.Error(); !strings.HasPrefix(text, "no connection for ") || !strings.HasSuffix(text, host+" cannot be reached (connection refused); nothing is downloaded yet; the same command tries again") {
		t.Errorf("got %q, want one sentence", text)
	}
	if want := host + ": connection refused; trying on\nno network: waiting; Ctrl-C pauses, pond pull goes on from here\n"; told.String() != want {
		t.Errorf("got told\n%swant\n%s", &told, want)
	}
	if left, err := os.ReadDir(at.Root); err != nil || len(left) != 0 {
		t.Errorf("got %v, %v left over; want nothing", left, err)
	}

	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, context.Canceled)
	defer cancel()
	o.Offline = time.Minute
	if err := pull(ctx, streams{out: &out, err: &told}, at, m, o); !errors.As(err, &exit) || exit.code != exitInterrupted || !strings.Contains(err.Error(), "nothing is downloaded yet") {
		t.Errorf("Ctrl-C: got %v, want exit code %d", err, exitInterrupted)
	}
}

// clockwork is a pulling that writes to out, with a clock that tick moves.
func clockwork(out *bytes.Buffer) (p *pulling, tick func(time.Duration)) {
	now := time.Unix(1_700_000_000, 0)
	return &pulling{out: out, now: func() time.Time { return now }, total: 100e6}, func(d time.Duration) { now = now.Add(d) }
}

// TestTroublesAreNotAWall: hours of the same trouble are a few lines; another one is told at once.
func TestTroublesAreNotAWall(t *testing.T) {
	var out bytes.Buffer
	p, tick := clockwork(&out)
	for range 2 * 3600 {
		for file := range 4 {
			for _, repo := range []string{"a/m", "b/m"} {
				p.event(fetch.Event{Kind: fetch.Trouble, File: fmt.Sprint(file), Source: "hub/" + repo, Host: "hub", Cause: "got status 503", Err: fmt.Errorf("%s %d: got status 503", repo, file)})
			}
		}
		tick(time.Second)
	}
	if n := strings.Count(out.String(), "hub: got status 503; trying on\n"); n < 2 || n > 8 {
		t.Errorf("got %d lines in two hours, want a few:\n%s", n, &out)
	}
	out.Reset()
	p.event(fetch.Event{Kind: fetch.Trouble, Host: "hub", Cause: "connection refused", Err: errors.New("x")})
	if got := out.String(); !strings.HasPrefix(got, "hub: connection refused; trying on\n") {
		t.Errorf("another cause: got %q", got)
	}
}

// TestProgressRests: where the output is no terminal, a line that says the same came every 5 s.
func TestProgressRests(t *testing.T) {
	var out bytes.Buffer
	p, tick := clockwork(&out)
	run := func(seconds int, perSecond int64, from int64) int {
		out.Reset()
		for i := range seconds * 4 {
			p.event(fetch.Event{Progress: fetch.Progress{Done: from + perSecond*int64(i)/4, Total: 100e6, Active: 1}})
			tick(250 * time.Millisecond)
		}
		return strings.Count(out.String(), "\n")
	}
	if n := run(60, 0, 0); n < 1 || n > 2 {
		t.Errorf("nothing moves for 60 s: got %d lines, want one every 30 s:\n%s", n, &out)
	}
	if n := run(60, 1e6, 1e6); n < 10 || n > 13 {
		t.Errorf("60 s of bytes: got %d lines, want one every 5 s:\n%s", n, &out)
	}
}

// TestNetworkGoesAndComes: one sentence each.
func TestNetworkGoesAndComes(t *testing.T) {
	var out bytes.Buffer
	p, tick := clockwork(&out)
	for i := range 100 {
		p.event(fetch.Event{Progress: fetch.Progress{Total: 100e6, Offline: i >= 10 && i < 90}})
		tick(10 * time.Millisecond)
	}
	if want := "no network: waiting; Ctrl-C pauses, pond pull goes on from here\nthe network is back\n"; out.String() != want {
		t.Errorf("got %q, want %q", &out, want)
	}
}

// TestWordsAreWhole: long lines were broken by the terminal, in the middle of words.
func TestWordsAreWhole(t *testing.T) {
	text := "huggingface.co: got status 503 Service Unavailable; trying on"
	if got, want := fold(text, 30), "huggingface.co: got status 503\nService Unavailable; trying on"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := fold(text, 0); got != text {
		t.Errorf("no width: got %q", got)
	}
	if got := clip("[####....]  37 %", 10); got != "[####....]" {
		t.Errorf("got %q", got)
	}
	if got := clip("short", 0); got != "short" {
		t.Errorf("got %q", got)
	}
}
