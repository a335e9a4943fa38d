package fetch

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

// Causes that several answers share, without the numbers in which they differ.
const (
	otherFile  = "it has another file"
	otherRange = "it answers with other bytes than were asked for"
	endsEarly  = "its answers end early"
)

// deadline is when the job fails unless something comes: soon where nothing could ever be reached, for then the cause is here and not on
// the way. The caller holds mu.
func (r *runner) deadline() time.Time {
	until := r.progress.Add(r.Patience)
	if first := r.started.Add(r.Options.Offline); !r.reached && r.offline() && first.Before(until) {
		return first
	}
	return until
}

// offline reports whether no source that has anything to give can be reached. The caller holds mu.
func (r *runner) offline() bool {
	if r.bodies > 0 {
		return false
	}
	all := false
	for i := range r.Sources {
		if !r.needed(i) {
			continue
		}
		if !r.down[i] {
			return false
		}
		all = true
	}
	return all
}

// needed reports whether a source has a file that is still to come. The caller holds mu.
func (r *runner) needed(source int) bool {
	for _, f := range r.files {
		if !f.done && !r.Sources[source].lacks(f.Name) && f.trouble[source].refusals < maxRefusals {
			return true
		}
	}
	return false
}

// reading notes that a source answered and that its answer is being read, until the function that it returns is called.
func (r *runner) reading(source int) (ended func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reached, r.down[source] = true, false
	r.bodies++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.bodies--
	}
}

// unreachable reports whether an error says that no connection could be made.
func unreachable(err error) bool {
	var name *net.DNSError
	var op *net.OpError
	return errors.As(err, &name) || errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect")
}

// cause is why, in the same words for the same cause.
func (f *fault) cause() string {
	if f.short != "" {
		return f.short
	}
	return plain(f.err)
}

// plain says an error of the network without the addresses and ports that change with every try.
func plain(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "proxyconnect" {
		return "the proxy: " + plain(op.Err)
	}
	var name *net.DNSError
	var number syscall.Errno
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return "no such host"
	case errors.As(err, &name):
		return "its name cannot be looked up: " + name.Err
	case errors.As(err, &op) && errors.As(err, &number):
		return number.Error()
	case errors.As(err, &op):
		return op.Err.Error()
	}
	return err.Error()
}

// about is a duration in round words.
func about(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return fmt.Sprintf("%d min", int(d.Minutes()))
}
