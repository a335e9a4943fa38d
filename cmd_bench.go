package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pond/app"
	"pond/inference"
	"pond/inference/ablate"
	"pond/inference/bench"
	"pond/inference/memgate"
)

// benchFlags are those of `pond bench` beside the engine's.
type benchFlags struct {
	engine    engineFlags
	contexts  []int
	rounds    int
	intervals int
	cooldown  time.Duration
	against   string
	ablate    string
	python    string
	out       string
	arm       string

	http      []string
	httpModel string
	httpKey   string
	chat      bool
	clients   []int
	requests  int
	words     int
	maxTokens int
	keepAway  []string

	allow map[bench.Reason]*bool
}

func newBench(s streams) *cobra.Command {
	f := benchFlags{allow: map[bench.Reason]*bool{}}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure speed by a fixed contract and write a report",
		Long: `Measures how fast a prompt is taken in and how fast an answer is given, at ten lengths of context, by the contract in inference/bench/CONTRACT.md:
each figure in a process of its own, after the same work was done once without a clock, in at least two rounds whose order is reversed. It refuses
where the figures would be worth nothing: on battery, with a thermal warning, beside other programs at work, when the rounds lie more than 3 % apart,
or when the build is of no commit. A flag --allow-... overrides each, and the report names it.

Contexts that the model or the memory does not hold are left out, and the report says so. With --against mlx-lm it measures mlx-lm in the same schedule
(a Mac with mlx-lm in --python). With --http it measures servers instead, any that speak OpenAI's API, several taking turns:

  pond bench --http pond=http://127.0.0.1:11535/v1 --http other=http://127.0.0.1:8080/v1

The report is printed, and written as Markdown and JSON with plots into --out.

Exit codes: 1 refused, or a measurement failed; 2 a flag is wrong, 3 the model is not installed, 4 the model cannot be opened, 6 the executor does not
run here, 7 there is not enough memory.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			if f.arm != "" {
				return f.runArm(ctx, s)
			}
			if err := f.check(); err != nil {
				return err
			}
			if len(f.http) > 0 {
				return f.runHTTP(ctx, s)
			}
			return f.runEngines(ctx, s)
		},
	}
	flags := cmd.Flags()
	modelFlag(cmd, &f.engine.model)
	flags.StringVar(&f.engine.executor, "executor", string(inference.Auto), "what computes: auto, host, host-exact, host-int8, metal, standin")
	flags.BoolVar(&f.engine.anyway, "anyway", false, "load although memory is short, where that can only be slow")
	flags.IntSliceVar(&f.contexts, "contexts", bench.Contexts(), "lengths of prompts, in tokens")
	flags.IntVar(&f.rounds, "rounds", bench.Rounds, "rounds, at least two")
	flags.IntVar(&f.intervals, "intervals", bench.Intervals, "intervals between tokens that each figure of decode is made of")
	flags.DurationVar(&f.cooldown, "cooldown", 10*time.Second, "rest before each measurement; four times that from 65,536 tokens on")
	flags.StringVar(&f.against, "against", "", "measure this engine in the same schedule: mlx-lm")
	flags.StringVar(&f.ablate, "ablate", "", "measure each of these optimisations switched off as well, in the same schedule: names with commas, or all")
	flags.StringVar(&f.python, "python", "python3", "the Python that has mlx-lm, for --against")
	flags.StringVar(&f.out, "out", ".", "folder for the report; it must exist")
	flags.StringArrayVar(&f.http, "http", nil, "measure a server: NAME=URL or URL, such as pond=http://127.0.0.1:11535/v1 (repeat for several)")
	flags.StringVar(&f.httpModel, "http-model", "", "model to ask the servers for (default: the first that each lists)")
	flags.StringVar(&f.httpKey, "http-key", os.Getenv(keyVariable), "API key for the servers (default: "+keyVariable+" from the environment)")
	flags.BoolVar(&f.chat, "chat", false, "with --http: ask /chat/completions instead of /completions")
	flags.IntSliceVar(&f.clients, "clients", []int{1, 4, 16}, "with --http: how many ask at once")
	flags.IntVar(&f.requests, "requests", 2, "with --http: requests of each client in each round, one after the other")
	flags.IntVar(&f.words, "prompt-words", 128, "with --http: words of each prompt, about as many tokens")
	flags.IntVar(&f.maxTokens, "max-tokens", 65, "with --http: longest answer")
	flags.StringSliceVar(&f.keepAway, "keep-away", nil, "with --http: ids of tokens that end an answer, kept away by logit_bias so that all answers are as long")
	for _, r := range bench.Reasons() {
		f.allow[r] = flags.Bool("allow-"+string(r), false, allowWords[r])
	}
	flags.StringVar(&f.arm, "arm", "", "")
	if err := flags.MarkHidden("arm"); err != nil {
		panic("pond: internal error: " + err.Error())
	}
	return cmd
}

var allowWords = map[bench.Reason]string{
	bench.Battery: "measure on battery or in low power mode all the same",
	bench.Thermal: "measure while the system slows a hot machine all the same",
	bench.Load:    "measure beside other programs at work all the same",
	bench.Drift:   "accept rounds that lie more than 3 % apart",
	bench.Dirty:   "measure a build that is of no commit",
}

func (f *benchFlags) check() error {
	switch {
	case f.rounds < bench.Rounds:
		return usageError("--rounds: got %d, want at least %d", f.rounds, bench.Rounds)
	case f.intervals < 1 || f.requests < 1 || f.words < 1 || f.maxTokens < 1 || f.cooldown < 0:
		return usageError("got --intervals %d, --requests %d, --prompt-words %d, --max-tokens %d, --cooldown %s; want at least 1 of each, and no negative rest", f.intervals, f.requests, f.words, f.maxTokens, f.cooldown)
	case f.against != "" && f.against != bench.MLXEngine:
		return usageError("--against: got %q, want %s", f.against, bench.MLXEngine)
	case f.against != "" && len(f.http) > 0:
		return usageError("got --against and --http, want one of them")
	}
	for flag, values := range map[string][]int{"--contexts": f.contexts, "--clients": f.clients} {
		if len(values) == 0 || slices.Min(values) < 1 {
			return usageError("%s: got %v, want numbers from 1", flag, values)
		}
	}
	if st, err := os.Stat(f.out); err != nil || !st.IsDir() {
		return usageError("--out: got %q, want a folder that exists", f.out)
	}
	return nil
}

// allowed lists the reasons that flags override.
func (f *benchFlags) allowed() (out []bench.Reason) {
	for _, r := range bench.Reasons() {
		if *f.allow[r] {
			out = append(out, r)
		}
	}
	return out
}

// runEngines measures Pond, and mlx-lm where asked for.
func (f *benchFlags) runEngines(ctx context.Context, s streams) error {
	config, err := f.engine.config(s)
	if err != nil {
		return err
	}
	names := f.ablate
	if names == "all" {
		var each []string
		for _, e := range ablate.Table() {
			each = append(each, string(e.Switch))
		}
		names = strings.Join(each, ",")
	}
	off, err := switches(names)
	if err != nil {
		return err
	}
	vocab, err := openTokenizer(s, f.engine.model)
	if err != nil {
		return err
	}
	if f.against != "" && config.Model.Dir == "" {
		return usageError("--against %s: got the built-in model, want --model with a folder, which it reads", f.against)
	}
	report := f.report(config.Model.ID)
	var contexts []int
	for _, c := range f.contexts {
		why, err := f.holds(config, c+f.intervals)
		if err != nil {
			return err
		}
		if why != "" {
			report.LeftOut = append(report.LeftOut, bench.LeftOut{Context: c, Why: why})
			fmt.Fprintf(s.err, "%d tokens are left out: %s\n", c, why)
		} else {
			contexts = append(contexts, c)
		}
	}
	if len(contexts) == 0 {
		return &exitError{exitMemory, errors.New("bench: no context fits")}
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	start := map[string]func(bench.Arm) (*exec.Cmd, error){bench.PondEngine: f.ownArm(program, ""), bench.MLXEngine: bench.MLX(f.python, config.Model.Dir)}
	engines := []string{bench.PondEngine}
	if f.against != "" {
		engines = append(engines, f.against)
	}
	for _, w := range off.Asked() {
		name := bench.Without(string(w))
		engines = append(engines, name)
		start[name] = f.ownArm(program, w)
	}
	report.Rounds, report.Cooldown = f.rounds, f.cooldown.String()
	rows, overrides, err := bench.Run(ctx, bench.Options{
		Engines: engines, Contexts: contexts, Rounds: f.rounds, Intervals: f.intervals, Vocab: vocab.Vocab(), Cooldown: f.cooldown, Allow: f.allowed(), Dirty: ofNoCommit(app.BuiltFrom()),
		Launch: func(ctx context.Context, a bench.Arm) (bench.Sample, error) {
			return bench.Child(ctx, a, start[a.Engine])
		},
		Machine: bench.Machine, Now: time.Now, Tell: func(line string) { fmt.Fprintln(s.err, line) },
	})
	report.Rows, report.Overrides = rows, overrides
	return f.finish(s, report, err)
}

// holds says why a context is not measured; "" when it fits.
func (f *benchFlags) holds(config app.Config, tokens int) (string, error) {
	model := inference.FromDir(config.Model.Dir)
	if config.Model.Files != nil {
		model = inference.FromFS(config.Model.Files)
	}
	need, err := inference.MemoryNeed(inference.Options{Model: model, Executor: config.Executor, ContextTokens: tokens})
	if err != nil {
		return "", &exitError{exitBadModel, fmt.Errorf("model %s: %w", config.Model.ID, err)}
	}
	if tokens > need.MaxTokens {
		return fmt.Sprintf("the model was made for %d", need.MaxTokens), nil
	}
	if r := memgate.Check(memgate.Read(), need); !r.Allows() || r.Tokens > 0 && r.Tokens < tokens {
		if f.engine.anyway && r.Override == memgate.Slow && tokens <= r.OverrideTokens {
			return "", nil
		}
		return r.Sentence(), nil
	}
	return "", nil
}

// ownArm starts this program again for one arm, with an optimisation switched off or, where off is empty, none.
func (f *benchFlags) ownArm(program string, off ablate.Switch) func(bench.Arm) (*exec.Cmd, error) {
	return func(a bench.Arm) (*exec.Cmd, error) {
		arm, err := json.Marshal(a)
		if err != nil {
			return nil, err
		}
		args := []string{"bench", "--arm", string(arm), "--model", f.engine.model, "--executor", f.engine.executor, "--ablate", string(off)}
		if f.engine.anyway {
			args = append(args, "--anyway")
		}
		return exec.Command(program, args...), nil
	}
}

// runArm is the fresh process: it measures one arm and prints the sample.
func (f *benchFlags) runArm(ctx context.Context, s streams) error {
	var a bench.Arm
	if err := json.Unmarshal([]byte(f.arm), &a); err != nil || a.Context < 1 || a.Intervals < 1 || a.Vocab < 1 {
		return usageError("--arm: got %q, want an arm as JSON", f.arm)
	}
	f.engine.context, f.engine.ablate = a.Context+a.Intervals, f.ablate
	config, err := f.engine.config(s)
	if err != nil {
		return err
	}
	begun := time.Now()
	e, err := config.Open(ctx)
	if err != nil {
		return withCode(err)
	}
	defer e.Close()
	sample := bench.Sample{Executor: e.Info().Executor, LoadS: time.Since(begun).Seconds()}
	m, err := e.Measure(ctx, bench.Prompt(a.Context, a.Vocab), a.Intervals)
	if err != nil {
		return err
	}
	sample.PrefillS, sample.Digest = m.Prefill.Seconds(), bench.Digest(m.Tokens)
	for _, w := range config.Ablate.Acted() {
		sample.Switches = append(sample.Switches, string(w))
	}
	for _, d := range m.Intervals {
		sample.Intervals = append(sample.Intervals, d.Seconds())
	}
	return json.NewEncoder(s.out).Encode(sample)
}

// runHTTP measures servers.
func (f *benchFlags) runHTTP(ctx context.Context, s streams) error {
	o := bench.HTTPOptions{
		Clients: f.clients, Requests: f.requests, Rounds: f.rounds, Prompt: f.words, MaxTokens: f.maxTokens, Chat: f.chat, Allow: f.allowed(), Dirty: ofNoCommit(app.BuiltFrom()),
		Machine: serverMachine(f.http), Now: time.Now, Tell: func(line string) { fmt.Fprintln(s.err, line) }, Bias: map[string]int{},
	}
	for _, id := range f.keepAway {
		if n, err := strconv.Atoi(id); err != nil || n < 0 {
			return usageError("--keep-away: got %q, want ids of tokens", id)
		}
		o.Bias[id] = -100
	}
	for _, text := range f.http {
		name, url, ok := strings.Cut(text, "=")
		if !ok || strings.Contains(name, "/") {
			name, url = text, text
		}
		if !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://") {
			return usageError("--http: got %q, want URL or NAME=URL, such as pond=http://127.0.0.1:11535/v1", text)
		}
		if slices.ContainsFunc(o.Servers, func(x bench.Server) bool { return x.Name == name }) {
			return usageError("--http: got the name %q twice, want one for each server", name)
		}
		o.Servers = append(o.Servers, bench.Server{Name: name, URL: url, Model: f.httpModel, Key: f.httpKey})
	}
	report := f.report("")
	rows, overrides, err := bench.RunHTTP(ctx, o)
	report.Model = "servers"
	if len(rows) > 0 {
		report.Model = rows[0].Model
	}
	report.HTTP, report.Overrides, report.Rounds = rows, overrides, f.rounds
	return f.finish(s, report, err)
}

// serverMachine looks at battery and heat alone where a server runs on this machine: its own work would count as foreign load.
func serverMachine(servers []string) func(context.Context) []bench.Objection {
	local := slices.ContainsFunc(servers, func(u string) bool {
		return strings.Contains(u, "//127.") || strings.Contains(u, "//localhost") || strings.Contains(u, "//[::1]")
	})
	return func(ctx context.Context) []bench.Objection {
		if local {
			return bench.Power(ctx)
		}
		return bench.Machine(ctx)
	}
}

func (f *benchFlags) report(model string) bench.Report {
	m := app.ThisMachine()
	source := app.BuiltFrom()
	return bench.Report{
		Format: bench.FormatVersion, Started: time.Now(), Model: model,
		Machine: bench.Host{OS: m.OSVersion, Arch: m.Arch, Chip: m.CPU, Cores: m.Threads, MemoryBytes: m.Memory.Total.Bytes},
		Build:   bench.Build{Line: app.Build(), Revision: source.Commit, Dirty: ofNoCommit(source) != ""},
		Command: "pond " + strings.Join(withoutKeys(os.Args[1:]), " "),
	}
}

// withoutKeys is a command line that may be shown to others.
func withoutKeys(args []string) []string {
	out := slices.Clone(args)
	for i, a := range out {
		if strings.HasPrefix(a, "--http-key=") {
			out[i] = "--http-key=..."
		} else if i > 0 && out[i-1] == "--http-key" {
			out[i] = "..."
		}
	}
	return out
}

// finish prints and writes the report. Figures that were refused are written too, under a name that says so: a long run is not thrown away.
func (f *benchFlags) finish(s streams, r bench.Report, failed error) error {
	var refused *bench.RefusedError
	if failed != nil && (!errors.As(failed, &refused) || len(r.Rows)+len(r.HTTP) == 0) {
		return fmt.Errorf("bench: %w", failed)
	}
	r.Took = time.Since(r.Started).Round(time.Second).String()
	name := "pond-bench-" + r.Started.UTC().Format("20060102-150405")
	if refused != nil {
		r.Refused, name = refused.Objections, name+"-refused"
	}
	base := filepath.Join(f.out, name)
	if err := r.WriteMarkdown(s.out); err != nil {
		return err
	}
	for _, file := range []struct {
		end   string
		write func(*os.File) error
	}{{".json", func(w *os.File) error { return r.WriteJSON(w) }}, {".md", func(w *os.File) error { return r.WriteMarkdown(w) }}} {
		w, err := os.Create(base + file.end)
		if err != nil {
			return err
		}
		if err := errors.Join(file.write(w), w.Close()); err != nil {
			return err
		}
	}
	plots, err := r.Plots(base)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.err, "written: %s.md, %s.json and %d plots\n", base, base, len(plots))
	if failed != nil {
		return fmt.Errorf("bench: %w", failed)
	}
	return nil
}

// ofNoCommit says in words why a build's figures belong to no commit; "" when they belong to one.
func ofNoCommit(s app.Source) string {
	switch {
	case s.Commit == "":
		return "the build names no commit"
	case s.Changed:
		return "the build is of sources changed since commit " + s.Commit
	}
	return ""
}
