package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"pond/inference/checkpoint/fetch"
	"pond/inference/checkpoint/manifest"
	"pond/inference/checkpoint/store"
)

func newPull(s streams) *cobra.Command {
	var flags modelFlags
	var limit string
	var repair bool
	cmd := &cobra.Command{
		Use:   "pull",
		Short: "Download the model, verified to the last byte",
		Long: `Downloads the published files of the model, 20.4 GB, and verifies each against the digest that Pond was built with. Ctrl-C pauses; the same
command goes on from there, and nothing is downloaded twice. What survives: sleep, a lost network, a full disk, a crash, an upstream that changed.

It asks huggingface.co, or the hub that HF_ENDPOINT names, as HF_TOKEN if that is set, through HTTPS_PROXY where NO_PROXY does not forbid it; when
the first repository stalls it goes on with a second that has the same files. A network that goes away is waited for, up to 15 minutes; where no
connection could be made at all for a minute, it ends.

With --repair every byte that is there is read first, and only the files that are wrong or missing are fetched.

Exit codes: 2 a flag is wrong, 3 Pond does not know the model, 4 files of other content are in the way (see --repair), 8 no source delivers, or there is no network, 9 the disk
is full, 10 the folder is not there, cannot be made, is in use, or fails, 130 paused by Ctrl-C. After 8, 9 and 130 the same command goes on.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rate, err := parseRate(limit)
			if err != nil {
				return err
			}
			m, err := flags.manifest(s)
			if err != nil {
				return err
			}
			if builtIn(m) {
				fmt.Fprintf(s.out, "%s is built into Pond; there is nothing to pull\n", m.ID)
				return nil
			}
			sources, err := fetch.Sources(m, os.Getenv)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			return pull(ctx, s, flags.store(), m, store.PullOptions{Sources: sources, Repair: repair, Options: fetch.Options{RateBytes: rate}})
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&limit, "limit-rate", "", "most bytes a second, such as 20M (K, M and G are thousands, millions, milliards)")
	cmd.Flags().BoolVar(&repair, "repair", false, "read every byte that is there and replace what is wrong")
	return cmd
}

// pull pulls and tells how it goes.
func pull(ctx context.Context, s streams, at store.Store, m manifest.Manifest, o store.PullOptions) error {
	before, err := at.Status(m)
	if err != nil {
		return storeError(err)
	}
	if before.State == store.Ready && !o.Repair {
		fmt.Fprintf(s.out, "%s is ready in %s\n", m.ID, before.Dir)
		return nil
	}
	room := "free space unknown"
	if free, err := at.FreeBytes(); err == nil {
		room = gigabytes(free) + " free"
	}
	fmt.Fprintf(s.out, "%s: %s, %s to come, %s in %s\n", m.ID, gigabytes(m.Bytes()), gigabytes(m.Bytes()-before.DoneBytes), room, before.Dir)
	if before.State == store.Absent {
		if hint := adoptable(m); hint != "" {
			fmt.Fprintln(s.out, hint)
		}
	}
	show := &pulling{out: s.err, terminal: isTerminal(s.err), now: time.Now, total: m.Bytes()}
	o.Report, o.Verifying = show.event, show.verifying
	err = at.Pull(ctx, m, o)
	show.clear()
	if err != nil {
		return stopped(at, m, err)
	}
	fmt.Fprintf(s.out, "%s is ready in %s\n", m.ID, before.Dir)
	return nil
}

// stopped says why a pull ended early, how far it is, and how to go on.
func stopped(at store.Store, m manifest.Manifest, err error) error {
	after, serr := at.Status(m)
	if serr != nil {
		return storeError(err)
	}
	paused := fmt.Sprintf("paused at %s of %s; the same command goes on from there", gigabytes(after.DoneBytes), gigabytes(after.TotalBytes))
	if after.DoneBytes == 0 {
		paused = "nothing is downloaded yet; the same command tries again"
	}
	var sources *fetch.SourceError
	switch {
	case errors.As(err, &sources):
		return &exitError{exitSources, fmt.Errorf("%w; %s", err, paused)}
	case errors.Is(err, context.Canceled):
		return &exitError{exitInterrupted, errors.New(paused)}
	}
	return storeError(err)
}
