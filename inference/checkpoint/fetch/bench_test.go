package fetch

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pond/inference/checkpoint/badhub"
)

// benchFiles are as many as the real model has shards: two of them come at once, and each is hashed by a goroutine of its own.
const benchFiles = 4

// servePatterns is the server of the benchmark: it prints the endpoint and the manifest, and serves until its standard input ends.
func servePatterns(size int64) int {
	files := map[string]badhub.Content{}
	var names []string
	for i := range benchFiles {
		name := fmt.Sprintf("pattern-%d.bin", i)
		names = append(names, name)
		files[name] = badhub.NewPattern(uint64(i), size/benchFiles)
	}
	hub := badhub.Of(files)
	m := hub.Manifest("bench", names, repoA)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 1
	}
	text, err := json.Marshal(m.Files)
	if err != nil {
		return 1
	}
	fmt.Printf("http://%s\n%s\n", l.Addr(), text)
	go http.Serve(l, hub) // until the process ends
	io.Copy(io.Discard, os.Stdin)
	return 0
}

// quietSpread is how far the runs of one way may differ, as a share of the median, for their medians to be compared.
const quietSpread = 0.25

// TestBenchPull measures the downloader on loopback, with hashing and without, beside curl, each in a process of its own, in turns.
// It runs where POND_BENCH_BYTES says how much to pull (make bench-pull); POND_BENCH_RATE bounds all of them, in bytes a second.
//
// Hashing takes 0.7 s of a processor a GB, whatever the design: where the server, the downloader and the hash have fewer than four
// processors and no bound, the rate shows how they share them and there is no verdict.
func TestBenchPull(t *testing.T) {
	if os.Getenv("POND_BENCH_BYTES") == "" {
		t.Skip("a measurement: run it with make bench-pull")
	}
	size, rounds := number(t, "POND_BENCH_BYTES", 0), number(t, "POND_BENCH_ROUNDS", 3)
	limit := os.Getenv("POND_BENCH_RATE")
	server := command(t, "serve", map[string]string{"POND_FETCH_SIZE": strconv.Itoa(size)})
	in, err := server.StdinPipe()
	must(t, err)
	out, err := server.StdoutPipe()
	must(t, err)
	must(t, server.Start())
	defer func() {
		in.Close()
		server.Wait()
	}()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	var endpoint, files string
	if lines.Scan() {
		endpoint = lines.Text()
	}
	if lines.Scan() {
		files = lines.Text()
	}
	ways := []string{"pond", "pond, hashing off"}
	curl, err := exec.LookPath("curl")
	if err == nil {
		ways = append(ways, "curl")
	} else {
		t.Log("curl is not installed; its row is missing")
	}
	rates, cpu, peaks := map[string][]float64{}, map[string][]float64{}, map[string]int64{}
	for round := range rounds {
		for i := range ways {
			way := ways[(i+round)%len(ways)]
			dir := t.TempDir()
			var c *exec.Cmd
			if way == "curl" {
				c = exec.Command(curl, "-sS", "--output-dir", dir, "--remote-name-all", "--parallel", "--parallel-max", "2")
				if limit != "" { // curl's bound is for each of the two transfers
					c.Args = append(c.Args, "--limit-rate", strconv.Itoa(number(t, "POND_BENCH_RATE", 0)/2))
				}
				for i := range benchFiles {
					c.Args = append(c.Args, fmt.Sprintf("%s/%s/resolve/main/pattern-%d.bin", endpoint, repoA, i))
				}
			} else {
				env := map[string]string{"HF_ENDPOINT": endpoint, roleDir: dir, roleFiles: files, roleRate: limit}
				if strings.HasSuffix(way, "off") {
					env[roleHash] = "off"
				}
				c = command(t, "pull", env)
			}
			syscall.Sync() // what the one before left to write is not this one's
			began := time.Now()
			text, err := c.CombinedOutput()
			took := time.Since(began)
			if err != nil {
				t.Fatalf("%s: %v\n%s", way, err, text)
			}
			rates[way] = append(rates[way], float64(size)/1e6/took.Seconds())
			cpu[way] = append(cpu[way], (c.ProcessState.UserTime()+c.ProcessState.SystemTime()).Seconds()/float64(size)*1e9)
			if u, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
				peaks[way] = max(peaks[way], int64(u.Maxrss)<<10)
			}
			must(t, os.RemoveAll(dir))
		}
	}
	median := func(values []float64) float64 {
		r := slices.Sorted(slices.Values(values))
		return r[len(r)/2]
	}
	for _, way := range ways {
		fmt.Printf("%-18s median %7.1f MB/s, %4.2f s of processor a GB, peak memory %5.1f MB, runs %.1f\n", way, median(rates[way]), median(cpu[way]), float64(peaks[way])/1e6, rates[way])
	}
	share := median(rates["pond"]) / median(rates["pond, hashing off"])
	fmt.Printf("with hashing: %.1f %% of the rate without (medians), %.1f %% (best runs)\n", 100*share, 100*slices.Max(rates["pond"])/slices.Max(rates["pond, hashing off"]))
	if peak := peaks["pond"]; peak >= 64e6 {
		t.Errorf("got a peak of %d bytes of memory, want less than 64 MB", peak)
	}
	for _, way := range ways[:2] {
		if spread := (slices.Max(rates[way]) - slices.Min(rates[way])) / median(rates[way]); spread > quietSpread {
			t.Skipf("no verdict: runs of %s differ by %.0f %%, so this machine is busy with other work", way, 100*spread)
		}
	}
	if limit == "" && runtime.GOMAXPROCS(0) < 4 {
		t.Skipf("no verdict: got %d processors for server, download and hash, want 4, or a bound (POND_BENCH_RATE)", runtime.GOMAXPROCS(0))
	}
	if share < 0.9 {
		t.Errorf("got %.1f %% of the rate with hashing off, want at least 90", 100*share)
	}
}
