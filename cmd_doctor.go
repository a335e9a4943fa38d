package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"pond/app"
	"pond/inference"
)

func newDoctor(s streams) *cobra.Command {
	var test bool
	var executor string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine can run and why",
		Long: `Looks at the machine, the executors of this build and the installed models, and says for the full and the demo model whether memory is enough
now, up to which context, and what the need is made of. It loads nothing and changes nothing.

With --self-test it runs every kernel on this machine's device and compares it with its plain reference on the processor, over a small made-up model:
some seconds, a few hundred MB.

Exit codes: 1 a kernel differs (the lines before say which), 2 a flag is wrong, 6 the executor does not run here.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			x, err := inference.ParseExecutor(executor)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			if !test {
				if cmd.Flags().Changed("executor") {
					return usageError("--executor: got it without --self-test, want both")
				}
				m := app.ThisMachine()
				app.Diagnose(m, app.Executors(m), catalog(s)).Write(s.out)
				return nil
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			return selfTest(ctx, s, x)
		},
	}
	cmd.Flags().BoolVar(&test, "self-test", false, "run every kernel on this machine's device against its reference")
	cmd.Flags().StringVar(&executor, "executor", string(inference.Auto), "which device --self-test tries: auto, host, host-exact, host-int8, metal, standin")
	return cmd
}

// selfTest prints a line for each kernel that differs, and one for all.
func selfTest(ctx context.Context, s streams, x inference.Executor) error {
	if err := inference.Available(x); err != nil {
		return &exitError{exitExecutor, fmt.Errorf("executor %s: %w", x, err)}
	}
	report, err := inference.SelfTest(ctx, x)
	if err != nil {
		return fmt.Errorf("self-test: %w", err)
	}
	if report.From != "" {
		fmt.Fprintf(s.out, "kernels loaded from %s\n", report.From)
	}
	differing := report.Differing()
	for _, k := range differing {
		fmt.Fprintf(s.out, "%s differs: %s\n", k.Kernel, k.Failure)
	}
	tried := 0
	for _, k := range report.Kernels {
		if k.Dispatches > 0 {
			tried++
		}
	}
	if len(differing) > 0 {
		return fmt.Errorf("self-test: %d of %d kernels differ on %s", len(differing), tried, report.Device)
	}
	fmt.Fprintf(s.out, "self-test: matches: %d kernels on %s\n", tried, report.Device)
	return nil
}
