package qwen36

// The plans, run by the host executor, against the oracle and against themselves: any split of a prompt, any order inside a
// level and any number of threads must give the same bits.

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pond/inference/checkpoint"
	"pond/inference/tinymodel"
	"pond/metal"
	"pond/metal/host"
)

func newModel(t testing.TB, c *checkpoint.Checkpoint, s Shape, context, threads int) *Model {
	t.Helper()
	dev := host.Open(host.Exact, threads)
	t.Cleanup(func() { dev.Close() })
	m, err := NewModel(dev, c, s, context)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func openModel(t testing.TB, kind tinymodel.Kind, context int) *Model {
	t.Helper()
	c, _, s := goldenModel(t, kind)
	return newModel(t, c, s, context, 2)
}

func newSequence(t testing.TB, m *Model) *Sequence {
	t.Helper()
	q, err := m.NewSequence()
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func best(v []float32) int32 {
	top := 0
	for i, x := range v {
		if x > v[top] {
			top = i
		}
	}
	return int32(top)
}

func token(t testing.TB, q *Sequence, id int32) []float32 {
	t.Helper()
	logits, err := q.Token(id)
	if err != nil {
		t.Fatal(err)
	}
	return logits
}

// feed takes in ids in chunks of n, token by token when n is 0, and returns a copy of the last logits.
func feed(t testing.TB, q *Sequence, ids []int32, n int) []float32 {
	t.Helper()
	var logits []float32
	var err error
	for len(ids) > 0 {
		if n == 0 {
			logits, ids = token(t, q, ids[0]), ids[1:]
			continue
		}
		k := min(n, len(ids))
		if logits, err = q.Chunk(ids[:k], LastLogits); err != nil {
			t.Fatal(err)
		}
		ids = ids[k:]
	}
	return slices.Clone(logits)
}

// greedy writes n tokens after logits.
func greedy(t testing.TB, q *Sequence, logits []float32, n int) []int32 {
	t.Helper()
	var out []int32
	for range n {
		out = append(out, best(logits))
		logits = token(t, q, out[len(out)-1])
	}
	return out
}

func TestGreedyEqualsSpec(t *testing.T) {
	for _, c := range []struct {
		kind tinymodel.Kind
		want []int32
	}{{tinymodel.Tiny, goldenTiny()}, {tinymodel.KernelTrue, goldenKernelTrue()}} {
		t.Run(c.kind.String(), func(t *testing.T) {
			m := openModel(t, c.kind, 64)
			for _, chunk := range []int{0, 5} {
				q := newSequence(t, m)
				if got := greedy(t, q, feed(t, q, goldenPrompt(), chunk), len(c.want)); !slices.Equal(got, c.want) {
					t.Errorf("chunks of %d: got %v, want %v", chunk, got, c.want)
				}
			}
		})
	}
}

// differ says where two results first differ in a bit, or "".
func differ(a, b []float32) string {
	if len(a) != len(b) {
		return fmt.Sprintf("lengths %d and %d", len(a), len(b))
	}
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return fmt.Sprintf("element %d: %v and %v", i, a[i], b[i])
		}
	}
	return ""
}

// stateBits compares two sequences' states; KV rows only as far as they are filled.
func stateBits(a, b *Sequence) string {
	for _, sp := range a.m.StateSpecs() {
		n := sp.LenBytes
		if sp.RowBytes > 0 {
			n = sp.RowBytes * int64(a.Pos())
		}
		if d := differ(a.Buffer(sp.Name).F32()[:n/4], b.Buffer(sp.Name).F32()[:n/4]); d != "" {
			return sp.Name + ": " + d
		}
	}
	return ""
}

// sampleIDs is a reproducible list of ids below n.
func sampleIDs(n, count int) []int32 {
	out := make([]int32, count)
	x := uint64(88172645463325252)
	for i := range out {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		out[i] = int32(x % uint64(n))
	}
	return out
}

// checkSplits takes ids in token by token and in chunks, and wants the same bits in logits and states.
func checkSplits(t *testing.T, m *Model, ids []int32, chunks ...int) {
	t.Helper()
	want := newSequence(t, m)
	logits := feed(t, want, ids, 0)
	for _, n := range chunks {
		q := newSequence(t, m)
		if d := differ(feed(t, q, ids, n), logits); d != "" {
			t.Errorf("chunks of %d against the token loop: logits: %s", n, d)
		}
		if d := stateBits(q, want); d != "" {
			t.Errorf("chunks of %d against the token loop: %s", n, d)
		}
	}
}

func TestAnySplitGivesTheSameBits(t *testing.T) {
	// 300 tokens cross the border of an attention block (256) and of a product's token tile (32), and leave odd tails.
	checkSplits(t, openModel(t, tinymodel.Tiny, 512), sampleIDs(320, 300), 1, 2, 3, 31, 32, 33, 64, 255, 256, 257, 300)
	checkSplits(t, openModel(t, tinymodel.KernelTrue, 64), sampleIDs(512, 37), 3, 37)
}

func TestShuffledLevelsGiveTheSameBits(t *testing.T) {
	m := openModel(t, tinymodel.Tiny, 512)
	ids := sampleIDs(320, 280)
	want := newSequence(t, m)
	logits := feed(t, want, ids, 100)
	logits = append(logits, token(t, want, 7)...)
	for seed := range uint64(4) {
		q := newSequence(t, m)
		q.Shuffle(seed)
		got := feed(t, q, ids, 100)
		got = append(got, token(t, q, 7)...)
		if d := differ(got, logits); d != "" {
			t.Errorf("seed %d: logits: %s", seed, d)
		}
		if d := stateBits(q, want); d != "" {
			t.Errorf("seed %d: %s", seed, d)
		}
	}
}

func TestThreadsDoNotChangeBits(t *testing.T) {
	c, _, s := goldenModel(t, tinymodel.KernelTrue)
	ids := sampleIDs(512, 20)
	var want []float32
	for _, threads := range []int{1, 2, 5} {
		q := newSequence(t, newModel(t, c, s, 64, threads))
		got := feed(t, q, ids, 12)
		if want == nil {
			want = got
		} else if d := differ(got, want); d != "" {
			t.Errorf("%d threads: %s", threads, d)
		}
	}
}

// All logits of a chunk are those of its tokens one by one.
func TestAllLogits(t *testing.T) {
	m := openModel(t, tinymodel.Tiny, 64)
	ids := sampleIDs(320, 40)
	a, b := newSequence(t, m), newSequence(t, m)
	all, err := a.Chunk(ids, AllLogits)
	if err != nil {
		t.Fatal(err)
	}
	all = slices.Clone(all)
	for i, id := range ids {
		if d := differ(all[i*320:(i+1)*320], token(t, b, id)); d != "" {
			t.Fatalf("position %d: %s", i, d)
		}
	}
}

// A snapshot taken anywhere, restored after other tokens have overwritten rows and states, gives a run that never left.
func TestSnapshotRestore(t *testing.T) {
	m := openModel(t, tinymodel.Tiny, 64)
	ids := sampleIDs(320, 24)
	want := newSequence(t, m)
	logits := feed(t, want, ids, 0)
	for at := range len(ids) {
		q := newSequence(t, m)
		feed(t, q, ids[:at], 5)
		snap := q.Snapshot()
		feed(t, q, sampleIDs(300, 9), 4)
		if err := q.Restore(snap); err != nil {
			t.Fatal(err)
		}
		if d := differ(feed(t, q, ids[at:], 7), logits); d != "" {
			t.Errorf("snapshot at %d: %s", at, d)
		}
	}
}

// A sequence that starts over reads nothing of the one before it.
func TestResetForgets(t *testing.T) {
	m := openModel(t, tinymodel.Tiny, 512)
	ids := sampleIDs(320, 12)
	want := feed(t, newSequence(t, m), ids, 0)
	for _, n := range []int{0, 3, 12} {
		q := newSequence(t, m)
		feed(t, q, sampleIDs(320, 400), 50)
		q.Reset()
		if d := differ(feed(t, q, ids, n), want); d != "" {
			t.Errorf("chunks of %d after another sequence: %s", n, d)
		}
	}
}

// tolerance of exact float32 against the oracle in double precision: 4 to 8 layers of sums of some hundred products, each rounded
// at 6e-8 of a value near 1.
const tolerance = 1e-4

func checkNear(t *testing.T, what string, got []float32, want []float64) {
	t.Helper()
	if len(got) < len(want) {
		t.Fatalf("%s: got %d values, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if d := math.Abs(float64(got[i]) - w); !(d <= tolerance*(1+math.Abs(w))) {
			t.Fatalf("%s[%d]: got %v, want %v", what, i, got[i], w)
		}
	}
}

// compare steps the oracle and the decode plan side by side and compares every residual, router logit, expert choice, weight and
// logit; then the states.
func compare(t *testing.T, m *Model, o *oracle, ids []int32) {
	t.Helper()
	q := newSequence(t, m)
	seen := map[string][]float32{}
	q.Options.Tap = func(_ int, ds []metal.Dispatch) {
		for _, d := range ds {
			for i, a := range d.Args {
				if f := a.Buffer.F32(); f != nil {
					seen[fmt.Sprintf("%s#%d", d.Label, i)] = slices.Clone(f[a.Off/4 : (a.Off+a.Len)/4])
				}
			}
		}
	}
	s := m.Shape
	for pos, id := range ids {
		logits := token(t, q, id)
		tr := o.step(id)
		for i, l := range tr.Layers {
			name := fmt.Sprintf("position %d layer %d ", pos, i)
			moe := fmt.Sprintf("layers.%d.moe.", i)
			checkNear(t, name+"residual", seen[moe+"down#3"], l.Residual)
			checkNear(t, name+"router", seen[moe+"router#2"], append(slices.Clone(l.RouterLogits), math.Log(l.SharedGate/(1-l.SharedGate))))
			checkNear(t, name+"weights", seen[moe+"gate_up#4"], append(slices.Clone(l.Weights), l.SharedGate))
			ids := seen[moe+"gate_up#3"]
			for k, e := range l.Experts {
				if got := int(math.Float32bits(ids[k])); got != e {
					t.Fatalf("%sexpert of rank %d: got %d, want %d", name, k, got, e)
				}
			}
		}
		checkNear(t, fmt.Sprintf("position %d logits", pos), logits, tr.Logits)
	}
	for i := range s.Layers {
		if s.Attention(i) {
			checkNear(t, fmt.Sprintf("layer %d keys", i), q.Buffer(StateName("keys", i)).F32(), slices.Concat(o.Keys(i)...))
			checkNear(t, fmt.Sprintf("layer %d values", i), q.Buffer(StateName("values", i)).F32(), slices.Concat(o.Values(i)...))
			continue
		}
		checkNear(t, fmt.Sprintf("layer %d state", i), q.Buffer(StateName("state", i)).F32(), o.GDNState(i))
		for j, row := range o.ConvRows(i) {
			at := (q.Pos() - len(o.ConvRows(i)) + j) % 4 * s.ConvDim()
			checkNear(t, fmt.Sprintf("layer %d conv row %d", i, j), q.Buffer(StateName("window", i)).F32()[at:], row)
		}
	}
}

func TestDecodeEqualsOracle(t *testing.T) {
	for _, kind := range []tinymodel.Kind{tinymodel.Tiny, tinymodel.KernelTrue} {
		t.Run(kind.String(), func(t *testing.T) {
			c, w, s := goldenModel(t, kind)
			n := 40
			if kind == tinymodel.KernelTrue {
				n = 5 // 59 M weights in straight loops over float64: about half a second a token
			}
			compare(t, newModel(t, c, s, 64, 2), newOracle(w, s), append(goldenPrompt(), sampleIDs(300, n)...))
		})
	}
}

// demoDir is the model that ships.
const demoDir = "../../assets/demo"

func TestDemoEqualsOracle(t *testing.T) {
	if _, err := os.Stat(filepath.Join(demoDir, "model.safetensors.index.json")); err != nil {
		t.Skip("no demo model: ", err)
	}
	c, err := checkpoint.OpenDir(demoDir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	w, s := loadWeights(t, c)
	m := newModel(t, c, s, 512, 2)
	compare(t, m, newOracle(w, s), sampleIDs(4000, 6))
	checkSplits(t, m, sampleIDs(4000, 70), 1, 2, 3, 64, 70)
}

// The budget of the real shape (the kernels on a GPU pay for every level), and the bytes that any implementation must move.
func TestDecodePlanBudget(t *testing.T) {
	p, err := Decode(realShape(), 262_144, 32_768)
	if err != nil {
		t.Fatal(err)
	}
	s := p.Summary()
	if s.Dispatches > 330 || s.Levels > 260 {
		t.Errorf("got %d dispatches in %d levels, want at most 330 in 260", s.Dispatches, s.Levels)
	}
	const published = 1_669_561_728 // bytes of weights a token needs, counted from the tensors
	if d := float64(s.WeightBytes)/published - 1; math.Abs(d) > 0.001 {
		t.Errorf("got %d weight bytes a token, want %d", s.WeightBytes, published)
	}
	perLayer := map[string]int{}
	for _, d := range p.Dispatches {
		if f := strings.SplitN(d.Name, ".", 4); f[0] == "layers" {
			perLayer[f[1]]++
		}
	}
	for layer, n := range perLayer {
		if n > 7 {
			t.Errorf("layer %s: got %d dispatches, want at most 7", layer, n)
		}
	}
}

// Dispatches of one level of a layer stack never pile up: every level of decode depends on the one before.
func TestPlansBuildForEveryShape(t *testing.T) {
	_, _, tiny := goldenModel(t, tinymodel.Tiny)
	shapes := map[string]Shape{"real": realShape(), "tiny": tiny}
	for _, name := range []string{"demo", "kernel-true"} {
		var err error
		if shapes[name], err = Named(name); err != nil {
			t.Fatal(err)
		}
	}
	for name, s := range shapes {
		for _, keys := range []int{1, 256, 257, 2048} {
			if _, err := Decode(s, 4096, keys); err != nil {
				t.Errorf("%s decode of %d keys: %v", name, keys, err)
			}
		}
		for _, tokens := range []int{1, 3, 17, 64, 2048} {
			for _, l := range []Logits{LastLogits, AllLogits} {
				if _, err := (Options{GPU: true}).Prefill(s, 4096, tokens, l); err != nil {
					t.Errorf("%s prefill of %d on a GPU: %v", name, tokens, err)
				}
				p, err := Prefill(s, 4096, tokens, l)
				if err != nil {
					t.Errorf("%s prefill of %d: %v", name, tokens, err)
					continue
				}
				if sum := p.Summary(); name == "real" && l == LastLogits && tokens == 2048 && sum.ScratchBytes > 240<<20 {
					t.Errorf("prefill of 2048 holds %d bytes of scratch, want at most 240 MiB", sum.ScratchBytes)
				}
			}
		}
	}
	if _, err := Decode(tiny, 64, 65); err == nil {
		t.Error("more keys than the context: got no error")
	}
	if _, err := Prefill(tiny, 64, 0, LastLogits); err == nil {
		t.Error("a chunk of no tokens: got no error")
	}
}

func TestSequenceRefusesBadTokens(t *testing.T) {
	q := newSequence(t, openModel(t, tinymodel.Tiny, 4))
	for _, ids := range [][]int32{nil, {-1}, {320}, {1, 2, 3, 4, 5}} {
		if _, err := q.Chunk(ids, LastLogits); err == nil {
			t.Errorf("chunk %v in a context of 4: got no error", ids)
		}
	}
	feed(t, q, []int32{1, 2, 3, 4}, 0)
	if _, err := q.Token(1); err == nil {
		t.Error("a fifth token in a context of 4: got no error")
	}
	if q.Pos() != 4 {
		t.Errorf("refused tokens moved the position to %d", q.Pos())
	}
}
