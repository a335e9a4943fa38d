package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// The test binary is its own children.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-role" {
		if err := run(context.Background(), os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestSmall plays the whole of it with a model of a megabyte.
func TestSmall(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "models")
	if err := run(t.Context(), []string{"-small", "-dir", dir}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("got %v, want the folder removed", err)
	}
	if err := run(t.Context(), []string{"-small", "-dir", t.TempDir()}); err == nil {
		t.Error("a folder that is there: got no error")
	}
}
