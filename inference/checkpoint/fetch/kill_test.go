package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pond/inference/checkpoint/manifest"
)

// The test binary runs itself in another role where a test needs a process of its own.
const (
	role      = "POND_FETCH_ROLE"
	roleDir   = "POND_FETCH_DIR"
	roleFiles = "POND_FETCH_FILES" // manifest files as JSON
	roleChunk = "POND_FETCH_CHUNK"
	roleHash  = "POND_FETCH_HASH" // "off"
	roleRate  = "POND_FETCH_RATE"
)

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		os.Exit(m.Run())
	case "pull":
		os.Exit(pullRole())
	case "serve":
		os.Exit(serveRole())
	}
	os.Exit(2)
}

// command is this binary in a role, with nothing of the environment that could change where it asks.
func command(t *testing.T, what string, env map[string]string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	c := exec.CommandContext(t.Context(), self)
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); !strings.HasSuffix(strings.ToLower(name), "_proxy") && !strings.HasPrefix(name, "HF_") {
			c.Env = append(c.Env, e)
		}
	}
	c.Env = append(c.Env, role+"="+what)
	for k, v := range env {
		c.Env = append(c.Env, k+"="+v)
	}
	return c
}

func manifestText(t *testing.T, files []manifest.File) string {
	t.Helper()
	text, err := json.Marshal(files)
	must(t, err)
	return string(text)
}

// pullRole runs one job as the environment says.
func pullRole() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var files []manifest.File
	if err := json.Unmarshal([]byte(os.Getenv(roleFiles)), &files); err != nil {
		fmt.Println(err)
		return 2
	}
	m := manifest.Manifest{Files: files, Sources: []manifest.Source{{Repo: repoA, Revision: "main"}}}
	sources, err := Sources(m, os.Getenv)
	if err != nil {
		fmt.Println(err)
		return 2
	}
	chunk, _ := strconv.ParseInt(os.Getenv(roleChunk), 10, 64) // absent: the default
	rate, _ := strconv.ParseInt(os.Getenv(roleRate), 10, 64)
	job := Job{Dir: os.Getenv(roleDir), Files: nil, Sources: sources, Options: Options{
		ChunkBytes: chunk, RateBytes: rate, SaveEvery: 100 * time.Millisecond, Stall: 20 * time.Second, Patience: time.Minute, skipHash: os.Getenv(roleHash) == "off",
	}}
	for _, f := range files {
		if _, err := os.Stat(filepath.Join(job.Dir, f.Name)); errors.Is(err, os.ErrNotExist) {
			job.Files = append(job.Files, f)
		}
	}
	if err := Run(ctx, job); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// TestKill kills a pulling process at random instants, as a crash would, and lets the next one take up: the right bytes, and at most a
// chunk a connection asked for again at each kill. POND_KILLS and POND_KILL_BYTES make it the long form (make test-faults).
func TestKill(t *testing.T) {
	kills, size := number(t, "POND_KILLS", 10), number(t, "POND_KILL_BYTES", 8<<20)
	const connections = 8 // the default
	chunk := int64(max(size/64, 64<<10))
	sizes := []int{size / 2, size / 3, size - size/2 - size/3 - 100, 100}
	rng := rand.New(rand.NewPCG(3, 14))
	var worst int64
	for done := 0; done < kills; {
		r := newRig(t, sizes...)
		env := map[string]string{
			"HF_ENDPOINT": strings.TrimSuffix(r.job.Sources[0].Base, "/"+repoA+"/resolve/main/"), roleDir: r.job.Dir,
			roleFiles: manifestText(t, r.job.Files), roleChunk: strconv.FormatInt(chunk, 10), roleRate: strconv.Itoa(size * 3), // a pull takes a third of a second
		}
		killed := int64(0)
		for {
			c := command(t, "pull", env)
			var out strings.Builder
			c.Stdout, c.Stderr = &out, &out
			must(t, c.Start())
			ended := make(chan error, 1)
			go func() { ended <- c.Wait() }()
			var err error
			alive := false
			if done < kills {
				select {
				case err = <-ended:
				case <-time.After(time.Duration(20+rng.IntN(280)) * time.Millisecond):
					if kerr := c.Process.Signal(syscall.SIGKILL); !errors.Is(kerr, os.ErrProcessDone) { // it may end by itself at this very moment
						must(t, kerr)
					}
					err = <-ended
					alive = c.ProcessState.ExitCode() == -1
				}
			} else {
				err = <-ended
			}
			if !alive {
				if err != nil {
					t.Fatalf("%v\n%s", err, out.String())
				}
				break
			}
			done++
			killed++
			r.check(t, errors.New("killed"))
		}
		r.check(t, nil)
		again := r.hub.AllSent() - int64(size)
		if killed > 0 {
			worst = max(worst, again/killed)
		}
		if limit := killed * connections * chunk; again > limit {
			t.Errorf("got %d bytes sent again after %d kills, want at most %d: a chunk of %d for each of %d connections", again, killed, limit, chunk, connections)
		}
	}
	t.Logf("%d kills over %d bytes: a kill cost at most %d bytes (mean of a download), the bound is %d", kills, size, worst, connections*chunk)
}

// serveRole serves patterns until its standard input ends.
func serveRole() int {
	size, err := strconv.ParseInt(os.Getenv("POND_FETCH_SIZE"), 10, 64)
	if err != nil {
		return 2
	}
	return servePatterns(size)
}
