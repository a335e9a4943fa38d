package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"pond/app"
)

func newLink(s streams) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "link",
		Short: "Make pond a command of the terminal: a link to this program",
		Long: `Links this program, the one inside the app for example, as pond into ~/.local/bin, or into /usr/local/bin where the terminal looks there, not into the first, and you may
write it. It asks nothing and says what it did. A link of an older place is replaced; a pond that is no link of Pond's stays, and is an error.

Exit codes: 1 no folder can be written or something else is there, 2 a flag is wrong.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			executable, err := os.Executable()
			if err != nil {
				return err
			}
			link, err := app.Link(executable, linkFolders(dir))
			if err != nil {
				return err
			}
			fmt.Fprintln(s.out, app.LinkLine(link))
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the folder that takes the link")
	return cmd
}

func newUnlink(s streams) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "unlink",
		Short: "Remove the link that pond link made",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			removed, err := app.Unlink(linkFolders(dir))
			for _, link := range removed {
				fmt.Fprintf(s.out, "removed %s\n", link)
			}
			if err == nil && len(removed) == 0 {
				fmt.Fprintln(s.out, "there is no link of Pond's")
			}
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the folder that has the link")
	return cmd
}

// linkFolders is the folder that was asked for, or Pond's choice.
func linkFolders(dir string) []string {
	if dir != "" {
		return []string{dir}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	return app.LinkFolders(home, app.TerminalPath())
}
