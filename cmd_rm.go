package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"pond/inference/checkpoint/store"
)

func newRemove(s streams) *cobra.Command {
	var flags modelFlags
	var yes bool
	cmd := &cobra.Command{
		Use:   "rm",
		Short: "Remove the model from the disk",
		Long: `Removes the model's files, whole or on the way, and what an interrupted download left, after asking. Files in the folder that are not the model's stay. Of a model that is used in place (pond
adopt) only the links are removed.

Exit codes: 1 not confirmed, 2 a flag is wrong or nobody can be asked (see --yes), 3 the model is not installed, 10 the folder is not there or in use.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			m, err := flags.manifest(s)
			if err != nil {
				return err
			}
			if builtIn(m) {
				return usageError("model %s: got a model that is built into Pond, want one on the disk", m.ID)
			}
			at := flags.store()
			st, err := at.Status(m)
			if err != nil {
				return storeError(err)
			}
			if st.State == store.Absent && !store.Keeps(st.Dir) {
				return &exitError{exitNoModel, fmt.Errorf("model %s: not installed (looked in %s); there is nothing to remove", m.ID, st.Dir)}
			}
			if !yes {
				if !isTerminal(s.in) {
					return usageError("nobody can be asked whether to remove %s; --yes removes without asking", st.Dir)
				}
				fmt.Fprintf(s.out, "remove %s (%s) from %s? [y/N] ", m.ID, gigabytes(st.DiskBytes), st.Dir)
				answer, _ := bufio.NewReader(s.in).ReadString('\n') // an end of input is a no
				if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
					return errors.New("nothing was removed")
				}
			}
			left, err := at.Remove(m)
			if err != nil {
				return storeError(err)
			}
			fmt.Fprintf(s.out, "%s is removed\n", m.ID)
			if len(left) > 0 {
				fmt.Fprintf(s.out, "%s stays with what is not Pond's: %s\n", st.Dir, strings.Join(left, ", "))
			}
			return nil
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}
