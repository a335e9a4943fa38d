package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pond/inference/tinymodel"
)

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestAFullDiskIsNoticed: commands whose output could not be written ended with exit code 0.
func TestAFullDiskIsNoticed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tiny")
	if err := tinymodel.Write(dir, tinymodel.Tiny); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"--help", "help serve", "chat --help", "--version", "version", "list", "doctor", "inspect", "inspect plan --shape tiny",
		"inspect tensors --model DIR", "inspect tensors --json --model DIR", "inspect tokens --model DIR hello", "inspect logits --model DIR hello",
		"chat --model DIR --no-think --max-tokens 3 --once hello",
	} {
		var notes strings.Builder
		args := strings.Fields(strings.ReplaceAll(line, "DIR", dir))
		code := run(args, streams{in: strings.NewReader(""), out: full{}, err: &notes})
		if code != exitFailed || !strings.HasSuffix(notes.String(), "pond: writing the output: no space left on device\n") {
			t.Errorf("pond %s: got exit code %d and %q", line, code, notes.String())
		}
	}
}

// TestOutputKnowsItsTerminal: the writer that remembers errors does not hide what it writes to.
func TestOutputKnowsItsTerminal(t *testing.T) {
	if file(&output{w: os.Stdout}) != os.Stdout || file(&output{w: io.Discard}) != nil || file(os.Stdin) != os.Stdin {
		t.Error("the file behind a stream was not found")
	}
}
