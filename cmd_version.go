package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"pond/app"
)

func newVersion(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which build this is",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			window := "with its window"
			if !hasWindow {
				window = "without its window"
			}
			_, err := fmt.Fprintf(s.out, "%s, %s\n", app.Build(), window)
			return err
		},
	}
}
