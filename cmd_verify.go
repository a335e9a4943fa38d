package main

import (
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"pond/assets"
	"pond/inference/checkpoint/store"
)

func newVerify(s streams) *cobra.Command {
	var flags modelFlags
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Read every byte of the model and compare it with what was published",
		Long: `Reads every file of the model and compares its size and SHA-256 with those that Pond was built with. It changes no file; it records what is right, so
that the model is ready, or names what is wrong.

Exit codes: 2 a flag is wrong, 3 the model is not installed, 4 files are damaged or missing (the message names them), 10 the folder is not there or in use,
130 stopped by Ctrl-C.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := flags.manifest(s)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			if builtIn(m) {
				err = store.VerifyFS(ctx, assets.Demo(), m)
			} else {
				at := flags.store()
				if _, err := installed(at, m); err != nil {
					return err
				}
				show := &pulling{out: s.err, terminal: isTerminal(s.err), now: time.Now, total: m.Bytes()}
				err = at.Verify(ctx, m, show.verifying)
				show.clear()
			}
			if err != nil {
				return storeError(err)
			}
			fmt.Fprintf(s.out, "%s: %d files, %s, every byte as published\n", m.ID, len(m.Files), gigabytes(m.Bytes()))
			return nil
		},
	}
	flags.add(cmd)
	return cmd
}
