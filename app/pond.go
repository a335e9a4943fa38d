package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"pond/app/settings"
	"pond/inference"
	"pond/inference/ablate"
	"pond/inference/chat"
	"pond/inference/memgate"
	"pond/server"
)

// Config is what to run and where to serve it.
type Config struct {
	Model         Model
	Executor      inference.Executor
	Threads       int    // of the host executor; 0: one for each processor
	ContextTokens int    // 0: what the memory allows
	Anyway        bool   // load against the memory gate, where that can only be slow
	Address       string // host:port
	APIKey        string // empty: none is asked for
	AllowedHosts  []string
	// AllowedOrigins are pages beyond this machine that may call the endpoint, as scheme://host[:port].
	AllowedOrigins []string
	Logger         *slog.Logger
	OnLoad         func(done, total int64) // bytes of weights in memory, of how many; see inference.Options
	Memory         func() memgate.Reading  // nil: the machine's
	Ablate         *ablate.Set             // optimisations to switch off, for measurements; nil: none
	Disk           inference.Disk          // where conversations are kept beyond the engine's life; zero: nowhere
	Quiet          bool                    // a run lets other programs go first
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
type AddressError struct {
	Err    error
	Holder string // the program that has the port, where it is known
}

// Error says all that is missing at once, and how to give it.
func (e *AddressError) Error() string {
	var beyond *server.BeyondLoopbackError
	if !errors.As(e.Err, &beyond) {
		if e.Holder != "" {
			return "the port is held by " + e.Holder + ": " + e.Err.Error()
		}
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
	options := inference.Options{Model: inference.FromDir(c.Model.Dir), ID: c.Model.ID, Executor: c.Executor, Threads: c.Threads, ContextTokens: c.ContextTokens, Logger: c.Logger, OnLoad: c.OnLoad, Ablate: c.Ablate, Disk: c.Disk}
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

// Pond is the running product: at most one loaded model and one endpoint, at most one job on the model's files, and the State that tells of
// them.
//
//   - Its methods may be called from any goroutine, in any order; the last of Start and Stop wins. Those that take long work on goroutines of
//     their own, and their outcome is a state, except for Start, Stop and Close, which wait.
//   - The engine lives exactly as long as its endpoint serves: nothing asks an engine that is closed.
//   - Every change of state goes through happen, under mu.
type Pond struct {
	home           *Home         // nil: config is all there is
	askedForUpdate chan struct{} // holds one: the user wants to know now

	mu       sync.Mutex // protects all below
	config   Config     // of the next run
	settings settings.Settings
	state    State
	changed  chan struct{} // closed and replaced at every change of state
	engine   *inference.Engine
	cancel   context.CancelFunc // ends the run; nil when none is
	done     chan struct{}      // closed when the run has ended
	rest     chan struct{}      // asks the run to let the model go; nil when none is
	wake     chan struct{}      // asks it to load the model again
	worked   time.Time          // when there was work last
	job      *running           // what is done to the model's files; nil: nothing
	release  context.CancelFunc // ends the wait of a pause; nil: there is none
	closed   bool
	first    bool // nobody has chosen anything yet
}

// New makes a stopped Pond that runs one configuration.
func New(c Config) *Pond {
	return &Pond{
		config:  c,
		state:   State{Model: c.Model.ID, Ready: true, Address: c.Address, NeedsKey: c.APIKey != ""},
		changed: make(chan struct{}),
	}
}

// Open makes a stopped Pond of the user's settings and models. Settings that cannot be read are an error that names the file.
func Open(h Home) (*Pond, error) {
	if h.Now == nil {
		h.Now = time.Now
	}
	chosen, err := settings.Load(h.Paths.File)
	if err != nil {
		return nil, err
	}
	_, err = os.Stat(h.Paths.File)
	p := &Pond{home: &h, settings: chosen, changed: make(chan struct{}), first: errors.Is(err, fs.ErrNotExist), askedForUpdate: make(chan struct{}, 1)}
	p.state.Update.Own = h.Updates != nil
	p.Look()
	return p, nil
}

// FirstRun reports, once in the life of a user's settings, that Pond was never opened before.
func (p *Pond) FirstRun() bool {
	p.mu.Lock()
	first, chosen := p.first, p.settings
	p.first = false
	p.mu.Unlock()
	if first {
		if err := chosen.Save(p.home.Paths.File); err != nil { // it will be the first run again
			p.log("the settings cannot be saved", "error", err)
		}
	}
	return first
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

// tell makes an event the next state.
func (p *Pond) tell(e Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.happen(e)
}

func (p *Pond) now() time.Time {
	if p.home != nil {
		return p.home.Now()
	}
	return time.Now()
}

// Start loads the model and serves until ctx is done or Stop is called, and returns how that ended: nil when it was asked to
// end. Where Pond runs already it returns at once.
func (p *Pond) Start(ctx context.Context) error { return p.start(ctx, false) }

// start is Start; anyway loads against the memory gate.
func (p *Pond) start(ctx context.Context, anyway bool) error {
	p.mu.Lock()
	if p.cancel != nil || p.closed {
		p.mu.Unlock()
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	p.cancel, p.done = cancel, done
	p.mu.Unlock()

	config, err := p.configure(anyway)
	if err == nil {
		p.tell(LoadStarted{Model: config.Model.ID, Address: config.Address, NeedsKey: config.APIKey != ""})
		err = p.serve(ctx, config)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // asked to end while loading
	}
	cancel()
	p.ended(err)
	p.Look() // what was chosen meanwhile counts from now on
	close(done)
	return err
}

// ended notes how a run ended.
func (p *Pond) ended(err error) {
	if err != nil {
		if l := p.logger(); l != nil {
			l.Error("the run ended", "error", err)
		}
		p.notify("Pond stopped", err.Error())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancel = nil
	if err != nil {
		p.happen(Failure{err})
	} else {
		p.happen(Halted{})
	}
}

// configure is the configuration of the next run.
func (p *Pond) configure(anyway bool) (Config, error) {
	p.mu.Lock()
	config, chosen := p.config, p.settings
	p.mu.Unlock()
	if p.home == nil {
		return config, nil
	}
	model, _, err := p.home.pick(chosen)
	config = p.home.config(chosen, model)
	config.Anyway = anyway
	return config, err
}

// Stop ends the run, if there is one, and waits until everything is closed: no new connections, a moment for running answers to finish, and
// then an error event for those that have not.
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

// Close ends the run and the job for good. A download can be taken up by the next Pond.
func (p *Pond) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.endJob()
	p.Stop()
}

// Engine is the loaded model, for the chat window, which shares the server's queue; nil while none is loaded. An engine that is let go ends
// its answers with inference.ErrClosed.
func (p *Pond) Engine() *inference.Engine {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.engine
}

// Chat asks the loaded model for the next turn, in the server's queue; a model that rests is loaded first.
func (p *Pond) Chat(ctx context.Context, r inference.ChatRequest) (*inference.Answer, error) {
	engine, err := p.awake(ctx)
	if err != nil {
		return nil, err
	}
	r.Priority = inference.Interactive // the person before the window
	return engine.Chat(ctx, r)
}

// awake is the engine: loaded again where it rested, and started where the model is there and nobody did. A run that is stopped meanwhile is
// not started twice.
func (p *Pond) awake(ctx context.Context) (*inference.Engine, error) {
	var ended chan error // of the run that was started here
	for {
		p.mu.Lock()
		engine, changed, s := p.engine, p.changed, p.state
		if engine == nil && s.Unloaded && p.wake != nil {
			select {
			case p.wake <- struct{}{}:
			default: // it was asked already
			}
		}
		if s.Phase == Stopped && s.Ready && p.home != nil && p.cancel == nil && !p.closed && ended == nil {
			ended = make(chan error, 1)
			go func() { ended <- p.start(context.Background(), false) }() // Stop and Close end it
		}
		p.mu.Unlock()
		switch {
		case engine != nil:
			return engine, nil
		case s.Phase == Failed:
			return nil, errors.New(s.Failure)
		case s.Phase != Loading && !s.Unloaded && ended == nil:
			return nil, errors.New("nothing is loaded")
		}
		select {
		case <-changed:
		case err := <-ended:
			if err == nil {
				err = errors.New("the model was stopped")
			}
			return nil, err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Ask answers one question with thinking off; emit takes the text as it comes.
func (p *Pond) Ask(ctx context.Context, question string, emit func(text string)) error {
	off := false
	answer, err := p.Chat(ctx, inference.ChatRequest{Conversation: chat.Conversation{
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
