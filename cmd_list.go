package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func newList(s streams) *cobra.Command {
	var flags modelFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the models that Pond knows, and how far each is",
		Long: `Lists the models that Pond knows: whether each is ready, partly downloaded or not installed, its size and its folder. Folders of other models beside them
are listed too; Pond cannot say whether they are whole. Nothing is read but names, sizes and records.

Exit codes: 2 a flag is wrong, 10 the folder is not there.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			at := flags.store()
			row := func(id, state, size, where string) {
				fmt.Fprintf(s.out, "%-20s %-40s %10s  %s\n", id, state, size, where)
			}
			known := map[string]bool{}
			for _, m := range s.known() {
				known[m.ID] = true
				if builtIn(m) {
					row(m.ID, "ready", gigabytes(m.Bytes()), "built in")
					continue
				}
				st, err := at.Status(m)
				if err != nil {
					return storeError(err)
				}
				row(m.ID, st.Line(), gigabytes(m.Bytes()), st.Dir)
			}
			entries, err := os.ReadDir(at.Root)
			if err != nil {
				return nil // Pond's own folder is made by the first pull
			}
			for _, e := range entries {
				if e.IsDir() && !known[e.Name()] {
					row(e.Name(), "not known to Pond", "", at.Dir(e.Name()))
				}
			}
			return nil
		},
	}
	flags.addDir(cmd)
	return cmd
}
