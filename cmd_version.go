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
			_, err := fmt.Fprintln(s.out, buildLine())
			return err
		},
	}
}

// buildLine says which build this is.
func buildLine() string {
	window := "with its window"
	if !hasWindow {
		window = "without its window"
	}
	return fmt.Sprintf("%s, %s", app.Build(), window)
}
