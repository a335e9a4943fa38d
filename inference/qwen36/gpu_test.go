package qwen36

// The plans through Metal: the GPU of a Mac, or the stand-in that plays it, against the goldens and against the host executor.

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"pond/inference/ablate"
	"pond/inference/checkpoint"
	"pond/inference/tinymodel"
	"pond/metal"
	"pond/metal/crosscheck"
	"pond/metal/gputest"
	"pond/metal/host"
	"pond/metal/kernels"
	"pond/metal/standin"
)

// gpuModel opens a small model on the GPU.
func gpuModel(t *testing.T, c *checkpoint.Checkpoint, s Shape, context int, o gputest.Options) *Model {
	t.Helper()
	m, err := NewModel(gputest.Open(t, o), c, s, context)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestGPUGreedyEqualsSpec(t *testing.T) {
	for _, c := range []struct {
		kind tinymodel.Kind
		want []int32
	}{{tinymodel.Tiny, goldenTiny()}, {tinymodel.KernelTrue, goldenKernelTrue()}} {
		t.Run(c.kind.String(), func(t *testing.T) {
			ckpt, _, s := goldenModel(t, c.kind)
			m := gpuModel(t, ckpt, s, 64, gputest.Options{})
			chunks := []int{5} // prefill, then decode
			if c.kind == tinymodel.Tiny || os.Getenv(metalCheck) != "" {
				chunks = append(chunks, 0) // token by token
			}
			for _, chunk := range chunks {
				q := newSequence(t, m)
				if got := greedy(t, q, feed(t, q, goldenPrompt(), chunk), len(c.want)); !slices.Equal(got, c.want) {
					t.Errorf("chunks of %d: got %v, want %v", chunk, got, c.want)
				}
			}
		})
	}
}

// TestGPUKernelsEqualReferences compares every dispatch of prefill and decode with its reference, from the same inputs.
func TestGPUKernelsEqualReferences(t *testing.T) {
	for _, kind := range []tinymodel.Kind{tinymodel.Tiny, tinymodel.KernelTrue} {
		t.Run(kind.String(), func(t *testing.T) {
			if kind == tinymodel.KernelTrue {
				needMetalCheck(t)
			}
			checkKernels(t, kind, gputest.Options{}, nil)
		})
	}
}

// TestGPUKernelsInAnyOrder does so with lanes, simdgroups, threadgroups and dispatches in other orders, and once with every access checked.
func TestGPUKernelsInAnyOrder(t *testing.T) {
	if gputest.OnCUDA() {
		t.Skip("an NVIDIA GPU chooses its own order, and compute-sanitizer checks accesses there")
	}
	for name, o := range map[string]gputest.Options{
		"descending": {Standin: standin.Options{Order: standin.Descending}},
		"shuffled":   {Standin: standin.Options{Order: standin.Shuffled, ShuffleDispatches: true, Poison: true}},
		"checked":    {Standin: standin.Options{Check: true}},
	} {
		for _, kind := range []tinymodel.Kind{tinymodel.Tiny, tinymodel.KernelTrue} {
			t.Run(name+" "+kind.String(), func(t *testing.T) {
				if kind == tinymodel.KernelTrue {
					needMetalCheck(t)
				}
				checkKernels(t, kind, o, rand.New(rand.NewPCG(7, 1)))
			})
		}
	}
}

// metalCheck names the environment variable of `make metal-check`, which runs the long forms.
const metalCheck = "POND_METAL_CHECK"

func needMetalCheck(t *testing.T) {
	t.Helper()
	if os.Getenv(metalCheck) == "" {
		t.Skip(metalCheck + " is not set: make metal-check runs the long forms")
	}
}

func checkKernels(t *testing.T, kind tinymodel.Kind, o gputest.Options, shuffle *rand.Rand) {
	t.Helper()
	ckpt, _, s := goldenModel(t, kind)
	dev := crosscheck.New(host.Open(host.Exact, 2), gputest.Open(t, o), crosscheck.Tolerance)
	unfused, err := ablate.Parse("fused-residual,fused-dequantisation")
	if err != nil {
		t.Fatal(err)
	}
	dense, err := ablate.Parse("fused-dequantisation")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{GPU: true}, {}, {GPU: true, Ablate: unfused}, {GPU: true, Ablate: dense}} { // what a GPU runs, with a cache of float32, and by kernels that other plans have
		m, err := o.NewModel(dev, ckpt, s, 300)
		if err != nil {
			t.Fatal(err)
		}
		q := newSequence(t, m)
		q.Options.Shuffle = shuffle
		ids := sampleIDs(s.Vocab, 44)
		feed(t, q, ids[:37], 37) // a tile of rows and a rest
		feed(t, q, ids[37:42], 5)
		feed(t, q, ids[42:], 0)
		if m.MostTogether() == 1 {
			continue
		}
		other := newSequence(t, m)
		feed(t, other, ids[:3], 3)
		if _, err := m.Step([]*Sequence{q, other}, []int32{ids[5], ids[6]}); err != nil {
			t.Fatal(err)
		}
		if _, err := q.ChunkInParts(ids[:9], LastLogits, 2); err != nil {
			t.Fatal(err)
		}
	}
	used, worst := 0, crosscheck.Result{}
	for _, r := range dev.Results() {
		if r.Failure != "" {
			t.Errorf("%s: %s", r.Kernel, r.Failure)
		}
		if r.Dispatches > 0 {
			used++
		}
		if r.Worst > worst.Worst {
			worst = r
		}
	}
	t.Logf("%d kernels; the worst is %s, at %.3f of the tolerance", used, worst.Kernel, worst.Worst)
	const choosing = 4 // the device's choice of a token: plans of answers, see package inference
	if want := len(kernels.All()) - choosing; used < want {
		t.Errorf("got %d kernels in the plans, want all %d", used, want)
	}
}

// TestGPUManyRowsOfExperts: a chunk so long that the experts receive 32,772 rows, which is no multiple of a tile, goes on as short chunks on the
// host do. What users of another server saw: rows beyond 32,768 held what memory held before, other words in every run.
func TestGPUManyRowsOfExperts(t *testing.T) {
	needMetalCheck(t)
	const tokens = 8193 // with four experts each
	c, _, s := goldenModel(t, tinymodel.Tiny)
	ids := sampleIDs(s.Vocab, tokens)
	f32, err := ablate.Parse("half-kv,half-experts") // the host has no bf16: only sums may round otherwise here
	if err != nil {
		t.Fatal(err)
	}
	m, err := Options{GPU: true, Ablate: f32}.NewModel(gputest.Open(t, gputest.Options{Standin: standin.Options{Poison: true}}), c, s, tokens+8)
	if err != nil {
		t.Fatal(err)
	}
	run := func(m *Model, chunk int) ([]float32, []int32) {
		q := newSequence(t, m)
		logits := slices.Clone(feed(t, q, ids, chunk))
		return logits, greedy(t, q, logits, 4)
	}
	logits, answer := run(m, tokens)
	want, wantAnswer := run(newModel(t, c, s, tokens+8, 2), 512)
	if d := apart(logits, want); d > tapTolerance {
		t.Errorf("got a difference of %.2g of the root mean square, want at most %g", d, tapTolerance)
	}
	if !slices.Equal(answer, wantAnswer) {
		t.Errorf("got %v, want %v", answer, wantAnswer)
	}
}

// written is what one level wrote, by dispatch and argument.
type written [][]float32

// tapWritten records all f32 that the plan's dispatches write, level by level.
func tapWritten(q *Sequence) *[]written {
	signatures := map[string]kernels.Kernel{}
	for _, k := range kernels.All() {
		signatures[k.Name] = k
	}
	out := &[]written{}
	q.Options.Tap = func(_ int, ds []metal.Dispatch) {
		var w written
		for _, d := range ds {
			for i, a := range d.Args {
				sig, err := signatures[d.Kernel].Param(i, len(d.Args))
				if err == nil && sig.Access&kernels.Write != 0 && sig.DType == kernels.F32 {
					w = append(w, slices.Clone(a.Buffer.F32()[a.Off/4:(a.Off+a.Len)/4]))
				}
			}
		}
		*out = append(*out, w)
	}
	return out
}

// tapTolerance is how far the whole model may be from the host executor at any tap, in parts of the root mean square there: float32 sums in
// another order differ by parts in 1e6 a dispatch, and the difference grows along layers and tokens through the recurrent state.
const tapTolerance = 1e-3

// TestGPUDemoEqualsHost runs the demo model on both, each on its own state, and compares everything that every level writes.
func TestGPUDemoEqualsHost(t *testing.T) {
	tokens := 3
	if os.Getenv(metalCheck) != "" {
		tokens = 64
	}
	if n, err := strconv.Atoi(os.Getenv("POND_DEMO_TOKENS")); err == nil {
		tokens = n
	}
	if _, err := os.Stat(filepath.Join(demoDir, "model.safetensors.index.json")); err != nil {
		t.Skip("no demo model: ", err)
	}
	ckpt, err := checkpoint.OpenDir(demoDir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ckpt.Close() })
	_, s := loadWeights(t, ckpt)
	ours, theirs := newSequence(t, gpuModel(t, ckpt, s, 512, gputest.Options{})), newSequence(t, newModel(t, ckpt, s, 512, 2))
	prompt := sampleIDs(4000, 19)
	got, want := tapWritten(ours), tapWritten(theirs)
	worst := 0.0
	check := func(what string) {
		t.Helper()
		if len(*got) != len(*want) {
			t.Fatalf("%s: got %d levels, want %d", what, len(*got), len(*want))
		}
		for l := range *want {
			for i := range (*want)[l] {
				if d := apart((*got)[l][i], (*want)[l][i]); d > tapTolerance {
					t.Fatalf("%s: level %d, output %d: got a difference of %.2g of the root mean square, want at most %g", what, l, i, d, tapTolerance)
				} else {
					worst = max(worst, d)
				}
			}
		}
		*got, *want = nil, nil
	}
	a, b := feed(t, ours, prompt, len(prompt)), feed(t, theirs, prompt, len(prompt))
	check("prompt")
	for i := range tokens {
		id := best(b)
		if best(a) != id {
			t.Fatalf("token %d: got %d, want %d", i, best(a), id)
		}
		a, b = slices.Clone(token(t, ours, id)), slices.Clone(token(t, theirs, id))
		check("token " + strconv.Itoa(i))
	}
	t.Logf("%d tokens: largest difference at a tap %.2g of the root mean square", tokens, worst)
}

// apart is the largest difference in parts of the root mean square of want.
func apart(got, want []float32) float64 {
	var squares, most float64
	n := 0
	for i, w := range want {
		if got[i] != w && !(math.IsNaN(float64(got[i])) && math.IsNaN(float64(w))) {
			d := math.Abs(float64(got[i]) - float64(w))
			if math.IsNaN(d) || math.IsInf(d, 0) {
				return math.Inf(1)
			}
			most = max(most, d)
		}
		if v := float64(w); !math.IsInf(v, 0) && !math.IsNaN(v) {
			squares += v * v
			n++
		}
	}
	if most == 0 {
		return 0
	}
	return most / math.Sqrt(squares/float64(max(n, 1)))
}

// TestGPUKeysInParts: a short chunk behind 1,100 tokens, its keys in parts as shipped and in one, by matrices and by vectors. The logits agree within
// the rounding of another order of sums; and a plan that splits is what a long context gets.
func TestGPUKeysInParts(t *testing.T) {
	needMetalCheck(t)
	c, _, s := goldenModel(t, tinymodel.Tiny)
	ids := sampleIDs(320, 1120)
	set, err := ablate.Parse("split-prefill-keys")
	if err != nil {
		t.Fatal(err)
	}
	var want []float32
	for _, o := range []Options{{GPU: true}, {GPU: true, Ablate: set}} {
		t.Run("off: "+o.Ablate.String(), func(t *testing.T) {
			m, err := o.NewModel(gputest.Open(t, gputest.Options{}), c, s, 1200)
			if err != nil {
				t.Fatal(err)
			}
			q := newSequence(t, m)
			feed(t, q, ids[:1100], 550)
			var got []float32
			for at := 1100; at < len(ids); at += 10 {
				for _, part := range [][]int32{ids[at : at+8], ids[at+8 : at+10]} {
					if parts := o.KeyParts(s, len(part), q.Pos()); parts < 2 == (o.Ablate == nil) {
						t.Errorf("%d tokens behind %d: got %d parts", len(part), q.Pos(), parts)
					}
					got = append(got, feed(t, q, part, len(part))...)
				}
			}
			if want == nil {
				want = got
			} else if d := apart(got, want); d > 1e-3 || d == 0 {
				t.Errorf("got a difference of %.2g of the root mean square, want one of at most 1e-3", d)
			}
		})
	}
	if acted := set.Acted(); len(acted) != 1 {
		t.Errorf("got %v that acted, want the one", acted)
	}
}

// TestGPUKeysInPartsAgree is its short form, with parts where a plan as shipped has none.
func TestGPUKeysInPartsAgree(t *testing.T) {
	c, _, s := goldenModel(t, tinymodel.Tiny)
	ids := sampleIDs(320, 60)
	m, err := Options{GPU: true}.NewModel(gputest.Open(t, gputest.Options{}), c, s, 300)
	if err != nil {
		t.Fatal(err)
	}
	var want []float32
	for _, parts := range []int{1, 2, 4} { // of 256 keys or fewer: all but the first are empty
		q := newSequence(t, m)
		feed(t, q, ids[:40], 40)
		got, err := q.ChunkInParts(ids[40:], LastLogits, parts)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = slices.Clone(got)
		} else if d := apart(got, want); d > 1e-3 {
			t.Errorf("%d parts: got a difference of %.2g of the root mean square, want at most 1e-3", parts, d)
		}
	}
}

// TestKeyPartsFillAGPU: on the real shape, a chunk of any length behind 32,768 tokens has at least 240 threadgroups in attention and no part of fewer
// than 512 keys; a first chunk is not split.
func TestKeyPartsFillAGPU(t *testing.T) {
	s, o := realShape(), Options{GPU: true}
	for _, tokens := range []int{1, 7, 8, 17, 32, 64, 128, 256, 512, 2048} {
		parts := o.KeyParts(s, tokens, 32_768)
		p, err := o.PrefillInParts(s, 262_144, tokens, LastLogits, parts)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range p.Dispatches {
			if d.Name != "layers.3.attn.attend" {
				continue
			}
			for _, k := range kernels.All() {
				if k.Name == d.Kernel {
					g := k.Grid(d.Params, d.Items).Groups
					if n := g[0] * g[1] * g[2]; n < 240 && (32_768+tokens)/parts >= 1024 {
						t.Errorf("%d tokens: got %d threadgroups in %d parts, want at least 240", tokens, n, parts)
					} else {
						t.Logf("%d tokens: %d threadgroups, %d parts", tokens, n, parts)
					}
				}
			}
		}
		if (32_768+tokens)/parts < 512 {
			t.Errorf("%d tokens: got %d parts, want 512 keys in each", tokens, parts)
		}
		if n := o.KeyParts(s, tokens, 0); n > 1 && tokens < 1024 {
			t.Errorf("%d tokens at the start: got %d parts, want one", tokens, n)
		}
	}
}
