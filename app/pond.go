package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"pond/inference"
	"pond/inference/chat"
	"pond/inference/memgate"
	"pond/server"
)

// Config is what to run and where to serve it.
type Config struct {
	Model         Model
	Executor      inference.Executor
	ContextTokens int    // 0: what the memory allows
	Anyway        bool   // load against the memory gate, where that can only be slow
	Address       string // host:port
	APIKey        string // empty: none is asked for
	AllowedHosts  []string
	Logger        *slog.Logger
	OnLoad        func(done, total int64) // bytes of weights in memory, of how many; see inference.Options
	Memory        func() memgate.Reading  // nil: the machine's
}

// OpenError says that a model was found and cannot be opened: damaged or foreign files, or options it was not made for.
type OpenError struct {
	Model string
	Err   error
}

func (e *OpenError) Error() string { return fmt.Sprintf("model %s: %v", e.Model, e.Err) }
func (e *OpenError) Unwrap() error { return e.Err }

// AddressError says that the endpoint cannot be served where it was asked for: the port is taken, the address is not this
// machine's, or it is open to others without a key.
type AddressError struct{ Err error }

// Error says all that is missing at once, and how to give it.
func (e *AddressError) Error() string {
	var beyond *server.BeyondLoopbackError
	if !errors.As(e.Err, &beyond) {
		return e.Err.Error()
	}
	var how []string
	if beyond.NoKey {
		how = append(how, "the key with POND_API_KEY in the environment or --api-key")
	}
	if beyond.NoHosts {
		how = append(how, "the names with --allow-host, such as my-mac.local")
	}
	return e.Err.Error() + "; give " + strings.Join(how, " and ")
}
func (e *AddressError) Unwrap() error { return e.Err }

// Open loads the model, if the memory gate lets it in. The error is an *OpenError, a *MemoryError, or ctx's.
func (c Config) Open(ctx context.Context) (*inference.Engine, error) {
	e, _, err := c.open(ctx)
	return e, err
}

// open loads the model and tells how the machine stands after it.
func (c Config) open(ctx context.Context) (*inference.Engine, memgate.Loaded, error) {
	var loaded memgate.Loaded
	options := inference.Options{Model: inference.FromDir(c.Model.Dir), ID: c.Model.ID, Executor: c.Executor, ContextTokens: c.ContextTokens, Logger: c.Logger, OnLoad: c.OnLoad}
	if c.Model.Files != nil {
		options.Model = inference.FromFS(c.Model.Files)
	} else if err := c.Model.unchanged(); err != nil {
		return nil, loaded, &OpenError{c.Model.ID, err}
	}
	need, unreadable := inference.MemoryNeed(options) // a configuration that cannot be read is the engine's to explain
	before := c.memory()
	if unreadable == nil {
		var err error
		if options.ContextTokens, err = c.contextFor(memgate.Check(before, need)); err != nil {
			return nil, loaded, err
		}
	}
	e, err := inference.Open(ctx, options)
	if err != nil {
		if ctx.Err() == nil {
			err = &OpenError{c.Model.ID, err}
		}
		return nil, loaded, err
	}
	need.Tokens = e.Info().ContextTokens
	if loaded, err = c.recheck(before, need); err != nil {
		return nil, loaded, errors.Join(err, e.Close())
	}
	return e, loaded, nil
}

// Pond is the running product: at most one loaded model and one endpoint, and the State that tells of them.
//
//   - Start and Stop may be called from any goroutine, in any order; the last one asked for wins.
//   - The engine lives exactly as long as its endpoint serves: nothing asks an engine that is closed.
type Pond struct {
	config Config

	mu      sync.Mutex // protects all below
	state   State
	changed chan struct{} // closed and replaced at every change of state
	engine  *inference.Engine
	cancel  context.CancelFunc // ends the run; nil when none is
	done    chan struct{}      // closed when the run has ended
}

// New makes a stopped Pond.
func New(c Config) *Pond {
	return &Pond{
		config:  c,
		state:   State{Model: c.Model.ID, Address: c.Address, NeedsKey: c.APIKey != ""},
		changed: make(chan struct{}),
	}
}

// State is the present snapshot.
func (p *Pond) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// Watch calls draw with the present state and then with later ones until ctx is done. States that follow each other faster
// than draw returns are passed over, but never the last one.
func (p *Pond) Watch(ctx context.Context, draw func(State)) {
	for {
		p.mu.Lock()
		s, changed := p.state, p.changed
		p.mu.Unlock()
		draw(s)
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// happen makes an event the next state. The caller holds mu.
func (p *Pond) happen(e Event) {
	p.state = p.state.After(e)
	close(p.changed)
	p.changed = make(chan struct{})
}

// Start loads the model and serves until ctx is done or Stop is called, and returns how that ended: nil when it was asked to
// end. Where Pond runs already it returns at once.
func (p *Pond) Start(ctx context.Context) error {
	p.mu.Lock()
	if p.cancel != nil {
		p.mu.Unlock()
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	p.cancel, p.done = cancel, done
	p.happen(LoadStarted{Model: p.config.Model.ID, Address: p.config.Address, NeedsKey: p.config.APIKey != ""})
	p.mu.Unlock()

	err := p.serve(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // asked to end while loading
	}
	cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancel = nil
	if err != nil {
		p.happen(Failure{err})
	} else {
		p.happen(Halted{})
	}
	close(done)
	return err
}

// serve is one run, from loading to closing.
func (p *Pond) serve(ctx context.Context) (err error) {
	options := server.Options{
		Addr: p.config.Address, APIKey: p.config.APIKey, AllowedHosts: p.config.AllowedHosts, Logger: p.config.Logger, Version: Version,
	}
	if err := server.Check(options); err != nil { // said now, not after 20 GB have been read
		return &AddressError{err}
	}
	engine, loaded, err := p.config.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	options.Engine = engine
	s, err := server.New(options)
	if err != nil {
		return &AddressError{err}
	}
	base, err := s.Listen()
	if err != nil {
		return &AddressError{err}
	}
	info := engine.Info()
	p.mu.Lock()
	p.engine = engine
	p.happen(Served{Address: strings.TrimPrefix(base, "http://"), Executor: info.Executor, ContextTokens: info.ContextTokens, Memory: loadedLine(loaded)})
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.engine = nil
		p.mu.Unlock()
	}()
	watching, enough := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		memgate.Watch(watching, pressureInterval, memgate.CurrentPressure, p.pressed)
	}()
	defer func() { enough(); <-watched }()
	return s.Serve(ctx)
}

// pressed tells that memory became short, or is no longer.
func (p *Pond) pressed(level memgate.Pressure) {
	if p.config.Logger != nil {
		p.config.Logger.Warn("memory pressure", "level", level.String())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.happen(Pressed{level})
}

// Stop ends the run, if there is one, and waits until everything is closed.
func (p *Pond) Stop() {
	p.mu.Lock()
	cancel, done := p.cancel, p.done
	p.mu.Unlock()
	if cancel == nil {
		return
	}
	cancel()
	<-done
}

// Ask answers one question with thinking off; emit takes the text as it comes.
func (p *Pond) Ask(ctx context.Context, question string, emit func(text string)) error {
	p.mu.Lock()
	engine := p.engine
	p.mu.Unlock()
	if engine == nil {
		return errors.New("nothing is loaded")
	}
	off := false
	answer, err := engine.Chat(ctx, inference.ChatRequest{Conversation: chat.Conversation{
		Messages: []chat.Message{{Role: "user", Content: chat.TextContent(question)}}, Thinking: &off,
	}})
	if err != nil {
		return err
	}
	for {
		update, more := answer.Next()
		if !more {
			return answer.Err()
		}
		for _, e := range update.Events {
			if e.Kind == chat.Text {
				emit(e.Text)
			}
		}
	}
}
