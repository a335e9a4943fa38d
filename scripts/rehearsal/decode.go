package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"pond/inference"
	"pond/inference/sample"
)

// decodeReport is what one process saw of loading and decoding.
type decodeReport struct {
	Executor      string
	WeightBytes   int64
	Open          time.Duration // from nothing to ready
	BeforeWeights time.Duration // of it: headers, configuration, tokenizer
	Tokens        int
	Decode        time.Duration // of all tokens
	SecondDecode  time.Duration // of the second lot

	PeakBytes      int64 // of resident memory at once; 0 where the system does not tell
	AnonymousBytes int64 // most of it that is no file's
	FileBytes      int64 // most of it that is a file's
	OthersBytes    int64 // most that the system and other programs held at once and would not have given back
	OpenFaults     int64 // pages that were read from a disk while the process waited
	FirstFaults    int64
	SecondFaults   int64
}

// decode opens the model with the host executor, decodes two lots of tokens, and prints a decodeReport.
func (p play) decode(ctx context.Context) error {
	var r decodeReport
	memory := watchMemory()
	start := time.Now()
	e, err := inference.Open(ctx, inference.Options{
		Model: inference.FromDir(p.modelDir()), ID: modelID, Executor: inference.Host, ContextTokens: 4096,
		OnLoad: func(done, total int64) {
			if r.BeforeWeights == 0 {
				r.BeforeWeights = time.Since(start)
			}
		},
	})
	if err != nil {
		return err
	}
	defer e.Close()
	r.Open = time.Since(start)
	if r.BeforeWeights == 0 {
		return fmt.Errorf("the weights were not read ahead: memory would not hold them")
	}
	r.Executor, r.WeightBytes = e.Info().Executor, e.Info().WeightBytes
	r.OpenFaults = majorFaults()

	// One prompt, and each lot goes on from its state. The stop tokens are random tokens too here; one that comes early is asked past.
	tokens := e.Tokenizer().Encode("not the cloud a pond")
	for lot := range 2 {
		before := majorFaults()
		begun := time.Now()
		for got := 0; got < lotTokens; {
			a, err := e.Complete(ctx, inference.CompletionRequest{Tokens: tokens, Generation: inference.Generation{
				MaxTokens: lotTokens - got, Sampling: &sample.Params{Temperature: 1, Seed: uint64(1 + lot)}, Logprobs: true,
			}})
			if err != nil {
				return err
			}
			for {
				u, more := a.Next()
				if !more {
					break
				}
				for _, l := range u.Logprobs {
					if math.IsNaN(l.Logprob) || math.IsInf(l.Logprob, 0) {
						return fmt.Errorf("token %d: got a log probability of %v, want a number", r.Tokens, l.Logprob)
					}
					tokens = append(tokens, l.ID)
					got++
					r.Tokens++
				}
			}
			if err := a.Err(); err != nil {
				return err
			}
			if a.Result().Finish != inference.FinishLength {
				tokens = append(tokens, tokens[0]) // instead of the stop token
			}
		}
		took := time.Since(begun)
		r.Decode += took
		if faults := majorFaults() - before; lot == 0 {
			r.FirstFaults = faults
		} else {
			r.SecondFaults, r.SecondDecode = faults, took
		}
	}
	memory(&r)
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	fmt.Println(string(text))
	return nil
}

// majorFaults counts the pages that this process waited for a disk to read.
func majorFaults() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return int64(u.Majflt)
}

// watchMemory looks at this process's memory and the machine's (proc_pid_status(5), proc_meminfo(5)) until the returned function is called,
// which tells the most that was seen.
func watchMemory() func(*decodeReport) {
	var most decodeReport
	look := func() {
		own, all := procBytes("/proc/self/status"), procBytes("/proc/meminfo")
		most.PeakBytes = max(most.PeakBytes, own["VmHWM"])
		most.AnonymousBytes = max(most.AnonymousBytes, own["RssAnon"])
		most.FileBytes = max(most.FileBytes, own["RssFile"]+own["RssShmem"])
		most.OthersBytes = max(most.OthersBytes, all["MemTotal"]-all["MemAvailable"]-own["RssAnon"])
	}
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
				look()
			}
		}
	})
	return func(r *decodeReport) {
		close(stop)
		watching.Wait()
		look()
		r.PeakBytes, r.AnonymousBytes, r.FileBytes, r.OthersBytes = most.PeakBytes, most.AnonymousBytes, most.FileBytes, most.OthersBytes
	}
}

// procBytes reads the lines of a file of /proc that are amounts of memory.
func procBytes(path string) map[string]int64 {
	out := map[string]int64{}
	f, err := os.Open(path)
	if err != nil {
		return out // not Linux
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if kib, ok := strings.CutSuffix(strings.TrimSpace(value), " kB"); ok {
			if n, err := strconv.ParseInt(kib, 10, 64); err == nil {
				out[name] = n << 10
			}
		}
	}
	return out
}

// dropCache makes the model's files be read from the disk again.
func (p play) dropCache() error {
	files, err := filepath.Glob(filepath.Join(p.modelDir(), "*"))
	if err != nil {
		return err
	}
	for _, name := range files {
		if err := dropFile(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
