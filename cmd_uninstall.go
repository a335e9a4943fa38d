package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"pond/app"
	"pond/app/settings"
)

func newUninstall(s streams) *cobra.Command {
	var everything, yes bool
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Take back what Pond put outside its own folders; with --everything, remove those too",
		Long: `Removes the link of pond link, switches the start at login off, removes launchd's agent of pond serve, and lists what is yours and stays: models, chats,
settings, logs. --everything removes those as well, after asking. What is left to do then is to move the app to the Trash, or to delete the program.

Exit codes: 1 something could not be removed, not confirmed, or Pond is open, 2 a flag is wrong or nobody can be asked (see --yes).`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			paths := settings.DefaultPaths()
			kept := app.Remains(paths)
			if everything {
				if err := confirmRemoval(s, kept, yes); err != nil {
					return err
				}
			}
			if _, err := os.Stat(paths.Logs); err == nil { // else it never ran
				instance, err := app.Claim(paths.Logs, func() {})
				if errors.Is(err, app.ErrShown) {
					return errors.New("pond is open; quit it first")
				}
				if err != nil {
					return err
				}
				defer instance.Close()
			}
			system, _ := app.ThisSystem(paths) // what fails there is not the login item
			done, err := app.Uninstall(paths, system, linkFolders(""))
			for _, line := range done {
				fmt.Fprintln(s.out, line)
			}
			if err != nil {
				return fmt.Errorf("uninstall: %w", err)
			}
			if everything {
				if err := app.RemoveRemains(kept); err != nil {
					return err
				}
			}
			for _, k := range kept {
				if everything {
					fmt.Fprintf(s.out, "removed %s (%s)\n", k.Path, gigabytes(k.Bytes))
				} else {
					fmt.Fprintf(s.out, "yours, and it stays: %s (%s)\n", k.Path, gigabytes(k.Bytes))
				}
			}
			fmt.Fprintln(s.out, "what is left is the app: move it to the Trash, or delete the program")
			return nil
		},
	}
	cmd.Flags().BoolVar(&everything, "everything", false, "remove models, chats, settings and logs as well")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// confirmRemoval asks before everything of the user's goes.
func confirmRemoval(s streams, kept []app.Kept, yes bool) error {
	if yes || len(kept) == 0 {
		return nil
	}
	if !isTerminal(s.in) {
		return usageError("nobody can be asked whether to remove models, chats and settings; --yes removes without asking")
	}
	for _, k := range kept {
		fmt.Fprintf(s.out, "%s (%s)\n", k.Path, gigabytes(k.Bytes))
	}
	fmt.Fprint(s.out, "remove all of this? [y/N] ")
	answer, _ := bufio.NewReader(s.in).ReadString('\n') // an end of input is a no
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return errors.New("nothing was removed")
	}
	return nil
}
