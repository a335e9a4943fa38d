package app

import (
	"fmt"
	"io"

	"pond/inference"
)

// ExecutorStatus says whether one way to compute works on this machine, and why.
type ExecutorStatus struct {
	Name      string
	Available bool
	Why       string
}

// Executors says which of the engine's executors this build can run on a machine.
func Executors(m Machine) []ExecutorStatus {
	metal := ExecutorStatus{Name: string(inference.Metal), Why: "this version of Pond has no Metal kernels"}
	if m.OS != "darwin" || m.Arch != "arm64" {
		metal.Why = "it needs a Mac with Apple Silicon"
	}
	return []ExecutorStatus{
		{string(inference.Host), true, fmt.Sprintf("plain Go on %d threads", m.Threads)},
		metal,
		{string(inference.Standin), false, "this version of Pond does not have it"},
	}
}

// Diagnosis is what this machine can run and why: the answer of `pond doctor`.
type Diagnosis struct {
	Build     string
	Machine   Machine
	Executors []ExecutorStatus
	Models    []Model // that can be opened now
	ModelsDir string
}

// Diagnose puts together what was found.
func Diagnose(m Machine, executors []ExecutorStatus, c Catalog) Diagnosis {
	return Diagnosis{Build: Build(), Machine: m, Executors: executors, Models: c.List(), ModelsDir: c.ModelsDir}
}

// Write prints the diagnosis for a person, a fact a line.
func (d Diagnosis) Write(w io.Writer) {
	m := d.Machine
	row := func(key, format string, args ...any) { fmt.Fprintf(w, "%-12s%s\n", key, fmt.Sprintf(format, args...)) }
	row("program", "%s", d.Build)
	row("system", "%s, %s/%s", known(m.OSVersion), m.OS, m.Arch)
	row("processor", "%s, %d threads", known(m.CPU), m.Threads)
	row("memory", "%s available of %s", Bytes(m.MemoryAvailable), Bytes(m.MemoryTotal))
	for _, e := range d.Executors {
		row("executor", "%-9s%s: %s", e.Name, yes(e.Available), e.Why)
	}
	installed := false
	for _, found := range d.Models {
		row("model", "%s (%s)", found.ID, found.Where())
		installed = installed || found.ID == FullModel
	}
	ok, why := m.FullModelVerdict()
	row("full model", "%s: %s", yes(ok), why)
	if !installed {
		row("", "%s is not installed; its folder would be %s", FullModel, d.ModelsDir)
	}
	row("demo model", "yes: every machine runs it")
}

func yes(ok bool) string {
	if ok {
		return "yes"
	}
	return "no"
}
