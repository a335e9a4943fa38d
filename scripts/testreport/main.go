// Command testreport turns the stream of `go test -json` into a page to read: a line a package, the whole output of what failed,
// every skipped test with its reason, and the counts. It fails when a test or a build failed, or when nothing ran.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
)

// event is one line of test2json, as `go doc test2json` describes it; build-output events carry ImportPath.
type event struct {
	Action      string
	Package     string
	Test        string
	Elapsed     float64 // seconds
	Output      string
	ImportPath  string
	FailedBuild string
}

// report folds events.
type report struct {
	out                     io.Writer
	passed, failed, skipped int
	brokenPackages          int
	output                  map[string][]string // package, or package and test -> its lines
	builds                  map[string][]string // import path -> compiler output
	skips                   []string
}

func main() {
	r := &report{out: os.Stdout, output: map[string][]string{}, builds: map[string][]string{}}
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
	if !r.finish() {
		os.Exit(1)
	}
}

// read folds every event of a stream.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil { // a line of the go command itself
				fmt.Fprint(r.out, string(line))
			} else {
				r.add(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) add(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		r.output[key] = append(r.output[key], e.Output)
	case "build-output":
		r.builds[e.ImportPath] = append(r.builds[e.ImportPath], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.packageDone(e)
		} else {
			r.testDone(e, key)
		}
	}
}

func (r *report) testDone(e event, key string) {
	switch e.Action {
	case "pass":
		r.passed++
	case "skip":
		r.skipped++
		r.skips = append(r.skips, fmt.Sprintf("skipped %s %s: %s", e.Package, e.Test, reason(r.output[key])))
	case "fail":
		r.failed++
		fmt.Fprint(r.out, strings.Join(r.output[key], ""))
	}
	delete(r.output, key)
}

func (r *report) packageDone(e event) {
	key := e.Package + " "
	switch e.Action {
	case "pass":
		cached := ""
		if strings.Contains(strings.Join(r.output[key], ""), "(cached)") {
			cached = " (cached)"
		}
		fmt.Fprintf(r.out, "ok   %s %.1fs%s\n", e.Package, e.Elapsed, cached)
	case "fail":
		r.brokenPackages++
		fmt.Fprint(r.out, strings.Join(r.builds[e.FailedBuild], ""))
		fmt.Fprint(r.out, strings.Join(r.output[key], ""))
		for k, lines := range r.output { // tests cut off by a crash or the time limit
			if strings.HasPrefix(k, key) && k != key {
				fmt.Fprint(r.out, strings.Join(lines, ""))
				delete(r.output, k)
			}
		}
		fmt.Fprintf(r.out, "FAIL %s %.1fs\n", e.Package, e.Elapsed)
	}
	delete(r.output, key)
}

// finish prints the skips and the counts, and reports whether all is well.
func (r *report) finish() bool {
	sort.Strings(r.skips)
	fmt.Fprintln(r.out)
	for _, s := range r.skips {
		fmt.Fprintln(r.out, s)
	}
	if r.brokenPackages > 0 {
		fmt.Fprintf(r.out, "FAIL in %d packages\n", r.brokenPackages)
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, max(r.failed, r.brokenPackages), r.skipped)
	return r.failed == 0 && r.brokenPackages == 0 && r.passed > 0
}

// reason is what a skipped test said first: its output without the frame that Go puts around it.
func reason(lines []string) string {
	for _, l := range lines {
		l = strings.TrimSpace(l)
		if l == "" || strings.HasPrefix(l, "=== ") || strings.HasPrefix(l, "--- ") {
			continue
		}
		if _, after, ok := strings.Cut(l, ".go:"); ok { // file.go:12: reason
			if _, after, ok = strings.Cut(after, ": "); ok {
				l = after
			}
		}
		return l
	}
	return "no reason given"
}
