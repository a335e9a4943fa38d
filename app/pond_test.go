package app

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pond/inference"
	"pond/inference/tinymodel"
	"pond/server"
)

func tiny(t *testing.T) Model {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny")
	if err := tinymodel.Write(dir, tinymodel.Tiny); err != nil {
		t.Fatal(err)
	}
	return Model{ID: "tiny", Dir: dir}
}

// reach waits until Pond is in a phase.
func reach(t *testing.T, p *Pond, phase Phase) State {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var last State
	p.Watch(ctx, func(s State) {
		last = s
		if s.Phase == phase {
			cancel()
		}
	})
	if last.Phase != phase {
		t.Fatalf("got %+v, want it %s", last, phase)
	}
	return last
}

// TestPondLives starts, asks, stops and starts again, as a user of the menu would.
func TestPondLives(t *testing.T) {
	p := New(Config{Model: tiny(t), Executor: inference.Host, Address: "127.0.0.1:0"})
	if s := p.State(); s.Phase != Stopped || s.Model != "tiny" {
		t.Fatalf("got %+v", s)
	}
	if err := p.Ask(context.Background(), "hello", func(string) {}); err == nil {
		t.Error("a stopped pond answered")
	}
	p.Stop() // nothing to stop
	for range 2 {
		ended := make(chan error, 1)
		go func() { ended <- p.Start(context.Background()) }()
		s := reach(t, p, Running)
		answer, err := http.Get(strings.TrimSuffix(s.Endpoint(), "/v1") + "/health")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		var health struct{ Status, Model, Version string }
		if err != nil || json.Unmarshal(body, &health) != nil || health.Status != "ok" || health.Model != "tiny" || health.Version != Release() {
			t.Errorf("health: got %s, %v", body, err)
		}
		if err := p.Start(context.Background()); err != nil {
			t.Errorf("starting twice: %v", err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		got := 0
		err = p.Ask(ctx, "hello", func(text string) { // the tiny model babbles until it is stopped
			if got += len(text); got > 8 {
				cancel()
			}
		})
		cancel()
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("ask: %v", err)
		}
		p.Stop()
		if err := <-ended; err != nil {
			t.Errorf("got %v, want a quiet end", err)
		}
		if s := p.State(); s.Phase != Stopped {
			t.Errorf("got %+v, want it stopped", s)
		}
	}
}

func TestPondFails(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	model := tiny(t)

	p := New(Config{Model: model, Address: taken.Addr().String()})
	err = p.Start(context.Background())
	var port *server.PortError
	if !errors.As(err, new(*AddressError)) || !errors.As(err, &port) || port.Next == "" {
		t.Errorf("got %v, want a taken port with the next free one", err)
	}
	if s := p.State(); s.Phase != Failed || !strings.Contains(s.Failure, port.Next) {
		t.Errorf("got %+v", s)
	}

	// The address is refused before the model is read: nobody waits for 20 GB to hear of a taken port.
	nowhere := Model{ID: "absent", Dir: filepath.Join(t.TempDir(), "absent")}
	if err := New(Config{Model: nowhere, Address: taken.Addr().String()}).Start(context.Background()); !errors.As(err, new(*AddressError)) {
		t.Errorf("a taken port and no model: got %v, want an AddressError", err)
	}

	// What an address open to others needs is said at once, with the flags: not one after the other.
	for _, c := range []struct {
		key   string
		hosts []string
		want  []string
	}{
		{"", nil, []string{"--api-key", "POND_API_KEY", "--allow-host"}},
		{"k", nil, []string{"--allow-host"}},
		{"", []string{"my-mac.local"}, []string{"--api-key", "POND_API_KEY"}},
	} {
		err := New(Config{Model: model, Address: "0.0.0.0:0", APIKey: c.key, AllowedHosts: c.hosts}).Start(context.Background())
		if !errors.As(err, new(*AddressError)) {
			t.Errorf("open to everybody: got %v, want an AddressError", err)
			continue
		}
		for _, flag := range []string{"--api-key", "POND_API_KEY", "--allow-host"} {
			if got := strings.Contains(err.Error(), flag); got != slices.Contains(c.want, flag) {
				t.Errorf("key %q, hosts %v: got %v, want it to name %v alone", c.key, c.hosts, err, c.want)
			}
		}
	}

	weights := filepath.Join(model.Dir, "model.safetensors")
	if err := os.Truncate(weights, 100_000); err != nil {
		t.Fatal(err)
	}
	err = New(Config{Model: model, Address: "127.0.0.1:0"}).Start(context.Background())
	if !errors.As(err, new(*OpenError)) || !strings.Contains(err.Error(), "model.safetensors") {
		t.Errorf("got %v, want an OpenError that names the file", err)
	}
}

// TestExecutorsTellTheTruth opens the engine with each executor that the doctor speaks of.
func TestExecutorsTellTheTruth(t *testing.T) {
	model := tiny(t)
	for _, e := range Executors(ThisMachine()) {
		engine, err := Config{Model: model, Executor: inference.Executor(e.Name)}.Open(context.Background())
		if (err == nil) != e.Available {
			t.Errorf("%s: the doctor says %v (%s), the engine %v", e.Name, e.Available, e.Why, err)
		}
		if err == nil {
			engine.Close()
		}
	}
}
