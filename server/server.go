package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/labstack/echo/v4"

	"pond/inference"
)

// Defaults of Options and fixed limits.
const (
	DefaultAddr      = "127.0.0.1:11535"
	DefaultBodyLimit = 64 << 20
	DefaultHeartbeat = 5 * time.Second

	drainGrace      = 3 * time.Second  // a shutdown lets answers run this long, then ends them
	endGrace        = 5 * time.Second  // and waits this long for them to say so
	headerTimeout   = 10 * time.Second // a client that trickles its headers is cut off
	bodyTimeout     = 60 * time.Second // and one that trickles its body
	idleTimeout     = 2 * time.Minute
	maxHeaderBytes  = 64 << 10
	portsToTryAfter = 50
)

// Options say what to serve and to whom.
type Options struct {
	Engine         *inference.Engine // required; stays the caller's to close, after Serve has returned
	Addr           string            // host:port; "" is DefaultAddr; port 0 takes any free one
	APIKey         string            // "" asks for none, which is allowed on loopback only
	AllowedHosts   []string          // names beside the loopback ones
	AllowedOrigins []string          // scheme://host[:port] of pages beside those on loopback
	Logger         *slog.Logger      // nil discards
	BodyLimit      int64             // bytes; 0 is DefaultBodyLimit
	Heartbeat      time.Duration     // longest silence in a stream; 0 is DefaultHeartbeat
	Listener       net.Listener      // listens at Addr already; nil: Listen takes the port
	Version        string            // of Pond, for /health and system_fingerprint
	ModelHash      string            // of the model's files, for system_fingerprint; "" when nobody knows it

	headerTimeout time.Duration // 0 is headerTimeout; shorter in tests
}

// Server is one endpoint. Listen and Serve are called once each.
type Server struct {
	options     Options
	engine      *inference.Engine
	guard       *guard
	log         *slog.Logger
	echo        *echo.Echo
	http        *http.Server
	listener    net.Listener
	stop        context.CancelCauseFunc // ends every answer
	grace       time.Duration           // drainGrace, shorter in tests
	bodyTimeout time.Duration           // bodyTimeout, shorter in tests
	fingerprint string
	inFlight    atomic.Int64
	base        context.Context // of every answer
	background  sync.WaitGroup  // answers without a client
	running     register
	stored      responseStore
	metrics     *metrics
	pageText    string
	pagePolicy  string
}

// PortError says that the port is taken, and which one is free.
type PortError struct {
	Addr string // wanted
	Next string // host:port that was free a moment ago; "" when none near was
	Err  error
}

func (e *PortError) Error() string {
	if e.Next == "" {
		return fmt.Sprintf("address %s is in use", e.Addr)
	}
	return fmt.Sprintf("address %s is in use, %s is free", e.Addr, e.Next)
}

func (e *PortError) Unwrap() error { return e.Err }

// New checks the options and builds the routes. It refuses an address beyond loopback without a key and a list of host names.
func New(o Options) (*Server, error) {
	if o.Engine == nil {
		return nil, errors.New("server: got no engine, want one")
	}
	if o.Addr == "" {
		o.Addr = DefaultAddr
	}
	if o.BodyLimit <= 0 {
		o.BodyLimit = DefaultBodyLimit
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = DefaultHeartbeat
	}
	if o.headerTimeout <= 0 {
		o.headerTimeout = headerTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	g, err := newGuard(o)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	s := &Server{options: o, engine: o.Engine, guard: g, log: o.Logger, grace: drainGrace, bodyTimeout: bodyTimeout}
	s.base, s.stop = context.WithCancelCause(context.Background())
	info := o.Engine.Info()
	// What the same seed needs for the same answer: the model, what runs it, and the program.
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%d\x00%d\x00%s", o.Version, info.ID, o.ModelHash, info.WeightBytes, info.VocabSize, info.Executor))
	s.fingerprint = "fp_" + hex.EncodeToString(sum[:5])
	s.metrics = newMetrics(o.Engine, o.Version, s.InFlight)
	if s.pageText, s.pagePolicy, err = buildPage(); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}

	s.echo = echo.New()
	s.echo.Logger.SetOutput(io.Discard) // what it would say is said by access and writeError
	s.echo.HTTPErrorHandler = func(err error, c echo.Context) { s.writeError(c, err) }
	s.echo.Pre(s.access, g.check)
	s.addRoutes()

	s.http = &http.Server{
		Handler: s.echo,
		// "OPTIONS *" goes to the guard like all else.
		DisableGeneralOptionsHandler: true,
		BaseContext:                  func(net.Listener) context.Context { return s.base },
		ReadHeaderTimeout:            o.headerTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeaderBytes,
		ErrorLog:                     httpLog(o.Logger),
	}
	return s, nil
}

func httpLog(l *slog.Logger) *log.Logger { return slog.NewLogLogger(l.Handler(), slog.LevelDebug) }

// Handler serves requests without a listener, for tests.
func (s *Server) Handler() http.Handler { return s.echo }

// InFlight counts the answers that hold the engine or wait for it.
func (s *Server) InFlight() int { return int(s.inFlight.Load()) }

// Check tells, before a model is loaded for it, whether an endpoint could be served with these options: the address is one this
// server may take, and free at this moment. Errors are those of New and Listen; Engine is not looked at.
func Check(o Options) error {
	if o.Addr == "" {
		o.Addr = DefaultAddr
	}
	if _, err := newGuard(o); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	l, err := listen(o.Addr)
	if err != nil {
		return err
	}
	return l.Close()
}

func listen(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, &PortError{Addr: addr, Next: nextFree(addr), Err: err}
	}
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	return l, nil
}

// Listen takes the port and returns the base URL, such as http://127.0.0.1:11535. A taken port is a *PortError.
func (s *Server) Listen() (string, error) {
	l, err := s.options.Listener, error(nil)
	if l == nil {
		if l, err = listen(s.options.Addr); err != nil {
			return "", err
		}
	}
	s.listener = l
	return "http://" + l.Addr().String(), nil
}

// nextFree looks for a free port after the one in addr.
func nextFree(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return ""
	}
	taken, err := strconv.Atoi(port)
	if err != nil {
		return ""
	}
	for p := taken + 1; p <= taken+portsToTryAfter && p < 1<<16; p++ {
		next := net.JoinHostPort(host, strconv.Itoa(p))
		if l, err := net.Listen("tcp", next); err == nil {
			l.Close()
			return next
		}
	}
	return ""
}

// Serve answers requests until ctx is done, then drains: no new connections, a moment for running answers to finish, then an
// error event for those that have not. It listens first if Listen was not called. A nil error means that ctx ended it.
func (s *Server) Serve(ctx context.Context) error {
	if s.listener == nil {
		if _, err := s.Listen(); err != nil {
			return err
		}
	}
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(s.listener) }()
	select {
	case err := <-served:
		s.stop(errShutdown)
		s.background.Wait()
		return fmt.Errorf("server: %w", err)
	case <-ctx.Done():
	}
	defer s.background.Wait()
	defer s.stop(errShutdown)
	if err := s.shutdown(s.grace); err != nil {
		s.stop(errShutdown)
		if err := s.shutdown(endGrace); err != nil {
			s.http.Close()
			return fmt.Errorf("server: %d answers did not end in time: %w", s.InFlight(), err)
		}
	}
	return nil
}

func (s *Server) shutdown(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return s.http.Shutdown(ctx)
}
