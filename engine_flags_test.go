package main

import (
	"errors"
	"strings"
	"testing"

	"pond/app"
	"pond/inference"
	"pond/inference/memgate"
)

// TestMemoryExit: a refusal of the memory gate has its exit code, and names the way around it where there is one.
func TestMemoryExit(t *testing.T) {
	need := memgate.Need{Weights: 20e9, MinTokens: 1, MaxTokens: 1}
	r := memgate.Check(memgate.Reading{System: memgate.Linux, Total: memgate.Of(16e9), Available: memgate.Of(12e9)}, need)
	err := withCode(&app.MemoryError{Model: "m", Result: r})
	var e *exitError
	if !errors.As(err, &e) || e.code != exitMemory || !strings.Contains(err.Error(), "model m: needs 20.2 GB, 12.0 GB available; loading anyway works, and is slow") || !strings.HasSuffix(err.Error(), "(--anyway)") {
		t.Errorf("got %v", err)
	}
	need.Placement = memgate.Held
	err = withCode(&app.MemoryError{Model: "m", Result: memgate.Check(r.Reading, need)})
	if !errors.As(err, &e) || e.code != exitMemory || strings.Contains(err.Error(), "anyway") {
		t.Errorf("got %v, want no way around", err)
	}
}

// TestDamagedExit: an answer that fails because the weights are damaged has the exit code of a damaged model, not 1.
func TestDamagedExit(t *testing.T) {
	err := withCode(&inference.DamagedError{})
	var e *exitError
	if !errors.As(err, &e) || e.code != exitBadModel || !strings.Contains(err.Error(), "pond verify") {
		t.Errorf("got %v", err)
	}
}
