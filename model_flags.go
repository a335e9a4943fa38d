package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"pond/app"
	"pond/app/settings"
	"pond/inference/checkpoint/disk"
	"pond/inference/checkpoint/fetch"
	"pond/inference/checkpoint/manifest"
	"pond/inference/checkpoint/store"
)

// modelFlags are the flags of the commands that look after a model on the disk.
type modelFlags struct {
	model string
	dir   string
}

func (f *modelFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.model, "model", app.FullModel, "id of the model")
	f.addDir(cmd)
}

func (f *modelFlags) addDir(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dir, "dir", "", "folder that holds the models, one folder each; it must exist (default: the one in the settings, else Pond's own in the user's data folder)")
}

// store is the place that the flags name.
func (f *modelFlags) store() store.Store {
	if f.dir != "" {
		return store.Store{Root: f.dir}
	}
	if chosen, err := loadSettings(); err == nil && chosen.ModelsDir != "" {
		return store.Store{Root: chosen.ModelsDir}
	}
	return store.Store{Root: settings.DefaultPaths().Models, Create: true}
}

// manifest finds what the model's files are.
func (f *modelFlags) manifest(s streams) (manifest.Manifest, error) {
	var ids []string
	for _, m := range s.known() {
		if m.ID == f.model {
			return m, nil
		}
		ids = append(ids, m.ID)
	}
	return manifest.Manifest{}, &exitError{exitNoModel, fmt.Errorf("model %s: Pond does not know its files; it knows %s", f.model, strings.Join(ids, ", "))}
}

// installed is a model's status, and an error where nothing of it is there.
func installed(at store.Store, m manifest.Manifest) (store.Status, error) {
	st, err := at.Status(m)
	if err != nil {
		return st, storeError(err)
	}
	if st.State == store.Absent {
		return st, &exitError{exitNoModel, fmt.Errorf("model %s: not installed (looked in %s); pond pull downloads it", m.ID, st.Dir)}
	}
	return st, nil
}

// builtIn reports whether a model ships inside the program: nobody publishes it.
func builtIn(m manifest.Manifest) bool { return len(m.Sources) == 0 }

// storeError gives the errors of a store their exit codes, and says what to do.
func storeError(err error) error {
	var damaged *store.DamagedError
	var away *store.MissingRootError
	var locked *disk.LockedError
	var sources *fetch.SourceError
	var digest *fetch.DigestError
	var space *fetch.SpaceError
	var broken *fetch.DiskError
	var folder *store.FolderError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &damaged):
		return &exitError{exitBadModel, fmt.Errorf("%w; pond pull --repair fetches them anew", err)}
	case errors.As(err, &space):
		return &exitError{exitSpace, fmt.Errorf("%w; what is there is kept, and the same command goes on when there is room", err)}
	case errors.As(err, &sources):
		return &exitError{exitSources, fmt.Errorf("%w; what is there is kept, and the same command goes on from there", err)}
	case errors.As(err, &digest):
		return &exitError{exitSources, err}
	case errors.As(err, &away), errors.As(err, &locked), errors.As(err, &broken), errors.As(err, &folder):
		return &exitError{exitFolder, err}
	case errors.Is(err, context.Canceled):
		return &exitError{exitInterrupted, err}
	}
	return err
}

// parseRate reads bytes a second: a number with K, M or G for thousands, millions and milliards. Empty is no limit.
func parseRate(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	digits, unit := text, 1.0
	for suffix, factor := range map[string]float64{"K": 1e3, "M": 1e6, "G": 1e9} {
		if rest, ok := strings.CutSuffix(strings.ToUpper(text), suffix); ok {
			digits, unit = rest, factor
		}
	}
	n, err := strconv.ParseFloat(digits, 64)
	if rate := n * unit; err == nil && rate >= 1000 && rate <= 1e15 {
		return int64(rate), nil
	}
	return 0, usageError("--limit-rate: got %q, want bytes a second, at least 1K, such as 20M", text)
}
