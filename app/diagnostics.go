package app

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"pond/app/settings"
)

// Rules of the diagnostics, which people paste where everybody reads them:
//
//   - Nothing that was said to the model or by it: no chat is read, and the log holds none.
//   - No key, no system prompt, no names of other machines: only whether there are any.
//   - No user's name: home folders become ~, and the name of the machine and of other users in paths a dash.

// diagnosticLines is how much of the log goes along.
const diagnosticLines = 200

// secret settings are told as "set" or not at all.
var secret = map[string]bool{"api_key": true, "system_prompt": true, "allowed_hosts": true, "allowed_origins": true, "address": true}

// CopyDiagnostics is what helps others to help: the build, the machine, the state, the settings that differ from the defaults and the last lines of the log, with
// private text left out.
func (p *Pond) CopyDiagnostics() string {
	s, chosen := p.State(), p.Settings()
	var b strings.Builder
	row := func(key, format string, args ...any) { fmt.Fprintf(&b, "%-12s%s\n", key, fmt.Sprintf(format, args...)) }
	row("program", "%s", Build())
	m := ThisMachine()
	row("system", "%s, %s/%s", known(m.OSVersion), m.OS, m.Arch)
	row("processor", "%s, %d threads", known(m.CPU), m.Threads)
	row("memory", "%s", memoryLine(m.Memory))
	row("state", "%s: %s", s.Phase, s.Line())
	row("model", "%s, ready: %t, %s", s.Model, s.Ready, s.Disk.Line)
	if s.Executor != "" {
		row("executor", "%s, context of %s", s.Executor, Tokens(s.ContextTokens))
	}
	if s.Verdict.Sentence != "" {
		row("verdict", "%s", s.Verdict.Sentence)
	}
	if s.Job.Trouble != "" {
		row("trouble", "%s", s.Job.Trouble)
	}
	standard := settings.Default()
	for _, f := range settings.Fields() {
		text := f.Text(chosen)
		switch {
		case text == f.Text(standard):
		case secret[f.Key]:
			row("setting", "%s is set", f.Key)
		default:
			row("setting", "%s = %s", f.Key, text)
		}
	}
	lines, _, err := p.LogTail(diagnosticLines)
	if err != nil {
		row("log", "%v", err)
	}
	for _, l := range lines {
		row("log", "%s", l)
	}
	return p.redactor(chosen).clean(b.String())
}

// redactor knows what is private on this machine.
type redactor struct {
	home, host, user string
	key              string
}

func (p *Pond) redactor(s settings.Settings) redactor {
	r := redactor{key: s.Key}
	// What cannot be told is not there to be left out; the patterns below hold all the same.
	r.home, _ = os.UserHomeDir()
	r.host, _ = os.Hostname()
	r.user = os.Getenv("USER")
	return r
}

// homes are the folders in which systems keep their users' homes.
var homes = regexp.MustCompile(`(/Users/|/home/|/var/mobile/|/media/|/run/media/|/Volumes/)[^/\s"':,;)]+`)

func (r redactor) clean(text string) string {
	if r.key != "" {
		text = strings.ReplaceAll(text, r.key, "[key]")
	}
	if len(r.home) > 1 {
		text = strings.ReplaceAll(text, r.home, "~")
	}
	text = homes.ReplaceAllString(text, "$1-")
	for _, name := range []string{r.host, r.user} {
		if len(name) > 2 && name != "root" && name != "localhost" {
			text = regexp.MustCompile(`\b`+regexp.QuoteMeta(name)+`\b`).ReplaceAllString(text, "-")
		}
	}
	return text
}
