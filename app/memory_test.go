package app

import (
	"context"
	"errors"
	"strings"
	"testing"

	"pond/inference"
	"pond/inference/memgate"
)

const mib = 1 << 20

// reading is a machine of which a number of MiB is available.
func reading(available uint64) func() memgate.Reading {
	return func() memgate.Reading {
		return memgate.Reading{
			System: memgate.Linux, Total: memgate.Of(1024 * mib), Available: memgate.Of(available * mib), SwapUsed: memgate.Of(0),
			Users: []memgate.User{{Name: "Docker Desktop", Bytes: 600 * mib}},
		}
	}
}

func TestGateLetsIn(t *testing.T) {
	model := tiny(t) // 1 MB of weights, 512 B a token and sequence; the program counts for 96 MiB
	for _, c := range []struct {
		name   string
		config Config
		tokens int
		err    string
	}{
		{"room", Config{Memory: reading(900)}, inference.DefaultContext, ""},
		{"as long as fits", Config{Memory: reading(128)}, 10_240, ""},
		{"what was asked for", Config{Memory: reading(900), ContextTokens: 65_536}, 65_536, ""},
		{"more than fits", Config{Memory: reading(128), ContextTokens: 65_536}, 0, "a context of 64K tokens does not fit; up to 10K tokens on this machine now"},
		{"no room", Config{Memory: reading(64)}, 0, "model tiny: needs 127 MB, 67 MB available; would fit if you quit Docker Desktop, 629 MB"},
		{"no room, and no override for what is not mapped", Config{Memory: reading(64), Anyway: true}, 0, "needs 127 MB"},
		{"a machine that cannot be read", Config{Memory: func() memgate.Reading { return memgate.Reading{} }}, inference.DefaultContext, ""},
		{"more than the model was made for", Config{Memory: reading(900), ContextTokens: 1 << 30}, 0, "want 1 to 262144"},
	} {
		c.config.Model = model
		e, err := c.config.Open(context.Background())
		switch {
		case err == nil:
			if got := e.Info().ContextTokens; c.err != "" || got != c.tokens {
				t.Errorf("%s: got a context of %d, want %d, error %q", c.name, got, c.tokens, c.err)
			}
			e.Close()
		case c.err == "" || !strings.Contains(err.Error(), c.err):
			t.Errorf("%s: got %v, want %q", c.name, err, c.err)
		}
	}
}

// TestGateTells: a Pond that is refused says the sentence; one that runs shows what to know of the memory.
func TestGateTells(t *testing.T) {
	p := New(Config{Model: tiny(t), Address: "127.0.0.1:0", Memory: reading(64)})
	err := p.Start(context.Background())
	var refused *MemoryError
	if !errors.As(err, &refused) || refused.Result.Verdict != memgate.Refuse {
		t.Errorf("got %v, want a MemoryError", err)
	}
	if s := p.State(); s.Phase != Failed || !strings.Contains(s.Failure, "would fit if you quit Docker Desktop") {
		t.Errorf("got %+v", s)
	}

	times := 0
	p = New(Config{Model: tiny(t), Address: "127.0.0.1:0", Memory: func() memgate.Reading {
		r := reading(900)()
		if times++; times > 1 {
			r.SwapUsed = memgate.Of(648 * mib)
		}
		return r
	}})
	ended := make(chan error, 1)
	go func() { ended <- p.Start(context.Background()) }()
	if s := reach(t, p, Running); s.Memory != "swap grew by 679 MB while it was loaded" {
		t.Errorf("got %q", s.Memory)
	}
	p.tell(Pressed{memgate.Critical})
	if s := p.State(); s.Pressure != memgate.Critical {
		t.Errorf("got %+v", s)
	}
	p.Stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestFullModelContext: the full model takes what fits; a small one stays modest.
func TestFullModelContext(t *testing.T) {
	need, err := inference.FullNeed(inference.Host)
	if err != nil {
		t.Fatal(err)
	}
	r := memgate.Check(memgate.Reading{System: memgate.Linux, Total: memgate.Of(64 << 30), Available: memgate.Of(40 << 30)}, need)
	tokens, err := Config{}.contextFor(r)
	if err != nil || tokens != r.Tokens || tokens < 200_000 {
		t.Errorf("got %d, %v; want the ceiling %d", tokens, err, r.Ceiling)
	}
	short := memgate.Check(memgate.Reading{System: memgate.Linux, Total: memgate.Of(16 << 30), Available: memgate.Of(12 << 30)}, need)
	if _, err := (Config{}).contextFor(short); err == nil {
		t.Error("12 GiB: got no error")
	}
	if tokens, err := (Config{Anyway: true}).contextFor(short); err != nil || tokens < 4096 {
		t.Errorf("12 GiB, anyway: got %d, %v", tokens, err)
	}
}
