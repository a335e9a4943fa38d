package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"pond/app/settings"
	"pond/inference/cache"
)

func newCache(s streams) *cobra.Command {
	var empty bool
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "Say what is kept of conversations on the disk, or clear it",
		Long: `Says where Pond keeps conversations on the disk, how many places in them it can go back to, and how many bytes they take. They spare reading a
conversation again after a restart. What was said can be told from them; they are this user's alone to read, and --clear removes them. The setting
conversations_gb bounds them, and with 0 none are kept.

Exit codes: 2 a flag is wrong, 10 the folder fails or a running Pond works with it.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			dir := settings.DefaultPaths().Sessions
			if empty {
				freed, err := cache.ClearFolder(dir)
				if freed > 0 || err == nil {
					fmt.Fprintf(s.out, "%s removed from %s\n", gigabytes(freed), dir)
				}
				if errors.As(err, new(*cache.InUseError)) {
					err = fmt.Errorf("%w; quit it first, or clear them in its model window", err)
				}
				return folderError(err)
			}
			use, err := cache.UseOf(dir)
			if err != nil {
				return folderError(err)
			}
			chosen, err := loadSettings()
			if err != nil {
				return err
			}
			limit := "none are kept"
			if chosen.DiskGB > 0 {
				limit = fmt.Sprintf("at most %d GB", chosen.DiskGB)
			} else if use.LenBytes > 0 {
				limit = "switched off: they go at the next start"
			}
			fmt.Fprintf(s.out, "%s in %s: %d places in conversations (%s)\n", gigabytes(use.LenBytes), dir, use.Snapshots, limit)
			return nil
		},
	}
	cmd.Flags().BoolVar(&empty, "clear", false, "remove them")
	return cmd
}

// folderError is the exit code of a folder that cannot be worked with.
func folderError(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitFolder, err}
}
