package inference

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pond/inference/memgate"
	"pond/inference/tinymodel"
)

func writeTiny(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := tinymodel.Write(dir, tinymodel.Tiny); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestOpenTellsOfLoading(t *testing.T) {
	var dones []int64
	var total int64
	e, err := Open(t.Context(), Options{Model: FromDir(writeTiny(t)), ContextTokens: 64, OnLoad: func(done, all int64) {
		dones, total = append(dones, done), all
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if n := len(dones); n < 2 || dones[n-1] != total || total != e.Info().WeightBytes {
		t.Errorf("got %v of %d, want steps up to the %d bytes of the weights", dones, total, e.Info().WeightBytes)
	}
}

func TestLoadingStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	e, err := Open(ctx, Options{Model: FromDir(writeTiny(t)), ContextTokens: 64, OnLoad: func(done, total int64) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v; want %v", e, err, context.Canceled)
	}
}

func TestNoReadAheadWithoutMemory(t *testing.T) {
	var log bytes.Buffer
	e, err := Open(t.Context(), Options{Model: FromDir(writeTiny(t)), ContextTokens: 64, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for available, want := range map[memgate.Amount]bool{{}: true, memgate.Of(1 << 40): true, memgate.Of(64 << 20): false} {
		log.Reset()
		read := false
		if err := e.readAhead(t.Context(), available, func(done, total int64) { read = true }); err != nil {
			t.Fatal(err)
		}
		if told := strings.Contains(log.String(), "not read ahead"); read != want || told == want {
			t.Errorf("%v available: got read %v, told %v; want read %v", available, read, told, want)
		}
	}
}

// The disk goes away, or another program cuts the file, while an answer runs: that answer fails with the name of the weights, and the
// program goes on.
func TestWeightsThatShrinkWhileMapped(t *testing.T) {
	dir := writeTiny(t)
	e, err := Open(t.Context(), Options{Model: FromDir(dir), ContextTokens: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ask(t, e, user("hello"), Generation{MaxTokens: 2})
	if err := os.Truncate(filepath.Join(dir, "model.safetensors"), 100_000); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		a, err := e.Chat(t.Context(), ChatRequest{Conversation: user("and again"), Generation: Generation{MaxTokens: 2}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Wait(); err == nil || !strings.Contains(err.Error(), "language_model.") || !strings.Contains(err.Error(), "cut off") {
			t.Errorf("got %v, want an error that names the weights", err)
		}
	}
}
