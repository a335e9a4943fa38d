package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pond/app"
	"pond/app/settings"
	"pond/assets"
	"pond/inference"
	"pond/inference/ablate"
	"pond/inference/memgate"
)

// engineFlags are the flags of every command that loads a model.
type engineFlags struct {
	model    string
	executor string
	ablate   string
	context  int
	threads  int
	anyway   bool
	verbose  bool

	cmd *cobra.Command // nil: there were no flags
}

func (f *engineFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.cmd = cmd
	flags.StringVar(&f.model, "model", "", "pond-demo (built in), qwen3.6-35b-a3b, or a folder with a model (default: the one in the settings, else pond-demo)")
	flags.StringVar(&f.executor, "executor", string(inference.Auto), "what computes: auto, host (the processor), host-exact (in float32, to the bit), host-int8, metal (a Mac's GPU), standin (Metal on the processor, for tests)")
	ablateFlag(cmd, &f.ablate)
	flags.IntVar(&f.context, "context", 0, "longest conversation in tokens, answer included (default: as the model and the memory allow)")
	flags.IntVar(&f.threads, "threads", 0, "worker threads of the host executor (default: one for each processor)")
	flags.BoolVar(&f.anyway, "anyway", false, "load although memory is short, where that can only be slow; pond doctor says whether it can")
	flags.BoolVar(&f.verbose, "verbose", false, "log to standard error what the engine and the endpoint do; never what is said")
}

func ablateFlag(cmd *cobra.Command, names *string) {
	cmd.Flags().StringVar(names, "ablate", "", "switch these optimisations off, to look for one that is at fault: names with commas; a wrong one lists them")
}

// switches reads names of optimisations.
func switches(names string) (*ablate.Set, error) {
	set, err := ablate.Parse(names)
	if err != nil {
		return nil, &exitError{exitUsage, fmt.Errorf("--ablate: %w", err)}
	}
	return set, nil
}

// switchedOff says what of a set an open engine does without, and what it does not have or did not meet yet; "" where nothing was asked for.
func switchedOff(set *ablate.Set) string {
	var acted, idle []string
	for _, w := range set.Asked() {
		if slices.Contains(set.Acted(), w) {
			acted = append(acted, string(w))
		} else {
			idle = append(idle, string(w))
		}
	}
	var words []string
	if len(acted) > 0 {
		words = append(words, "switched off: "+strings.Join(acted, ", "))
	}
	if len(idle) > 0 {
		words = append(words, "so far nothing to switch off: "+strings.Join(idle, ", "))
	}
	return strings.Join(words, "; ")
}

// config turns the flags and the user's settings into what to run; errors carry their exit codes.
func (f *engineFlags) config(s streams) (app.Config, error) {
	chosen, err := loadSettings()
	if err != nil {
		return app.Config{}, err
	}
	executor, err := f.chosenExecutor()
	if err != nil {
		return app.Config{}, err
	}
	if f.context < 0 || f.context == 0 && f.cmd != nil && f.cmd.Flags().Changed("context") {
		return app.Config{}, usageError("--context: got %d tokens, want at least 1", f.context)
	}
	if f.threads < 0 || f.threads == 0 && f.cmd != nil && f.cmd.Flags().Changed("threads") {
		return app.Config{}, usageError("--threads: got %d, want at least 1", f.threads)
	}
	model, err := findModel(s, f.model, chosen)
	if err != nil {
		return app.Config{}, err
	}
	off, err := switches(f.ablate)
	if err != nil {
		return app.Config{}, err
	}
	config := app.ConfigOf(chosen, model, executor)
	config.Ablate = off
	config.Anyway, config.Threads = f.anyway, f.threads
	if f.context > 0 {
		config.ContextTokens = f.context
	}
	config.OnLoad = (&loading{out: s.err, terminal: isTerminal(s.err) && !isDumb(), now: time.Now}).show
	if f.verbose {
		config.Logger = slog.New(slog.NewTextHandler(s.err, nil))
	}
	return config, nil
}

// chosenExecutor is what the flags want to compute with, if it runs here.
func (f *engineFlags) chosenExecutor() (inference.Executor, error) {
	executor, err := inference.ParseExecutor(f.executor)
	if err != nil {
		return executor, &exitError{exitUsage, err}
	}
	for _, e := range app.Executors(app.ThisMachine()) {
		if e.Name == f.executor && !e.Available {
			return executor, &exitError{exitExecutor, errors.New("executor " + e.Name + ": " + e.Why)}
		}
	}
	return executor, nil
}

// open loads the model that the flags name.
func (f *engineFlags) open(ctx context.Context, s streams) (*inference.Engine, app.Config, error) {
	config, err := f.config(s)
	if err != nil {
		return nil, config, err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	engine, err := config.Open(ctx)
	if err == nil {
		if line := switchedOff(config.Ablate); line != "" {
			fmt.Fprintln(s.err, line)
		}
	}
	return engine, config, withCode(err)
}

// withCode gives the errors of app their exit codes.
func withCode(err error) error {
	var opened *app.OpenError
	var address *app.AddressError
	var memory *app.MemoryError
	var damaged *inference.DamagedError
	switch {
	case errors.As(err, &memory):
		if r := memory.Result; !r.Allows() && r.Override == memgate.Slow {
			err = fmt.Errorf("%w; %s (--anyway)", err, r.OverrideSentence())
		}
		return &exitError{exitMemory, err}
	case errors.As(err, &opened):
		return &exitError{exitBadModel, err}
	case errors.As(err, &damaged):
		return &exitError{exitBadModel, fmt.Errorf("%w; try pond verify, which says which", err)}
	case errors.As(err, &address):
		return &exitError{exitAddress, err}
	}
	return err
}

func loadSettings() (settings.Settings, error) { return settings.Load(settings.DefaultPaths().File) }

// catalog finds models where this user keeps them, and the built-in one.
func catalog(s streams) app.Catalog {
	dir := settings.DefaultPaths().Models
	if chosen, err := loadSettings(); err == nil && chosen.ModelsDir != "" { // broken settings are told by whoever needs them
		dir = chosen.ModelsDir
	}
	return app.Catalog{ModelsDir: dir, Demo: assets.Demo(), Known: s.known()}
}

// findModel finds a model by what the user wrote, or else chose in the settings.
func findModel(s streams, name string, chosen settings.Settings) (app.Model, error) {
	if name == "" {
		name = chosen.Model
	}
	m, err := catalog(s).Find(name)
	var missing *app.MissingModelError
	if errors.As(err, &missing) {
		return m, &exitError{exitNoModel, err}
	}
	return m, withCode(err)
}
