package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pond/inference"
)

// opens opens a model and fails the test when that takes for ever, as reading a pipe does.
func opens(t *testing.T, m Model) error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		e, err := Config{Model: m, Executor: inference.Host, ContextTokens: 64}.Open(context.Background())
		if err == nil {
			e.Close()
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(20 * time.Second):
		t.Fatal("opening the model hangs")
		return nil
	}
}

// TestSideFilesThatAreNoFiles: with a named pipe for config.json pond hung and did not end at SIGTERM; with a link to /dev/zero it
// ran out of memory.
func TestSideFilesThatAreNoFiles(t *testing.T) {
	for _, name := range []string{"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"} {
		for want, place := range map[string]func(string) error{
			"got a named pipe, want a regular file": func(file string) error { return unix.Mkfifo(file, 0o600) },
			"got a device, want a regular file":     func(file string) error { return os.Symlink("/dev/zero", file) },
			"got a folder, want a regular file":     func(file string) error { return os.Mkdir(file, 0o700) },
		} {
			m := tiny(t)
			file := filepath.Join(m.Dir, name)
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			if err := place(file); err != nil {
				t.Skipf("no such files here: %v", err)
			}
			if err := opens(t, m); !errors.As(err, new(*OpenError)) || !strings.Contains(err.Error(), name+": "+want) {
				t.Errorf("%s: got %v, want an OpenError that says %q", name, err, want)
			}
		}
	}
}
