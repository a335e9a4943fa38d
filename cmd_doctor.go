package main

import (
	"github.com/spf13/cobra"

	"pond/app"
)

func newDoctor(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine can run and why",
		Long: `Looks at the machine, the executors of this build and the installed models, and says for the full and the demo model whether memory is enough
now, up to which context, and what the need is made of. It loads nothing and changes nothing.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			m := app.ThisMachine()
			app.Diagnose(m, app.Executors(m), catalog(s)).Write(s.out)
			return nil
		},
	}
}
