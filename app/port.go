package app

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"pond/server"
)

// keptPort is the endpoint's port over all stretches of a run. While the model is loaded the server accepts its connections; while it rests,
// doze does, answers the questions after Pond's health itself, and keeps the first connection that wants the model for the next server.
type keptPort struct {
	listener *net.TCPListener
	kept     []net.Conn // for the next server
}

// dozeTimeout is how long a connection may take to say what it wants while the model rests.
const dozeTimeout = 10 * time.Second

// keepPort takes a port. The error is a *server.PortError where it is taken.
func keepPort(address string) (*keptPort, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		if checked := server.Check(server.Options{Addr: address, APIKey: "x", AllowedHosts: []string{"x"}}); checked != nil {
			err = checked // the same, in the server's words and with the next free port
		}
		return nil, err
	}
	return &keptPort{listener: l.(*net.TCPListener)}, nil
}

func (p *keptPort) address() string { return p.listener.Addr().String() }

// open is a listener for one server: closing it ends its accepting and keeps the port.
func (p *keptPort) open() net.Listener {
	l := &stretchListener{port: p, kept: p.kept}
	p.kept = nil
	p.listener.SetDeadline(time.Time{})
	return l
}

// release gives the port back. Connections that waited for a model that did not come are told why.
func (p *keptPort) release(why error) error {
	for _, c := range p.kept {
		refuse(c, why)
	}
	return p.listener.Close()
}

// doze accepts connections until one wants the model, wake is asked, or ctx is done. What came meanwhile is kept for the next server.
func (p *keptPort) doze(ctx context.Context, wake <-chan struct{}) error {
	d := dozing{port: p, peeking: map[net.Conn]bool{}, wanted: make(chan struct{}, 1)}
	p.listener.SetDeadline(time.Time{})
	d.readers.Go(d.accept)
	defer d.end()
	select {
	case <-d.wanted:
		return nil
	case <-wake:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// dozing is one stretch of rest.
type dozing struct {
	port    *keptPort
	readers sync.WaitGroup
	wanted  chan struct{}

	mu      sync.Mutex // protects port.kept and what follows
	peeking map[net.Conn]bool
	ended   bool
}

func (d *dozing) accept() {
	for {
		c, err := d.port.listener.Accept()
		if err != nil {
			return // the rest is over
		}
		d.mu.Lock()
		if d.ended {
			d.port.kept = append(d.port.kept, c)
		} else {
			c.SetReadDeadline(time.Now().Add(dozeTimeout))
			d.peeking[c] = true
			d.readers.Go(func() { d.peek(c) })
		}
		d.mu.Unlock()
	}
}

// peek reads the first line of a connection's first request. A question after the health is answered, because a monitor that asks every few
// seconds must not keep the model in memory; everything else wants the model. A connection whose line was not there yet when the rest
// ended is the next server's.
func (d *dozing) peek(c net.Conn) {
	in := bufio.NewReader(c)
	line, err := peekLine(in)
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.peeking, c)
	method, rest, _ := strings.Cut(line, " ")
	path, _, _ := strings.Cut(rest, " ")
	switch {
	case err != nil && !d.ended:
		c.Close() // it said nothing, or left
		return
	case err == nil && method == http.MethodGet && (path == "/health" || strings.HasPrefix(path, "/health/")):
		d.readers.Go(func() { answer(c, http.StatusOK, `{"status":"unloaded"}`) })
		return
	}
	c.SetReadDeadline(time.Time{})
	d.port.kept = append(d.port.kept, &peekedConn{Conn: c, in: in})
	select {
	case d.wanted <- struct{}{}:
	default: // somebody else did
	}
}

// end hands everything over.
func (d *dozing) end() {
	d.mu.Lock()
	d.ended = true
	for c := range d.peeking {
		c.SetReadDeadline(time.Unix(1, 0))
	}
	d.mu.Unlock()
	d.port.listener.SetDeadline(time.Unix(1, 0))
	d.readers.Wait()
}

// peekLine is the first line that comes, left where it is.
func peekLine(in *bufio.Reader) (string, error) {
	for n := 16; ; {
		b, err := in.Peek(n)
		if line, _, ok := strings.Cut(string(b), "\r\n"); ok {
			return line, nil
		}
		if err != nil {
			return "", err
		}
		n = max(n+1, in.Buffered())
		if n > in.Size() {
			return string(b), nil // a long line; its beginning is what matters
		}
	}
}

// peekedConn is a connection of which something was read ahead.
type peekedConn struct {
	net.Conn
	in *bufio.Reader
}

func (c *peekedConn) Read(b []byte) (int, error) { return c.in.Read(b) }

// refuse ends a connection with the reason, in the shape of the endpoint's errors.
func refuse(c net.Conn, why error) {
	text := "the endpoint was closed"
	if why != nil {
		text = why.Error()
	}
	message, err := json.Marshal(text)
	if err != nil {
		panic("app: internal error: " + err.Error()) // a string has its JSON
	}
	answer(c, http.StatusServiceUnavailable, fmt.Sprintf(`{"error":{"message":%s,"type":"server_error","code":"model_not_loaded","param":null}}`, message))
}

func answer(c net.Conn, status int, body string) {
	c.SetWriteDeadline(time.Now().Add(dozeTimeout))
	fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", status, http.StatusText(status), len(body), body)
	c.Close()
}

// stretchListener hands out the kept connections, and then new ones.
type stretchListener struct {
	port *keptPort

	mu     sync.Mutex // protects kept and closed
	kept   []net.Conn
	closed bool
}

func (l *stretchListener) Accept() (net.Conn, error) {
	l.mu.Lock()
	if len(l.kept) > 0 && !l.closed {
		c := l.kept[0]
		l.kept = l.kept[1:]
		l.mu.Unlock()
		return c, nil
	}
	l.mu.Unlock()
	c, err := l.port.listener.Accept()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed && err != nil {
		return nil, net.ErrClosed
	}
	return c, err
}

// Close ends Accept; a connection that comes now waits in the system's queue for the next stretch.
func (l *stretchListener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return net.ErrClosed
	}
	l.closed = true
	for _, c := range l.kept {
		c.Close()
	}
	return l.port.listener.SetDeadline(time.Unix(1, 0))
}

func (l *stretchListener) Addr() net.Addr { return l.port.listener.Addr() }

// addressError makes an error of the server an *AddressError, and names who has the port where that can be known.
func addressError(err error) error {
	e := &AddressError{Err: err}
	var port *server.PortError
	if errors.As(err, &port) {
		e.Holder = portHolder(port.Addr)
	}
	return e
}

// takenPort is the next free address and the holder, where an error is a taken port.
func takenPort(err error) (next, holder string) {
	var address *AddressError
	var port *server.PortError
	if errors.As(err, &address) && errors.As(err, &port) {
		return port.Next, address.Holder
	}
	return "", ""
}
