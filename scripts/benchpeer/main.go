// Command benchpeer measures Pond's host executor on a checkpoint of the full shape, and puts the figures beside those of a peer:
//
//	go run ./scripts/benchpeer -model DIR [-peer peer.json] [-executor int16] [-prefill 512,2048] [-contexts 256,4096]
//
// DIR is a checkpoint such as scripts/fullsize writes. The peer's file is what llama.py prints; peer.sh runs the two one after the other.
// Everything is a median unless told; bytes of a token are those of the decode plan.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	"pond/inference/checkpoint"
	"pond/inference/qwen36"
	"pond/metal/host"
	"pond/metal/host/simd"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "benchpeer:", err)
		os.Exit(1)
	}
}

// peer is what llama.py prints.
type peer struct {
	Kind         string
	LoadS        float64            `json:"load_s"`
	Prefill      map[string]float64 // tokens a second by length
	Decode       float64            // tokens a second
	AnonymousGiB float64            `json:"anonymous_gib"`
}

type options struct {
	model, peer        string
	profile            string
	mode               host.Mode
	threads, decode    int
	prefills, contexts []int
	chunk, layers      int
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("benchpeer", flag.ContinueOnError)
	f.StringVar(&o.model, "model", "", "folder of the checkpoint")
	f.StringVar(&o.peer, "peer", "", "what llama.py printed")
	mode := f.String("executor", string(host.Int16), "int16, int8 or exact")
	f.IntVar(&o.threads, "threads", runtime.NumCPU(), "worker threads")
	f.IntVar(&o.decode, "decode", 40, "tokens to time at each context")
	f.StringVar(&o.profile, "profile", "", "write a CPU profile of prefill and decode there")
	f.IntVar(&o.layers, "layers", 0, "use only so many layers, to look at a part; 0: all")
	f.IntVar(&o.chunk, "chunk", 512, "tokens of a chunk of prefill")
	prefills := f.String("prefill", "512,2048", "lengths of prompts")
	contexts := f.String("contexts", "256", "tokens in the context while decoding")
	if err = f.Parse(args); err != nil {
		return o, err
	}
	o.mode = host.Mode(*mode)
	if o.prefills, err = numbers(*prefills); err == nil {
		o.contexts, err = numbers(*contexts)
	}
	if o.model == "" && err == nil {
		err = fmt.Errorf("-model: got nothing, want a folder")
	}
	return o, err
}

func numbers(s string) (out []int, err error) {
	for _, part := range strings.Split(s, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("got %q, want numbers with commas", s)
		}
		out = append(out, n)
	}
	return out, nil
}

func run(args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	var other *peer
	if o.peer != "" {
		text, err := os.ReadFile(o.peer)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(text, &other); err != nil {
			return fmt.Errorf("%s: %w", o.peer, err)
		}
	}
	before := bandwidth(o.threads)
	begun := time.Now()
	b, err := open(o)
	if err != nil {
		return err
	}
	defer b.close()
	load := time.Since(begun)
	fmt.Fprintf(out, "%s, %d layers, vocabulary of %d\n\n", b.device.Name(), b.model.Shape.Layers, b.model.Shape.Vocab)
	t := table{out: out, other: other}
	t.head()
	if err := b.warm(); err != nil {
		return err
	}
	warm := time.Since(begun)
	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	for _, n := range o.prefills {
		rate, err := b.prefill(n)
		if err != nil {
			return err
		}
		t.row(fmt.Sprintf("prefill of %d, tok/s", n), rate, t.peerPrefill(n))
	}
	rates := make([]float64, len(o.contexts))
	for i, n := range o.contexts {
		if rates[i], err = b.decode(n); err != nil {
			return err
		}
		t.row(fmt.Sprintf("decode at %d, tok/s", n), rates[i], t.peerDecode(n))
		for _, rows := range []int{2, 4} {
			all, err := b.together(n, rows)
			if err != nil {
				return err
			}
			t.row(fmt.Sprintf("decode at %d, %d together, tok/s", n, rows), all, 0)
		}
	}
	after := bandwidth(o.threads)
	read := max(before, after)
	t.row("load, s", load.Seconds(), t.peerLoad())
	fmt.Fprintf(out, "\nto the first token of a short prompt, from nothing: %.2f s\n", warm.Seconds())
	fmt.Fprintf(out, "read bandwidth, %d threads: %.1f GB/s before, %.1f after\n", o.threads, before/1e9, after/1e9)
	for i, n := range o.contexts {
		bytes, err := tokenBytes(b.model.Shape, n)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "at %6d: %.3f GB a token, %.1f GB/s, %.0f %% of the bandwidth bound\n", n, float64(bytes)/1e9, rates[i]*float64(bytes)/1e9, 100*rates[i]*float64(bytes)/read)
	}
	own, err := memory()
	if err == nil {
		fmt.Fprintf(out, "memory of this process: %.1f GiB at most, %.2f GiB of it no file's\n", own.peak, own.anonymous)
	}
	return nil
}

// table prints Pond beside the peer.
type table struct {
	out   io.Writer
	other *peer
}

func (t table) head() { fmt.Fprintf(t.out, "%-26s %10s %10s %8s\n", "", "Pond", "llama.cpp", "ratio") }

func (t table) row(what string, ours, theirs float64) {
	if theirs == 0 {
		fmt.Fprintf(t.out, "%-26s %10.2f %10s %8s\n", what, ours, "-", "-")
		return
	}
	fmt.Fprintf(t.out, "%-26s %10.2f %10.2f %8.2f\n", what, ours, theirs, ours/theirs)
}

func (t table) peerPrefill(n int) float64 {
	if t.other == nil {
		return 0
	}
	return t.other.Prefill[strconv.Itoa(n)]
}

func (t table) peerDecode(context int) float64 {
	if t.other == nil || context != 256 { // what llama.py measures
		return 0
	}
	return t.other.Decode
}

func (t table) peerLoad() float64 {
	if t.other == nil {
		return 0
	}
	return t.other.LoadS
}

// bench is the model on the device.
type bench struct {
	options
	device *host.Device
	model  *qwen36.Model
	files  *checkpoint.Checkpoint
	seq    *qwen36.Sequence
	random *rand.Rand
}

func open(o options) (*bench, error) {
	b := &bench{options: o, random: rand.New(rand.NewPCG(7, 7))}
	var err error
	if b.files, err = checkpoint.OpenDir(o.model); err != nil {
		return nil, err
	}
	config, err := b.files.File("config.json")
	if err != nil {
		return nil, err
	}
	shape, quantization, err := qwen36.ParseConfig(config, nil)
	if err != nil {
		return nil, err
	}
	if o.layers > 0 {
		shape.Layers = min(o.layers, shape.Layers) // the rest is left over, which the strict reading would refuse
	} else if _, err := qwen36.LoadWeights(b.files, shape, quantization); err != nil {
		return nil, err
	}
	if o.layers == 0 { // as the engine does
		if err := b.files.Load(context.Background(), b.files.Names(), nil); err != nil {
			return nil, err
		}
	}
	b.device = host.Open(o.mode, o.threads)
	rows := max(slices.Max(o.prefills), slices.Max(o.contexts)+o.decode+warmTokens)
	if b.model, err = qwen36.NewModel(b.device, b.files, shape, rows); err != nil {
		return nil, err
	}
	if b.seq, err = b.model.NewSequence(); err != nil {
		return nil, err
	}
	return b, b.seq.Grow(rows)
}

func (b *bench) close() {
	b.device.Close()
	b.files.Close()
}

const warmTokens = 4

func (b *bench) tokens(n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = b.random.Int32N(int32(b.model.Shape.UsableIDs()))
	}
	return ids
}

// warm runs one short prompt.
func (b *bench) warm() error {
	_, err := b.seq.Chunk(b.tokens(32), qwen36.LastLogits)
	return err
}

// feed starts over with n tokens, chunk by chunk.
func (b *bench) feed(n int) error {
	b.seq.Reset()
	for ids := b.tokens(n); len(ids) > 0; {
		c := min(b.chunk, len(ids))
		logits, err := b.seq.Chunk(ids[:c], qwen36.LastLogits)
		if err != nil {
			return err
		}
		if v := float64(logits[0]); math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("got logit %v, want a number", v)
		}
		ids = ids[c:]
	}
	return nil
}

// prefill is tokens a second, the median of three.
func (b *bench) prefill(n int) (float64, error) {
	var took []float64
	for range 3 {
		begun := time.Now()
		if err := b.feed(n); err != nil {
			return 0, err
		}
		took = append(took, time.Since(begun).Seconds())
	}
	slices.Sort(took)
	return float64(n) / took[1], nil
}

// decode is tokens a second, by the median of one token's time.
func (b *bench) decode(length int) (float64, error) {
	if err := b.feed(length); err != nil {
		return 0, err
	}
	var took []float64
	for i, id := range b.tokens(warmTokens + b.options.decode) {
		begun := time.Now()
		if _, err := b.seq.Token(id); err != nil {
			return 0, err
		}
		if i >= warmTokens {
			took = append(took, time.Since(begun).Seconds())
		}
	}
	slices.Sort(took)
	return 1 / took[len(took)/2], nil
}

// together is the tokens a second of so many sequences whose steps are made as one.
func (b *bench) together(length, rows int) (float64, error) {
	own := b.seq
	defer func() { b.seq = own }()
	var qs []*qwen36.Sequence
	for range rows {
		var err error
		if b.seq, err = b.model.NewSequence(); err == nil {
			err = b.feed(length)
		}
		if err != nil {
			return 0, err
		}
		qs = append(qs, b.seq)
	}
	var took []float64
	for i := range warmTokens + b.options.decode {
		begun := time.Now()
		if _, err := b.model.Step(qs, b.tokens(rows)); err != nil {
			return 0, err
		}
		if i >= warmTokens {
			took = append(took, time.Since(begun).Seconds())
		}
	}
	slices.Sort(took)
	return float64(rows) / took[len(took)/2], nil
}

// tokenBytes is what one decoded token moves: the weights it uses, state both ways, and the context's keys and values.
func tokenBytes(s qwen36.Shape, context int) (int64, error) {
	p, err := qwen36.Decode(s, context, context)
	if err != nil {
		return 0, err
	}
	sum := p.Summary()
	return sum.WeightBytes + sum.StateBytes, nil
}

// bandwidth is the median of pure reads of 256 MiB a thread, all threads at once, bytes a second.
func bandwidth(threads int) float64 {
	defer debug.FreeOSMemory() // it is not the model's
	const each = 256 << 20
	parts := make([][]byte, threads)
	for i := range parts {
		parts[i] = make([]byte, each)
		for j := 0; j < each; j += 4096 {
			parts[i][j] = 1
		}
	}
	var rates []float64
	for range 11 {
		done := make(chan uint64, threads)
		begun := time.Now()
		for _, p := range parts {
			go func() { done <- simd.Read(p) }()
		}
		for range parts {
			<-done
		}
		rates = append(rates, float64(threads)*each/time.Since(begun).Seconds())
	}
	slices.Sort(rates)
	return rates[len(rates)/2]
}

type memoryGiB struct{ peak, anonymous float64 }

// memory is this process's, from /proc (Linux).
func memory() (m memoryGiB, err error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return m, err
	}
	for _, line := range strings.Split(string(text), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kb, _ := strconv.ParseFloat(fields[1], 64)
		switch fields[0] {
		case "VmHWM:":
			m.peak = kb / (1 << 20)
		case "RssAnon:":
			m.anonymous = kb / (1 << 20)
		}
	}
	return m, nil
}
