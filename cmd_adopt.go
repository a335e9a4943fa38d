package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"pond/app"
	"pond/inference/checkpoint/adopt"
	"pond/inference/checkpoint/manifest"
	"pond/inference/checkpoint/store"
)

func newAdopt(s streams) *cobra.Command {
	var place modelFlags
	var from string
	var list bool
	modes := map[adopt.Mode]*bool{adopt.InPlace: new(bool), adopt.Clone: new(bool), adopt.Link: new(bool), adopt.Copy: new(bool)}
	cmd := &cobra.Command{
		Use:   "adopt",
		Short: "Use a copy of the model that another tool downloaded",
		Long: `Looks for the model's files in the cache of Hugging Face, in the folders of LM Studio and oMLX, or in --from DIR, verifies every byte
against the published digests, and makes them Pond's without a second download. How is your choice:

  --in-place  a link to the file where it is: takes no space, and is lost when the other tool removes it
  --clone     shares the file's blocks: takes no space and outlives the other tool's copy (APFS, Btrfs, XFS; elsewhere on Linux a hard link)
  --link      a hard link: a second name of the same file, on the same disk
  --copy      takes the space a second time

Without a choice it only lists what it finds. Nothing of the other tool is changed. What is missing afterwards is named; pond pull downloads it.

Exit codes: 2 a flag is wrong, 3 no copy was found or it is not whole, 4 a file has wrong bytes, 9 the disk is full, 10 the folder of models is not there
or in use, 130 stopped by Ctrl-C.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := place.manifest(s)
			if err != nil {
				return err
			}
			if builtIn(m) {
				fmt.Fprintf(s.out, "%s is built into Pond; there is nothing to adopt\n", m.ID)
				return nil
			}
			a := adoption{s: s, model: m, store: place.store(), from: from, env: toolEnvironment()}
			chosen := 0
			for mode, given := range modes {
				if *given {
					a.mode = mode
					chosen++
				}
			}
			switch {
			case chosen > 1:
				return usageError("got %d of --in-place, --clone, --link and --copy, want one", chosen)
			case list && chosen > 0:
				return usageError("got --list and a way to adopt, want one of them")
			case chosen == 0:
				return a.list()
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			return a.run(ctx)
		},
	}
	place.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "a folder that holds the files, or folders of models in any tool's layout (default: where the tools keep theirs)")
	flags.BoolVar(&list, "list", false, "only list what is found and what is missing")
	flags.BoolVar(modes[adopt.InPlace], "in-place", false, "use the files where they are, read-only")
	flags.BoolVar(modes[adopt.Clone], "clone", false, "share the files' blocks")
	flags.BoolVar(modes[adopt.Link], "link", false, "make hard links")
	flags.BoolVar(modes[adopt.Copy], "copy", false, "copy the files")
	return cmd
}

// toolEnvironment is where other tools of this user look for their folders.
func toolEnvironment() adopt.Environment {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // then the environment's folders alone are known
	}
	return adopt.Environment{Home: home, Getenv: os.Getenv}
}

// adoptable says in one line that another tool has files of a model already; empty when none has.
func adoptable(m manifest.Manifest) string {
	found := adopt.Search(toolEnvironment(), m)
	if len(found) == 0 {
		return ""
	}
	c := found[0]
	return fmt.Sprintf("%s has %s of it already in %s; pond adopt uses that", c.Tool, gigabytes(c.Bytes()), c.Dir)
}

// adoption is one run of the command.
type adoption struct {
	s     streams
	model manifest.Manifest
	store store.Store
	from  string // where to look; empty: where tools keep models
	env   adopt.Environment
	mode  adopt.Mode
}

// search finds copies; none is an error.
func (a adoption) search() ([]adopt.Candidate, error) {
	where := "where Hugging Face, LM Studio and oMLX keep theirs"
	var found []adopt.Candidate
	if a.from == "" {
		found = adopt.Search(a.env, a.model)
	} else {
		where = a.from
		found = adopt.SearchDir(a.from, a.model)
	}
	if len(found) == 0 {
		return nil, &exitError{exitNoModel, fmt.Errorf("model %s: no copy found (looked %s); --from DIR looks elsewhere", a.model.ID, where)}
	}
	return found, nil
}

func (a adoption) list() error {
	found, err := a.search()
	if err != nil {
		return err
	}
	for _, c := range found {
		fmt.Fprintf(a.s.out, "%s  %s\n", c.Tool, c.Dir)
		fmt.Fprintf(a.s.out, "  %d of %d files, %s of %s; the bytes are verified when they are adopted\n", len(c.Files), len(a.model.Files), gigabytes(c.Bytes()), gigabytes(a.model.Bytes()))
		a.listMissing("  ", c.Missing)
	}
	fmt.Fprintln(a.s.out, "adopt the first with --in-place, --clone, --link or --copy; --from DIR takes another (pond adopt --help explains)")
	return nil
}

func (a adoption) listMissing(indent string, missing []adopt.Lack) {
	for _, l := range missing {
		got := "not there"
		if l.Got >= 0 {
			got = fmt.Sprintf("another file: got %d bytes, want %d", l.Got, l.Bytes)
		}
		fmt.Fprintf(a.s.out, "%smissing  %s (%s)\n", indent, l.Name, got)
	}
}

func (a adoption) run(ctx context.Context) error {
	found, err := a.search()
	if err != nil {
		return err
	}
	c, dir := found[0], a.store.Dir(a.model.ID)
	fmt.Fprintf(a.s.out, "%s  %s\n", c.Tool, c.Dir)
	show := &pulling{out: a.s.err, terminal: isTerminal(a.s.err), now: time.Now, total: c.Bytes()}
	out, err := app.Adopt(ctx, a.store, a.model, c, a.mode, func(p adopt.Progress) { show.verifying(p.Done, p.Total) })
	show.clear()
	for _, f := range out.Adopted {
		fmt.Fprintf(a.s.out, "  verified  %s (%s)\n", f.Name, f.How)
	}
	for _, name := range out.Kept {
		fmt.Fprintf(a.s.out, "  kept      %s (it is in %s already)\n", name, dir)
	}
	var mode *adopt.ModeError
	if errors.As(err, &mode) {
		return fmt.Errorf("%w; --in-place and --copy work on any disk", err)
	}
	var space *adopt.SpaceError
	switch {
	case errors.As(err, &space):
		return &exitError{exitSpace, err}
	case err != nil:
		return storeError(err)
	}
	for _, r := range out.Rejected {
		fmt.Fprintf(a.s.out, "  rejected  %s\n", r.Error())
	}
	missing := out.Missing
	a.listMissing("  ", missing)
	status := store.LookAt(dir, a.model)
	switch {
	case status.State == store.Ready:
		fmt.Fprintf(a.s.out, "%s is ready in %s\n", a.model.ID, dir)
		return nil
	case len(out.Rejected) > 0:
		return &exitError{exitBadModel, fmt.Errorf("model %s: %d of the files in %s have other bytes than were published; pond pull downloads them", a.model.ID, len(out.Rejected), c.Dir)}
	case len(missing) > 0:
		return &exitError{exitNoModel, fmt.Errorf("model %s: %d files are missing; pond pull downloads them", a.model.ID, len(missing))}
	}
	return &exitError{exitNoModel, fmt.Errorf("model %s: %s; pond verify reads the files that were there before", a.model.ID, status.Line())}
}

// gigabytes writes the size of files, decimal as stores of models do.
func gigabytes(n int64) string {
	if n < 1e9 {
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.2f GB", float64(n)/1e9)
}
