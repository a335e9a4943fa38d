// Command gpubench measures the Metal kernels at the real model's shape on an NVIDIA GPU, through the same plans, package gpu and binding that a Mac runs:
//
//	POND_STANDIN_BACKEND=cuda gpubench [-contexts 256,4096,32768,131072] [-prefill 512,2048,8192,32768] [-together 2,4] [-kernels] [-tensors] [-layers 40]
//
// Weights are made up, on the GPU, in the published form and size; keys and values of the contexts too. It prints tables in Markdown. With -prepare
// it compiles all that a run needs and ends: that takes no GPU. With -once it runs the dispatches of one token one by one and lists them, for a profiler.
// With -planted race it runs a kernel with that mistake, for compute-sanitizer to see. run.sh is the whole measurement, with tests, the sanitizer,
// instruction counts and a peer.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"pond/inference/ablate"
	"pond/inference/qwen36"
	"pond/metal/kernels"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "gpubench:", err)
		os.Exit(1)
	}
}

type options struct {
	layers             int
	contexts, prefills []int
	together           []int // sequences a step
	tokens, warm       int
	chunk, rounds      int
	kernels, once      bool
	prepare, unchecked bool
	tensors            bool
	source, profile    string
	plans              qwen36.Options
	planted            string
	roles              []string
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("gpubench", flag.ContinueOnError)
	f.IntVar(&o.layers, "layers", 40, "layers of the model; the published one has 40")
	contexts := f.String("contexts", "256,4096,32768,131072", "keys in the context while decoding; none: 0")
	prefills := f.String("prefill", "512,2048,8192,32768", "lengths of prompts; none: 0")
	together := f.String("together", "2,4", "sequences in one step of decoding; none: 0")
	f.IntVar(&o.tokens, "tokens", 64, "tokens to time at each context")
	f.IntVar(&o.warm, "warm", 8, "tokens before those that are timed")
	f.IntVar(&o.rounds, "rounds", 4, "times that a prompt is taken in, of which the first is not timed")
	f.IntVar(&o.chunk, "chunk", 2048, "tokens of a chunk of prefill")
	f.BoolVar(&o.kernels, "kernels", false, "measure each kernel of decode and prefill by itself")
	f.BoolVar(&o.once, "once", false, "run each dispatch of a token once, one by one, and list them")
	f.StringVar(&o.planted, "planted", "", "run this kernel of planted.metal and end: race, overrun, barrier, nothing")
	f.BoolVar(&o.unchecked, "unchecked", false, "do not look at results: for a rehearsal with a driver that computes nothing")
	f.StringVar(&o.source, "source", "", "Metal text to use instead of the kernels' own, to compare variants")
	f.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of decode there")
	ablated := f.String("ablate", "", "optimisations to switch off, with commas: those of plans and launches, as pond bench --ablate names them")
	f.BoolVar(&o.tensors, "tensors", false, "play a GPU with tensor units on macOS 26: prefill by tensor operations")
	f.BoolVar(&o.prepare, "prepare", false, "compile, and end")
	roles := f.String("roles", "", "what -kernels measures: roles of dispatches, with commas, as its tables name them; none: all")
	if err = f.Parse(args); err != nil {
		return o, err
	}
	if *roles != "" {
		o.roles = strings.Split(*roles, ",")
	}
	if o.contexts, err = numbers(*contexts); err != nil {
		return o, err
	}
	if o.together, err = numbers(*together); err != nil {
		return o, err
	}
	if o.prefills, err = numbers(*prefills); err != nil {
		return o, err
	}
	if o.rounds < 2 {
		return o, fmt.Errorf("got %d rounds, want 2 or more", o.rounds)
	}
	o.plans.GPU = true
	if o.plans.Ablate, err = ablate.Parse(*ablated); err != nil {
		return o, err
	}
	if names := o.plans.OnHost(); len(names) > 0 {
		return o, fmt.Errorf("got %s switched off, which leaves %v to the host: want switches of plans and launches", o.plans.Ablate, names)
	}
	return o, nil
}

// rows are the positions of the longest context that is measured.
func (o options) rows() int {
	rows := 512
	for _, n := range o.contexts {
		rows = max(rows, n+o.tokens+2*o.warm)
	}
	for _, n := range o.prefills {
		rows = max(rows, n)
	}
	if len(o.together) > 0 {
		rows = max(rows, togetherKeys+o.tokens+2*o.warm)
	}
	return rows
}

// numbers reads a list with commas; "0" is none.
func numbers(s string) (out []int, err error) {
	if s == "0" {
		return nil, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("got %q, want numbers with commas", s)
		}
		out = append(out, n)
	}
	return out, nil
}

// text is the kernels' Metal text.
func (o options) text() (string, error) {
	if o.source == "" {
		return kernels.Source(), nil
	}
	b, err := os.ReadFile(o.source)
	return string(b), err
}

func run(args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.prepare {
		return prepare(o, out)
	}
	if o.planted != "" {
		return runPlanted(o.planted, out)
	}
	b, err := open(o, out)
	if err != nil {
		return err
	}
	defer b.close()
	if o.once {
		return b.listOnce()
	}
	if err := b.copyRate(); err != nil {
		return err
	}
	if err := b.decode(); err != nil {
		return err
	}
	if err := b.decodeTogether(); err != nil {
		return err
	}
	if err := b.prefill(); err != nil {
		return err
	}
	if !o.kernels {
		return nil
	}
	return b.kernelTables()
}
