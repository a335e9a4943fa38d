package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"pond/inference"
	"pond/inference/checkpoint/manifest"
	"pond/inference/memgate"
	"pond/server"
)

// errRest ends a stretch of serving because the model is to be let go; the endpoint lives on.
var errRest = errors.New("the model rests")

// serve is one run, from loading to closing. Between its stretches the model is let go, and the port is kept: see doze.
func (p *Pond) serve(ctx context.Context, config Config) (err error) {
	options := server.Options{
		Addr: config.Address, APIKey: config.APIKey, AllowedHosts: config.AllowedHosts, AllowedOrigins: config.AllowedOrigins,
		Logger: config.Logger, Version: Release(), ModelHash: modelHash(config.Model.ID),
	}
	if err := server.Check(options); err != nil { // said now, not after 20 GB have been read
		return addressError(err)
	}
	rest, wake := make(chan struct{}, 1), make(chan struct{}, 1)
	p.mu.Lock()
	p.rest, p.wake = rest, wake
	p.mu.Unlock()
	var port *keptPort
	defer func() {
		p.mu.Lock()
		p.rest, p.wake = nil, nil
		p.mu.Unlock()
		if port != nil {
			err = errors.Join(err, port.release(err))
		}
	}()
	for {
		drain(rest)
		drain(wake)
		if err := p.stretch(ctx, config, options, &port, rest); !errors.Is(err, errRest) {
			return err
		}
		p.tell(Rested{})
		if err := port.doze(ctx, wake); err != nil {
			return err
		}
		p.tell(LoadStarted{Model: config.Model.ID, Address: port.address(), NeedsKey: config.APIKey != ""})
	}
}

// modelHash names the content of a model that has a manifest, by the digests of its files; "" for one in a folder of the user's.
func modelHash(id string) string {
	for _, m := range manifest.All() {
		if m.ID != id {
			continue
		}
		h := sha256.New()
		for _, f := range m.Files {
			h.Write(f.SHA256[:])
		}
		return hex.EncodeToString(h.Sum(nil))
	}
	return ""
}

// stretch loads the model and serves until ctx is done, or, with errRest, until the model is to be let go.
func (p *Pond) stretch(ctx context.Context, config Config, options server.Options, port **keptPort, rest <-chan struct{}) (err error) {
	told := config.OnLoad
	config.OnLoad = func(done, total int64) {
		p.tell(Loaded{done, total})
		if told != nil {
			told(done, total)
		}
	}
	engine, loaded, err := config.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	engine.Quiet(config.Quiet)
	options.Engine = engine
	if *port == nil {
		if *port, err = keepPort(config.Address); err != nil {
			return addressError(err)
		}
	}
	options.Listener = (*port).open()
	s, err := server.New(options)
	if err != nil {
		return addressError(err)
	}
	base, err := s.Listen()
	if err != nil {
		return addressError(err)
	}
	info := engine.Info()
	p.mu.Lock()
	p.engine, p.worked = engine, p.now()
	p.happen(Served{
		Address: strings.TrimPrefix(base, "http://"), Executor: info.Executor, ContextTokens: info.ContextTokens, Memory: loadedLine(loaded),
		UnloadBytes: max(info.WeightBytes, int64(loaded.OwnGrowth)),
	})
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.engine = nil
		p.endPause()
		p.mu.Unlock()
	}()
	ctx, enough := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		p.attend(ctx, engine, rest, func() { enough(errRest) })
	}()
	defer func() { enough(nil); <-watched }()
	if err := s.Serve(ctx); err != nil {
		return err
	}
	if errors.Is(context.Cause(ctx), errRest) {
		p.saveConversations(engine)
		return errRest
	}
	return nil
}

func drain(c <-chan struct{}) {
	select {
	case <-c:
	default:
	}
}

// attendEvery is how often a running Pond looks at its engine, and every few times at the machine.
const attendEvery = time.Second

// attend watches over a run until ctx is done: what the engine does, how long it has had nothing to do, the memory and the power.
func (p *Pond) attend(ctx context.Context, engine *inference.Engine, rest <-chan struct{}, letGo func()) {
	every, between, ask := attendEvery, pressureInterval, memgate.CurrentPressure
	if h := p.home; h != nil {
		if h.every > 0 {
			every, between = h.every, h.every
		}
		if h.System.Pressure != nil {
			ask = h.System.Pressure
		}
	}
	pressed := make(chan memgate.Pressure)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		memgate.Watch(ctx, between, ask, func(level memgate.Pressure) {
			select {
			case pressed <- level:
			case <-ctx.Done():
			}
		})
	}()
	defer func() { <-asked }()
	w := watch{pond: p, engine: engine, letGo: letGo}
	defer w.end()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		w.look()
		select {
		case <-tick.C:
		case level := <-pressed:
			w.pressed(level)
		case <-rest:
			letGo()
			return
		case <-ctx.Done():
			return
		}
	}
}
