// Command pond runs one language model on your own machine: an OpenAI-compatible endpoint, a chat in the terminal, and, when it is
// built with cgo, a window and an icon in the menu bar.
//
// This package is thin: the commands, one file each (cmd_*.go), turn flags into calls of app and inference, and errors into
// exit codes. gui.go is the only file that needs cgo; nogui.go stands in for it. Start with run.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"pond/inference/checkpoint/manifest"
)

// Exit codes. Scripts may rely on them; README.md lists them and a test compares.
const (
	exitOK          = 0
	exitFailed      = 1   // anything else that went wrong
	exitUsage       = 2   // a flag or an argument that is not understood
	exitNoModel     = 3   // the model is not installed or not in this build
	exitBadModel    = 4   // the model cannot be opened: its files are damaged or of another kind, or do not go with the flags
	exitAddress     = 5   // the endpoint cannot be served at the address: taken, not this machine's, or open to others without a key
	exitExecutor    = 6   // the executor does not run on this machine or in this build
	exitMemory      = 7   // the model, or the context asked for, does not fit into memory
	exitSources     = 8   // no source delivers the model's files
	exitSpace       = 9   // the disk is full
	exitFolder      = 10  // the folder of models is not there, in use by another pond, or fails
	exitInterrupted = 130 // stopped by Ctrl-C or SIGTERM in the middle of its work
)

// exitError is an error with the exit code that tells scripts its kind.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// streams are where a command reads and writes.
type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer

	models []manifest.Manifest // what Pond knows of models; nil: all that it was built with. Tests know smaller ones
}

func (s streams) known() []manifest.Manifest {
	if s.models != nil {
		return s.models
	}
	return manifest.All()
}

func main() {
	os.Exit(run(os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}

// run executes one command line and returns its exit code. SIGTERM asks every command to end in order; commands decide about
// Ctrl-C themselves.
func run(args []string, s streams) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	out := &output{w: s.out}
	s.out = out
	root := newRoot(s)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if failed := out.failed(); failed != nil {
		// Said whatever else went wrong: what came of the work is not where it was wanted.
		err = &exitError{exitFailed, fmt.Errorf("writing the output: %w", failed)}
	}
	if err == nil {
		return exitOK
	}
	code := exitFailed
	var e *exitError
	switch {
	case errors.As(err, &e):
		code = e.code
	case errors.Is(err, context.Canceled):
		code, err = exitInterrupted, errors.New("stopped")
	}
	fmt.Fprintln(s.err, "pond:", err)
	if code == exitUsage {
		fmt.Fprintf(s.err, "try: %s --help\n", cmd.CommandPath())
	}
	return code
}

func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "pond",
		Short: "One language model on your own machine",
		Long: `Pond runs one language model on your own machine. Without a command it opens its window where there is a screen, and
otherwise serves its OpenAI-compatible endpoint on http://127.0.0.1:11535/v1.`,
		Args:          noArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       buildLine(),
		RunE:          func(cmd *cobra.Command, _ []string) error { return runDefault(cmd.Context(), s) },
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetVersionTemplate("{{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &exitError{exitUsage, flagInWords(err)} })
	root.AddCommand(newServe(s), newChat(s), newAdopt(s), newInspect(s), newDoctor(s), newVersion(s), newPull(s), newVerify(s), newList(s), newRemove(s), newCache(s), newEval(s), newBench(s), newLink(s), newUnlink(s), newUninstall(s))
	root.SetHelpCommand(&cobra.Command{Use: "help [command]", Short: "Explain a command", RunE: func(cmd *cobra.Command, args []string) error {
		found, rest, err := root.Find(args)
		if err == nil {
			err = noArgs(found, rest)
		}
		if err != nil {
			return &exitError{exitUsage, err}
		}
		return found.Help()
	}})
	return root
}

// flagInWords says of a number that is none what was wanted, where the flags' package speaks of strconv.
func flagInWords(err error) error {
	var number *strconv.NumError
	if !errors.As(err, &number) {
		return err
	}
	want := "a number"
	switch {
	case errors.Is(number, strconv.ErrRange):
		want = "a smaller number"
	case number.Func != "ParseFloat":
		want = "a whole number"
	}
	return errors.New(strings.Replace(err.Error(), number.Error(), "want "+want, 1))
}

// noArgs refuses arguments; for the root it is what tells an unknown command.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.HasSubCommands() {
		return usageError("%s has no command %s", cmd.CommandPath(), args[0])
	}
	return usageError("%s: got argument %q, want none", cmd.CommandPath(), args[0])
}

// oneArg wants one argument, named what in the message.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usageError("%s: got %d arguments, want %s", cmd.CommandPath(), len(args), what)
		}
		return nil
	}
}

// output remembers the first error of writing, for commands that print many lines: run looks at it in the end. Nothing is written after it.
type output struct {
	w io.Writer

	mu  sync.Mutex // protects err, and orders the writes
	err error
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(p)
	var path *os.PathError // it would name "/dev/stdout", which is not what the user calls it
	if errors.As(err, &path) {
		err = path.Err
	}
	o.err = err
	return n, err
}

func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// file is the file that a stream is; nil where it is none.
func file(stream any) *os.File {
	if o, ok := stream.(*output); ok {
		stream = o.w
	}
	f, _ := stream.(*os.File)
	return f
}

// isTerminal reports whether a stream is a person's terminal.
func isTerminal(stream any) bool {
	f := file(stream)
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// isDumb reports whether terminals know no escape sequences.
func isDumb() bool {
	name := os.Getenv("TERM")
	return name == "" || name == "dumb"
}

// columns is the width of a terminal; 0 where it is not known.
func columns(stream any) int {
	f := file(stream)
	if f == nil {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}
