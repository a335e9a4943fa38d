package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// FormatVersion is that of Report in JSON; a change that misleads a reader raises it.
const FormatVersion = 1

// Report is a measurement with everything that a reader needs to judge it.
type Report struct {
	Format    int         `json:"format"`
	Started   time.Time   `json:"started"`
	Took      string      `json:"took"`
	Machine   Host        `json:"machine"`
	Build     Build       `json:"build"`
	Model     string      `json:"model"`
	Command   string      `json:"command"`
	Rounds    int         `json:"rounds"`
	Cooldown  string      `json:"cooldown"`
	LeftOut   []LeftOut   `json:"contexts_left_out,omitempty"`
	Overrides []Objection `json:"overrides,omitempty"` // objections that a flag allowed
	Refused   []Objection `json:"refused,omitempty"`   // objections that no flag allowed: the figures are worth nothing
	Rows      []Row       `json:"rows,omitempty"`
	HTTP      []HTTPRow   `json:"http,omitempty"`
}

// Host is the machine.
type Host struct {
	OS          string `json:"os"` // "macOS 26.1"
	Arch        string `json:"arch"`
	Chip        string `json:"chip"`
	Cores       int    `json:"cores"`
	MemoryBytes uint64 `json:"memory_bytes"`
}

// Build is the program that measured.
type Build struct {
	Line     string `json:"line"` // version, commit, compiler, system
	Revision string `json:"revision"`
	Dirty    bool   `json:"dirty"`
}

// LeftOut is a context that was not measured.
type LeftOut struct {
	Context int    `json:"context"`
	Why     string `json:"why"`
}

// ReadReport reads a report in JSON and refuses other versions.
func ReadReport(text []byte) (Report, error) {
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("report: %w", err)
	}
	if r.Format != FormatVersion {
		return r, fmt.Errorf("report: got format %d, want %d", r.Format, FormatVersion)
	}
	return r, nil
}

// WriteJSON writes the report for programs.
func (r Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// engines lists the names of the rows in order of appearance: those that stand side by side, and this program without one optimisation each.
func (r Report) engines() (peers, without []string) {
	for _, row := range r.Rows {
		list := &peers
		if strings.HasPrefix(row.Engine, Without("")) {
			list = &without
		}
		if !slices.Contains(*list, row.Engine) {
			*list = append(*list, row.Engine)
		}
	}
	return peers, without
}

func (r Report) row(engine string, context int) (Row, bool) {
	i := slices.IndexFunc(r.Rows, func(x Row) bool { return x.Engine == engine && x.Context == context })
	if i < 0 {
		return Row{}, false
	}
	return r.Rows[i], true
}

func (r Report) contexts() (out []int) {
	for _, row := range r.Rows {
		if !slices.Contains(out, row.Context) {
			out = append(out, row.Context)
		}
	}
	slices.Sort(out)
	return out
}

// WriteMarkdown writes the report for people.
func (r Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s, %s\n\n", r.Model, r.Started.UTC().Format("2006-01-02 15:04 UTC"))
	if len(r.Refused) > 0 {
		b.WriteString("**Refused: these figures are worth nothing.**\n\n")
		objections(&b, r.Refused)
	}
	memory := "memory unknown"
	if r.Machine.MemoryBytes > 0 {
		memory = fmt.Sprintf("%.0f GiB", float64(r.Machine.MemoryBytes)/(1<<30))
	}
	fmt.Fprintf(&b, "| | |\n| --- | --- |\n| machine | %s, %d cores, %s |\n| system | %s, %s |\n| build | %s |\n| command | `%s` |\n", orUnknown(r.Machine.Chip), r.Machine.Cores, memory, orUnknown(r.Machine.OS), r.Machine.Arch, r.Build.Line, r.Command)
	peers, _ := r.engines()
	for _, e := range peers {
		i := slices.IndexFunc(r.Rows, func(x Row) bool { return x.Engine == e })
		fmt.Fprintf(&b, "| %s | %s |\n", e, describe(r.Rows[i]))
	}
	if len(r.Rows) > 0 {
		fmt.Fprintf(&b, "| rounds | %d, the order reversed in every other; %s rest before each arm, four times that from 65,536 tokens on |\n", r.Rounds, r.Cooldown)
	}
	fmt.Fprintf(&b, "| took | %s |\n\n", r.Took)
	if len(r.Overrides) > 0 {
		b.WriteString("Allowed by a flag, so judge for yourself:\n\n")
		objections(&b, r.Overrides)
	}
	r.engineTable(&b)
	r.ablationTable(&b)
	r.httpTable(&b)
	if len(r.LeftOut) > 0 {
		b.WriteString("Not measured:\n\n")
		for _, l := range r.LeftOut {
			fmt.Fprintf(&b, "- %d tokens: %s\n", l.Context, l.Why)
		}
	}
	_, err := io.WriteString(w, strings.TrimRight(b.String(), "\n")+"\n")
	return err
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

func describe(r Row) string {
	words := []string{r.Executor}
	var names []string
	for name := range r.Versions {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		words = append(words, name+" "+r.Versions[name])
	}
	switch {
	case len(r.Switches) > 0:
		words = append(words, "switched off: "+strings.Join(r.Switches, ", "))
	case r.Engine == PondEngine:
		words = append(words, "nothing switched off")
	}
	return strings.Join(words, "; ")
}

// PondEngine is this program's name in reports.
const PondEngine = "pond"

// Without is the name of this program with an optimisation switched off.
func Without(optimisation string) string { return PondEngine + " without " + optimisation }

func objections(b *strings.Builder, os []Objection) {
	for _, o := range os {
		times := ""
		if o.Times > 1 {
			times = fmt.Sprintf(" (and %d times more)", o.Times-1)
		}
		fmt.Fprintf(b, "- %s: %s%s\n", o.Reason, o.Detail, times)
	}
	b.WriteString("\n")
}

// engineTable has a line a context: decode and prefill of every engine, and the ratio of the first to each other one.
func (r Report) engineTable(b *strings.Builder) {
	engines, _ := r.engines()
	if len(engines) == 0 {
		return
	}
	b.WriteString("Tokens a second, median of the rounds.")
	if len(engines) > 1 {
		b.WriteString(" Ratios are " + engines[0] + " over the other.")
	}
	b.WriteString("\n\n| context |")
	rule := "\n| ---: |"
	for _, what := range []string{"decode", "prefill"} {
		for i, e := range engines {
			fmt.Fprintf(b, " %s %s |", e, what)
			rule += " ---: |"
			if i > 0 {
				b.WriteString(" ratio |")
				rule += " ---: |"
			}
		}
	}
	b.WriteString(" drift |" + rule + " ---: |\n")
	for _, c := range r.contexts() {
		fmt.Fprintf(b, "| %d |", c)
		first, _ := r.row(engines[0], c)
		worst := 0.0
		for _, rate := range []func(Row) float64{func(x Row) float64 { return x.Decode }, func(x Row) float64 { return x.Prefill }} {
			for i, e := range engines {
				x, ok := r.row(e, c)
				worst = max(worst, x.Drift)
				cells := " - |"
				if ok {
					cells = fmt.Sprintf(" %.1f |", rate(x))
				}
				if i > 0 && ok {
					cells += fmt.Sprintf(" %.3f |", rate(first)/rate(x))
				} else if i > 0 {
					cells += " - |"
				}
				b.WriteString(cells)
			}
		}
		fmt.Fprintf(b, " %.2f %% |\n", 100*worst)
	}
	b.WriteString("\nDigests of the tokens, equal in all rounds: ")
	var words []string
	for _, x := range r.Rows {
		if slices.Contains(engines, x.Engine) {
			words = append(words, fmt.Sprintf("%s %d `%s`", x.Engine, x.Context, x.Digest))
		}
	}
	b.WriteString(strings.Join(words, ", ") + ".\n\n")
}

// ablationTable has a line for each optimisation at each context: what is left without it, and whether there was something to switch off.
func (r Report) ablationTable(b *strings.Builder) {
	_, without := r.engines()
	if len(without) == 0 {
		return
	}
	b.WriteString("Without one optimisation each. Parts are of pond's figures: 0.9 says that it is worth a tenth.\n\n" +
		"| without | context | decode | part | prefill | part | drift | tokens | |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- |\n")
	for _, c := range r.contexts() {
		whole, _ := r.row(PondEngine, c)
		for _, e := range without {
			x, ok := r.row(e, c)
			if !ok {
				continue
			}
			tokens, note := "the same", ""
			if x.Digest != whole.Digest {
				tokens = "others"
			}
			if len(x.Switches) == 0 {
				note = "nothing was there to switch off: the difference is noise"
			}
			fmt.Fprintf(b, "| %s | %d | %.1f | %.3f | %.1f | %.3f | %.2f %% | %s | %s |\n", strings.TrimPrefix(e, Without("")), c, x.Decode, x.Decode/whole.Decode, x.Prefill, x.Prefill/whole.Prefill,
				100*x.Drift, tokens, note)
		}
	}
	b.WriteString("\n")
}
