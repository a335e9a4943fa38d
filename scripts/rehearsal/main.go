// Command rehearsal plays the life of the real model's files at full size on this machine, with content made by package
// pond/inference/tinymodel/fullsize: a local server hands out the bytes by offset, a process pulls them and is killed in the middle, another
// takes the pull up, the files are verified, loaded from a cold disk and once more from memory, and the model decodes. It reports times and
// memory and fails where a promise is broken:
//
//   - the second pull asks for at most a chunk a connection again;
//   - every file has the digest of the manifest;
//   - loading and decoding take at most 22 GiB of resident memory, and the second 16 tokens wait for no disk (no major fault).
//
// It needs 25 GB of free disk, else it says so and ends well: nothing was rehearsed. Each part runs in a process of its own, so that its
// memory is its own; main.go is the one that starts them, pull.go and decode.go are what they do. `make rehearsal` starts it.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"pond/inference/checkpoint/disk"
	"pond/inference/tinymodel/fullsize"
)

const (
	needFreeBytes = 25_000_000_000
	residentBytes = 22 << 30
	killAt        = 0.4 // of the bytes
	connections   = 8
	lotTokens     = 16 // decoded twice; the second lot must not fault
	defaultDir    = "build/rehearsal"

	roleServe  = "serve"
	rolePull   = "pull"
	roleVerify = "verify"
	roleDecode = "decode"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "rehearsal:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("rehearsal", flag.ContinueOnError)
	dir := flags.String("dir", defaultDir, "folder for the model, which is removed at the end; 20.4 GB")
	keep := flags.Bool("keep", false, "do not remove the folder")
	small := flags.Bool("small", false, "play it with a model of a megabyte, slowly: proves that the play works, not what it is for")
	role := flags.String("role", "", "what this process does: serve, pull, verify, decode; empty: starts the others")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("got argument %q, want flags alone", flags.Arg(0))
	}
	p := play{dir: *dir, small: *small}
	switch *role {
	case "":
		return p.rehearse(ctx, *keep)
	case roleServe:
		return p.serve(ctx)
	case rolePull:
		return p.pull(ctx)
	case roleVerify:
		return p.verify(ctx)
	case roleDecode:
		return p.decode(ctx)
	}
	return fmt.Errorf("-role: got %q, want %s, %s, %s or %s", *role, roleServe, rolePull, roleVerify, roleDecode)
}

// play is what all parts know.
type play struct {
	dir   string // folder of models
	small bool
}

// made is the model that is played with.
func (p play) made() (*fullsize.Checkpoint, error) {
	if p.small {
		return fullsize.Small()
	}
	return fullsize.Real()
}

// chunkBytes is what a killed pull may cost for each connection.
func (p play) chunkBytes() int64 {
	if p.small {
		return 64 << 10
	}
	return 16 << 20
}

// rehearse is the whole play.
func (p play) rehearse(ctx context.Context, keep bool) (err error) {
	made, err := p.made()
	if err != nil {
		return err
	}
	if _, err := os.Stat(p.dir); err == nil {
		return fmt.Errorf("%s: there is something, want a name for a new folder", p.dir)
	}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	if !keep {
		defer func() { err = errors.Join(err, os.RemoveAll(p.dir)) }()
	}
	free, err := disk.Free(p.dir)
	if err != nil {
		return err
	}
	if free < needFreeBytes && !p.small {
		fmt.Printf("SKIP: nothing was rehearsed: got %.1f GB of free disk in %s, want %.1f GB\n", float64(free)/1e9, p.dir, needFreeBytes/1e9)
		return nil
	}
	fmt.Printf("rehearsal of %.3f GB on %s/%s, %d processors, %.1f GB of disk free\n", float64(made.Bytes())/1e9, runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), float64(free)/1e9)

	server, err := p.startServer(ctx)
	if err != nil {
		return err
	}
	defer server.stop()
	if err := p.pullTwice(ctx, server, made.Bytes()); err != nil {
		return err
	}
	verified, err := timed(func() error { return p.child(ctx, roleVerify, nil, nil) })
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	fmt.Printf("verify: every file has its digest: %.1f s, %.2f GB/s\n", verified.Seconds(), rate(made.Bytes(), verified))
	return p.rehearseDecode(ctx)
}

// pullTwice pulls, kills the process in the middle, and pulls again.
func (p play) pullTwice(ctx context.Context, server *served, total int64) error {
	env := []string{"HF_ENDPOINT=" + server.url, "HF_TOKEN="}
	var reached int64
	killed := errors.New("killed")
	first, err := timed(func() error {
		return p.child(ctx, rolePull, env, func(done int64) error {
			reached = done
			if float64(done) > killAt*float64(total) {
				return killed
			}
			return nil
		})
	})
	if !errors.Is(err, killed) {
		return fmt.Errorf("pull: got %w, want to kill it on its way", err)
	}
	fmt.Printf("pull: killed (SIGKILL) after %.1f s with %.2f GB received, %.2f GB/s\n", first.Seconds(), float64(reached)/1e9, rate(reached, first))
	second, err := timed(func() error { return p.child(ctx, rolePull, env, func(int64) error { return nil }) })
	if err != nil {
		return fmt.Errorf("second pull: %w", err)
	}
	sent, err := server.sent(ctx)
	if err != nil {
		return err
	}
	again := sent - total
	fmt.Printf("pull: taken up and ended after %.1f s, %.2f GB/s; %.1f MB were sent twice\n", second.Seconds(), rate(total-reached, second), float64(again)/1e6)
	if limit := connections * p.chunkBytes(); again > limit {
		return fmt.Errorf("second pull: got %d bytes sent again, want at most %d: a chunk of %d for each of %d connections", again, limit, p.chunkBytes(), connections)
	}
	return nil
}

// rehearseDecode decodes from a cold disk, and again from memory.
func (p play) rehearseDecode(ctx context.Context) error {
	for _, how := range []string{"cold", "warm"} {
		if how == "cold" {
			if err := p.dropCache(); err != nil {
				fmt.Println("load: the files' cache cannot be emptied here, so cold means as it is:", err)
			}
		}
		var r decodeReport
		if err := p.child(ctx, roleDecode, nil, nil, &r); err != nil {
			return fmt.Errorf("%s load and decode: %w", how, err)
		}
		fmt.Printf("%s load: %.2f s to open (%.2f GB of weights, %.2f GB/s), of them %.2f s before the weights\n",
			how, r.Open.Seconds(), float64(r.WeightBytes)/1e9, rate(r.WeightBytes, r.Open-r.BeforeWeights), r.BeforeWeights.Seconds())
		fmt.Printf("%s decode: %d tokens in %.1f s, %.2f tokens/s (second %d: %.2f tokens/s), %s\n",
			how, r.Tokens, r.Decode.Seconds(), float64(r.Tokens)/r.Decode.Seconds(), lotTokens, float64(lotTokens)/r.SecondDecode.Seconds(), r.Executor)
		fmt.Printf("%s memory: peak %.2f GiB resident (at most: anonymous %.2f, files %.2f), %d major faults while opening, %d in the first %d tokens, %d in the second; the system and other programs held up to %.2f GiB\n",
			how, gib(r.PeakBytes), gib(r.AnonymousBytes), gib(r.FileBytes), r.OpenFaults, r.FirstFaults, lotTokens, r.SecondFaults, gib(r.OthersBytes))
		if r.PeakBytes > residentBytes {
			return fmt.Errorf("%s: got %.2f GiB resident, want at most %.0f", how, gib(r.PeakBytes), gib(residentBytes))
		}
		if r.SecondFaults > 0 {
			return fmt.Errorf("%s: got %d major faults in the second %d tokens, want none: the weights do not stay in memory (other programs held up to %.2f GiB)",
				how, r.SecondFaults, lotTokens, gib(r.OthersBytes))
		}
	}
	return nil
}

func gib(n int64) float64 { return float64(n) / (1 << 30) }

func rate(n int64, d time.Duration) float64 { return float64(n) / 1e9 / d.Seconds() }

func timed(f func() error) (time.Duration, error) {
	start := time.Now()
	err := f()
	return time.Since(start), err
}

// child runs this program in a role and waits for it. Its lines on standard output are numbers, which watch hears; when watch returns an
// error the process is killed without warning and that is child's error. A report is the JSON of the last line.
func (p play) child(ctx context.Context, role string, env []string, watch func(int64) error, report ...any) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, p.args(role)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var verdict error
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		line := lines.Bytes()
		if len(report) > 0 && strings.HasPrefix(lines.Text(), "{") {
			verdict = errors.Join(verdict, json.Unmarshal(line, report[0]))
			continue
		}
		var n int64
		if err := json.Unmarshal(line, &n); err == nil && watch != nil && verdict == nil {
			if verdict = watch(n); verdict != nil {
				if err := cmd.Process.Kill(); err != nil {
					return err
				}
			}
		}
	}
	if err := cmd.Wait(); verdict == nil {
		return err
	}
	return verdict
}

// served is the server's process.
type served struct {
	url   string
	input io.WriteCloser
	cmd   *exec.Cmd
}

// startServer starts the server, which ends when its standard input does.
func (p play) startServer(ctx context.Context) (*served, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &served{cmd: exec.CommandContext(ctx, self, p.args(roleServe)...)}
	s.cmd.Stderr = os.Stderr
	if s.input, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	s.url = strings.TrimSpace(line)
	return s, nil
}

func (s *served) stop() {
	s.input.Close()
	if err := s.cmd.Wait(); err != nil {
		fmt.Fprintln(os.Stderr, "rehearsal: server:", err)
	}
}

// sent asks how many bytes of files the server sent.
func (s *served) sent(ctx context.Context) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+sentPath, nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	var n int64
	_, err = fmt.Fscan(answer.Body, &n)
	return n, err
}

// args are the flags of this program in a role.
func (p play) args(role string) []string {
	args := []string{"-role", role, "-dir", p.dir}
	if p.small {
		args = append(args, "-small")
	}
	return args
}

// modelDir is where the model's files lie.
func (p play) modelDir() string { return filepath.Join(p.dir, modelID) }
