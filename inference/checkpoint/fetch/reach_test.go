package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"pond/inference/checkpoint/badhub"
)

// refusing is an address where nobody listens.
func refusing(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	must(t, l.Close())
	return l.Addr().String()
}

// serveAt serves the hub at an address until stop is called.
func serveAt(t *testing.T, addr string, h http.Handler) (stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Error(err)
		return func() {}
	}
	s := &http.Server{Handler: h}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return func() { s.Close() }
}

// at points the job's sources to a host.
func (r *rig) at(host string) {
	r.hub.RedirectTo("")
	for i, repo := range []string{repoA, repoB} {
		r.job.Sources[i] = Source{Name: host + "/" + repo, Base: "http://" + host + "/" + repo + "/resolve/main/"}
	}
}

// TestNoNetworkEnds: a pull without a network went round for 26 minutes and would have gone on.
func TestNoNetworkEnds(t *testing.T) {
	r := newRig(t, 2<<20, 100)
	host := refusing(t)
	r.at(host)
	r.job.Offline, r.job.Patience = 300*time.Millisecond, time.Minute
	err := r.run(t, t.Context())
	var gone *SourceError
	if !errors.As(err, &gone) || !gone.Offline || gone.Waited < 300*time.Millisecond || gone.Waited > 30*time.Second {
		t.Fatalf("got %v (%+v), want a SourceError that says that there is no connection, soon", err, gone)
	}
	if want := " s: " + host + " cannot be reached (connection refused)"; !strings.HasPrefix(err.Error(), "no connection for ") || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %q, want no connection for ...%s", err, want)
	}
	if left, err := os.ReadDir(r.job.Dir); err != nil || len(left) != 0 {
		t.Errorf("got %v, %v left over; want nothing", left, err)
	}
}

// TestAnswersAreANetwork: where somebody answers, even with errors, the short limit does not count.
func TestAnswersAreANetwork(t *testing.T) {
	r := newRig(t, 2<<20)
	r.hub.Misbehave(func(a badhub.Ask) badhub.Act { return badhub.Act{Kind: badhub.Status, Status: 503} })
	r.job.Offline, r.job.Patience = time.Millisecond, 600*time.Millisecond
	err := r.run(t, t.Context())
	var gone *SourceError
	if !errors.As(err, &gone) || gone.Offline || gone.Waited < 600*time.Millisecond {
		t.Errorf("got %v (%+v), want a SourceError after the long limit", err, gone)
	}
}

// TestLostNetwork: one that goes away in the middle, for longer than the short limit, is waited for, and the download goes on by itself.
// One that stays away ends the run, and what came is kept.
func TestLostNetwork(t *testing.T) {
	for _, back := range []bool{true, false} {
		t.Run(fmt.Sprint("back ", back), func(t *testing.T) {
			r := newRig(t, 4<<20)
			host := refusing(t)
			r.at(host)
			stop := serveAt(t, host, r.hub)
			r.job.Offline, r.job.Patience, r.job.RateBytes = 100*time.Millisecond, 1500*time.Millisecond, 8<<20
			if back {
				r.job.Patience = time.Minute
			}
			var lost atomic.Bool
			offline := make(chan struct{}, 1)
			report := r.job.Report
			r.job.Report = func(e Event) {
				if e.Progress.Done > 1<<20 && !lost.Swap(true) {
					go stop()
				}
				if e.Progress.Offline {
					select {
					case offline <- struct{}{}:
					default:
					}
				}
				report(e)
			}
			go func() {
				select {
				case <-offline:
				case <-t.Context().Done():
					return
				}
				if time.Sleep(300 * time.Millisecond); back {
					serveAt(t, host, r.hub)
				}
			}()
			err := r.run(t, t.Context())
			if back {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var gone *SourceError
			if !errors.As(err, &gone) || !gone.Offline || gone.Waited < r.job.Patience {
				t.Errorf("got %v (%+v), want a SourceError after the long limit", err, gone)
			}
			if PartialBytes(r.job.Dir, r.job.Files[0]) < 1<<20 {
				t.Error("what came was not kept")
			}
		})
	}
}

// TestCauses: the same cause is the same text, whatever the port, the range or the file. Hundreds of lines differed in these alone.
func TestCauses(t *testing.T) {
	dial := func(port int) error {
		return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: port}, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	for _, c := range []struct {
		err     error
		want    string
		offline bool
	}{
		{&net.DNSError{Err: "no such host", Name: "hub.example", Server: "10.0.0.53:53", IsNotFound: true}, "no such host", true},
		{&net.OpError{Op: "dial", Err: &net.DNSError{Err: "server misbehaving", Name: "hub.example"}}, "its name cannot be looked up: server misbehaving", true},
		{dial(1), "connection refused", true},
		{&net.OpError{Op: "proxyconnect", Err: dial(2)}, "the proxy: connection refused", true},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, "connection reset by peer", false},
		{context.DeadlineExceeded, "context deadline exceeded", false},
	} {
		if got := plain(c.err); got != c.want || unreachable(c.err) != c.offline {
			t.Errorf("%v: got %q, unreachable %v; want %q, %v", c.err, got, unreachable(c.err), c.want, c.offline)
		}
	}
	r := newRig(t, 1<<20+5, 2<<20, 700_000)
	r.hub.Misbehave(func(a badhub.Ask) badhub.Act {
		if a.Redirect {
			return badhub.Act{}
		}
		return badhub.Act{Kind: badhub.WrongRange}
	})
	if err := r.run(t, t.Context()); err == nil {
		t.Fatal("got no error")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	causes := map[string]bool{}
	for _, e := range r.events {
		if e.Kind == Trouble {
			causes[e.Host+": "+e.Cause] = true
		}
	}
	if len(causes) > 2 { // the other: the small file comes whole
		t.Errorf("got %v, want one line for the one cause", causes)
	}
	for c := range causes {
		if !strings.HasPrefix(c, strings.TrimPrefix(r.cdn, "http://")+": ") {
			t.Errorf("got %q, want the host that answered, %s", c, r.cdn)
		}
	}
}
