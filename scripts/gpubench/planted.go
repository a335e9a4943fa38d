package main

import (
	_ "embed"
	"fmt"
	"io"

	"pond/metal/standin"
)

//go:embed planted.metal
var plantedText string

// runPlanted runs a kernel of planted.metal, compiled as the others are: what compute-sanitizer says of it shows that it would see such a mistake.
func runPlanted(name string, out io.Writer) error {
	k, err := standin.Compile(plantedText, standin.CompileOptions{})
	if err != nil {
		return err
	}
	const n = 256
	x, y := k.NewMemory("x", 4*n), k.NewMemory("y", 4*n)
	defer x.Free()
	defer y.Free()
	grid := standin.KernelGrid{Groups: [3]int{2, 1, 1}, Threads: [3]int{n / 2, 1, 1}}
	if _, err := k.Run("planted_"+name, []standin.KernelArg{{Memory: x}, {Memory: y}}, grid, standin.KernelOptions{}); err != nil {
		return fmt.Errorf("planted_%s: %w", name, err)
	}
	fmt.Fprintf(out, "planted_%s ran\n", name)
	return nil
}
