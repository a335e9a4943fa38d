package app

import (
	"fmt"
	"io"

	"pond/inference"
	"pond/inference/memgate"
)

// ExecutorStatus says whether one way to compute works on this machine, and why.
type ExecutorStatus struct {
	Name      string
	Available bool
	Why       string
}

// Executors says which of the engine's executors this build can run on a machine.
func Executors(m Machine) []ExecutorStatus {
	status := func(x inference.Executor, how string) ExecutorStatus {
		if err := inference.Available(x); err != nil {
			return ExecutorStatus{string(x), false, err.Error()}
		}
		return ExecutorStatus{string(x), true, how}
	}
	return []ExecutorStatus{
		status(inference.Host, fmt.Sprintf("%d threads, %s", m.Threads, inference.HostKernels())),
		status(inference.Metal, "the GPU of this Mac; kernels "+inference.Kernels()),
		status(inference.Standin, "Metal on the processor, for tests: slow"),
	}
}

// Diagnosis is what this machine can run and why: the answer of `pond doctor`.
type Diagnosis struct {
	Build     string
	Machine   Machine
	Executors []ExecutorStatus
	Models    []Model // that can be opened now
	NoFull    error   // why the full model cannot be opened; nil when it can
	Full      Fit
	Demo      Fit
}

// Fit says whether the machine can run a model now.
type Fit struct {
	Lacks  string         // what it needs besides memory and the machine does not have
	Gate   memgate.Result // valid when Reason is nil
	Reason error          // why nothing is known
}

// Diagnose puts together what was found.
func Diagnose(m Machine, executors []ExecutorStatus, c Catalog) Diagnosis {
	d := Diagnosis{Build: Build(), Machine: m, Executors: executors, Models: c.List()}
	_, d.NoFull = c.Find(FullModel)
	executor := inference.Host
	for _, e := range executors {
		if e.Name == string(inference.Metal) && e.Available {
			executor = inference.Metal
		}
	}
	d.Full = fit(m, m.lacks())(inference.FullNeed(executor))
	d.Demo = fit(m, "")(inference.MemoryNeed(inference.Options{Model: inference.FromFS(c.Demo)}))
	return d
}

// fit asks the memory gate for the context that the model would be served with.
func fit(m Machine, lacks string) func(memgate.Need, error) Fit {
	return func(n memgate.Need, err error) Fit {
		n.MaxTokens = modest(n, n.MaxTokens)
		return Fit{Lacks: lacks, Gate: memgate.Check(m.Memory, n), Reason: err}
	}
}

// Write prints the diagnosis for a person, a fact a line.
func (d Diagnosis) Write(w io.Writer) {
	m := d.Machine
	row := func(key, format string, args ...any) { fmt.Fprintf(w, "%-12s%s\n", key, fmt.Sprintf(format, args...)) }
	row("program", "%s", d.Build)
	row("system", "%s, %s/%s", known(m.OSVersion), m.OS, m.Arch)
	row("processor", "%s, %d threads", known(m.CPU), m.Threads)
	row("memory", "%s", memoryLine(m.Memory))
	for _, e := range d.Executors {
		row("executor", "%-9s%s: %s", e.Name, yes(e.Available), e.Why)
	}
	for _, found := range d.Models {
		row("model", "%s (%s)", found.ID, found.Where())
	}
	fitRows := func(key string, f Fit) {
		row(key, "%s", f.line())
		if f.Reason == nil {
			for _, l := range f.Gate.Arithmetic() {
				row("", "%9s  %s", memgate.Bytes(l.Bytes), l.Label)
			}
		}
	}
	fitRows("full model", d.Full)
	if d.NoFull != nil {
		row("", "%v", d.NoFull)
	}
	fitRows("demo model", d.Demo)
}

// line is the answer in one line.
func (f Fit) line() string {
	switch {
	case f.Lacks != "":
		return "no: it needs " + f.Lacks
	case f.Reason != nil:
		return "unknown: " + f.Reason.Error()
	case f.Gate.Verdict == memgate.Refuse && f.Gate.Override == memgate.Slow:
		return "no: " + f.Gate.Sentence() + "; " + f.Gate.OverrideSentence() + " (--anyway)"
	case f.Gate.Verdict == memgate.Refuse:
		return "no: " + f.Gate.Sentence()
	case f.Gate.Verdict == memgate.Unknown:
		return "perhaps: " + f.Gate.Sentence()
	}
	return "yes: " + f.Gate.Sentence()
}

// memoryLine is what was read of the memory.
func memoryLine(r memgate.Reading) string {
	if !r.Total.Known {
		return "unknown"
	}
	have := memgate.Check(r, memgate.Need{}).HaveBytes
	text := "unknown available of " + memgate.Bytes(r.Total.Bytes)
	if have.Known {
		text = memgate.Bytes(have.Bytes) + " available of " + memgate.Bytes(r.Total.Bytes)
	}
	if r.SwapUsed.Known && r.SwapUsed.Bytes > 0 {
		text += ", " + memgate.Bytes(r.SwapUsed.Bytes) + " in swap"
	}
	if r.Pressure != memgate.Normal {
		text += ", pressure: " + r.Pressure.String()
	}
	return text
}

func yes(ok bool) string {
	if ok {
		return "yes"
	}
	return "no"
}
