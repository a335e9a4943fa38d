package qwen36

// The golden numbers of the two small models, computed elsewhere in Python from the same recipe, against the oracle.

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pond/inference/checkpoint"
	"pond/inference/tinymodel"
)

// goldenModel makes a small model in memory and loads it as a directory would be.
func goldenModel(t testing.TB, k tinymodel.Kind) (*checkpoint.Checkpoint, *Weights, Shape) {
	t.Helper()
	m, err := tinymodel.Generate(k)
	if err != nil {
		t.Fatal(err)
	}
	return loadModel(t, m)
}

func loadModel(t testing.TB, m *tinymodel.Model) (*checkpoint.Checkpoint, *Weights, Shape) {
	t.Helper()
	c := openGenerated(t, m)
	w, s := loadWeights(t, c)
	return c, w, s
}

// openGenerated opens a model in memory.
func openGenerated(t testing.TB, m *tinymodel.Model) *checkpoint.Checkpoint {
	t.Helper()
	fsys, err := m.FS()
	if err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.OpenFS(fsys)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// loadWeights reads a checkpoint's configuration and names its weights.
func loadWeights(t testing.TB, c *checkpoint.Checkpoint) (*Weights, Shape) {
	t.Helper()
	config, err := c.File("config.json")
	if err != nil {
		t.Fatal(err)
	}
	generation, err := c.File("generation_config.json")
	if err != nil {
		t.Fatal(err)
	}
	s, q, err := ParseConfig(config, generation)
	if err != nil {
		t.Fatal(err)
	}
	w, err := LoadWeights(c, s, q)
	if err != nil {
		t.Fatal(err)
	}
	return w, s
}

// goldenPrompt is the prompt of all golden numbers.
func goldenPrompt() []int32 { return []int32{21, 190, 44, 9, 162} }

// goldenTiny and goldenKernelTrue are the greedy continuations of goldenPrompt.
func goldenTiny() []int32 { return []int32{267, 0, 145, 311, 299} }
func goldenKernelTrue() []int32 {
	return []int32{162, 51, 460, 276, 411, 41, 246, 79, 199, 117, 8, 71, 183}
}

// goldenDigits is the tolerance of numbers printed with six decimals.
const goldenDigits = 1.5e-6

// The five largest logits at each position of prompt and continuation, and the sum of the squares of all 320.
var goldenLogits = [9]struct {
	token  int32
	ids    [5]int
	logits [5]float64
	sumSq  float64
}{
	{21, [5]int{123, 219, 304, 307, 288}, [5]float64{3.983502, 2.567795, 2.481704, 2.431457, 2.262400}, 321.0411},
	{190, [5]int{94, 217, 39, 166, 35}, [5]float64{3.394385, 2.916079, 2.664572, 2.526759, 2.520964}, 340.9572},
	{44, [5]int{281, 156, 290, 106, 240}, [5]float64{2.703176, 2.510133, 2.417176, 2.370835, 2.261265}, 304.9176},
	{9, [5]int{64, 265, 34, 306, 79}, [5]float64{2.814329, 2.798443, 2.741530, 2.704448, 2.448906}, 349.3044},
	{162, [5]int{267, 97, 58, 308, 192}, [5]float64{2.898778, 2.723936, 2.546614, 2.128968, 2.014527}, 347.9938},
	{267, [5]int{0, 154, 235, 120, 152}, [5]float64{2.891908, 2.624713, 2.550997, 2.528831, 2.504555}, 305.2657},
	{0, [5]int{145, 24, 248, 4, 253}, [5]float64{3.885027, 3.099915, 2.960925, 2.614812, 2.527164}, 391.9505},
	{145, [5]int{311, 292, 307, 123, 289}, [5]float64{3.162448, 2.781354, 2.478378, 2.471832, 2.468203}, 368.1120},
	{311, [5]int{299, 229, 232, 23, 196}, [5]float64{3.329389, 2.786111, 2.414887, 2.344730, 2.119194}, 349.6562},
}

// Residual stream, routing and shared gate after each layer at the first and the last prompt position.
var goldenLayers = [8]struct {
	position, layer int
	norm, first     float64
	experts         [4]int
	weights         [4]float64
	sharedGate      float64
}{
	{0, 0, 9.011792, -0.642621, [4]int{14, 7, 4, 6}, [4]float64{.766461, .160031, .038546, .034962}, .749214},
	{0, 1, 13.753687, -0.306336, [4]int{8, 11, 10, 2}, [4]float64{.928409, .041961, .017255, .012374}, .605008},
	{0, 2, 15.068604, -1.628216, [4]int{6, 3, 4, 13}, [4]float64{.437105, .205864, .194150, .162882}, .529520},
	{0, 3, 18.706232, -2.111654, [4]int{6, 10, 3, 4}, [4]float64{.420210, .389030, .102337, .088424}, .446567},
	{4, 0, 9.143174, 1.138358, [4]int{13, 10, 12, 0}, [4]float64{.616465, .193237, .159504, .030794}, .177152},
	{4, 1, 11.515181, 1.154532, [4]int{5, 14, 13, 1}, [4]float64{.724537, .115411, .094638, .065414}, .387504},
	{4, 2, 14.296222, 0.998867, [4]int{7, 15, 14, 11}, [4]float64{.773996, .173023, .027100, .025882}, .751873},
	{4, 3, 16.302609, 1.416185, [4]int{12, 14, 2, 8}, [4]float64{.628227, .238066, .099127, .034580}, .415897},
}

// What the layers carry after the first and the last prompt position.
var goldenStates = [2]struct {
	position int
	gdnNorms [3]float64 // over all heads, layers 0, 1, 2
	key      [4]float64 // layer 3, head 0, the newest row's first values
	convRow  [3]float64 // layer 0, the newest row's first values
}{
	{0, [3]float64{0.758868, 0.907580, 1.004076}, [4]float64{0.508974, 1.701329, 0.352268, -0.322558}, [3]float64{-0.435162, -0.704509, -1.040695}},
	{4, [3]float64{1.333403, 1.875993, 2.243638}, [4]float64{-0.305971, 1.736863, 0.299805, 0.510661}, [3]float64{1.178009, -0.501261, -0.015480}},
}

// goldenValue is the newest cached value row of layer 3, head 0 at position 4.
var goldenValue = [4]float64{0.222819, 0.799398, -0.382385, 0.904961}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: got %.7f, want %.6f", what, got, want)
	}
}

func TestOracleTinyGolden(t *testing.T) {
	for _, c := range []struct {
		precision precision
		tolerance float64 // over the rounding of the printed numbers: float32 storage costs some 1e-6
	}{{double, goldenDigits}, {single, 2e-5}} {
		t.Run(map[precision]string{double: "double", single: "single"}[c.precision], func(t *testing.T) {
			_, w, s := goldenModel(t, tinymodel.Tiny)
			o := newOracle(w, s)
			o.precision = c.precision
			var traces []oracleTrace
			for p, g := range goldenLogits {
				trace := o.step(g.token)
				traces = append(traces, trace)
				for _, st := range goldenStates {
					if st.position == p {
						checkGoldenState(t, o, p, st.gdnNorms, st.key, st.convRow, c.tolerance)
					}
				}
				if p == 4 {
					for i, want := range goldenValue {
						near(t, fmt.Sprintf("position 4: value[%d]", i), o.Values(3)[4][i], want, c.tolerance)
					}
				}
				top := topIDs(trace.Logits, 5)
				if !slices.Equal(top, g.ids[:]) {
					t.Errorf("position %d: top 5: got %v, want %v", p, top, g.ids)
				}
				for i, id := range g.ids {
					near(t, fmt.Sprintf("position %d: logit %d", p, id), trace.Logits[id], g.logits[i], c.tolerance)
				}
				near(t, fmt.Sprintf("position %d: sum of squares", p), dot(trace.Logits, trace.Logits), g.sumSq, 6e-5+20*c.tolerance)
				if p >= 4 && int32(top[0]) != goldenTiny()[p-4] {
					t.Errorf("position %d: got token %d, want %d", p, top[0], goldenTiny()[p-4])
				}
			}
			for _, g := range goldenLayers {
				at := fmt.Sprintf("position %d, layer %d: ", g.position, g.layer)
				trace := traces[g.position].Layers[g.layer]
				near(t, at+"norm", math.Sqrt(dot(trace.Residual, trace.Residual)), g.norm, c.tolerance)
				near(t, at+"x[0]", trace.Residual[0], g.first, c.tolerance)
				near(t, at+"shared gate", trace.SharedGate, g.sharedGate, c.tolerance)
				if !slices.Equal(trace.Experts, g.experts[:]) {
					t.Errorf("%sexperts: got %v, want %v", at, trace.Experts, g.experts)
				}
				for i, want := range g.weights {
					near(t, fmt.Sprintf("%sweight %d", at, i), trace.Weights[i], want, c.tolerance)
				}
			}
			gap := math.Inf(1)
			for _, trace := range traces {
				for _, l := range trace.Layers {
					gap = min(gap, rankGap(l.RouterLogits, s.TopK))
				}
			}
			near(t, "smallest router gap", gap, 0.110, 6e-4)
		})
	}
}

func checkGoldenState(t *testing.T, o *oracle, p int, gdnNorms [3]float64, key [4]float64, convRow [3]float64, tolerance float64) {
	t.Helper()
	for layer, want := range gdnNorms {
		state := o.GDNState(layer)
		near(t, fmt.Sprintf("position %d: gdn state norm, layer %d", p, layer), math.Sqrt(dot(state, state)), want, tolerance)
	}
	for i, want := range key {
		near(t, fmt.Sprintf("position %d: key[%d]", p, i), o.Keys(3)[p][i], want, tolerance)
	}
	rows := o.ConvRows(0)
	for i, want := range convRow {
		near(t, fmt.Sprintf("position %d: conv row[%d]", p, i), rows[len(rows)-1][i], want, tolerance)
	}
}

func TestOracleKernelTrueGolden(t *testing.T) {
	_, w, s := goldenModel(t, tinymodel.KernelTrue)
	want := goldenKernelTrue()
	got, traces := newOracle(w, s).greedy(goldenPrompt(), len(want))
	if !slices.Equal(got, want) {
		t.Errorf("greedy tokens: got %d, want %d", got, want)
	}
	margin, at := math.Inf(1), -1
	for i, trace := range traces[len(goldenPrompt())-1:] {
		if m := rankGap(trace.Logits, 1); m < margin {
			margin, at = m, i
		}
	}
	near(t, "smallest margin of the first token", margin, 0.061, 6e-4)
	if at >= 0 && want[at] != 276 {
		t.Errorf("smallest margin: got it at token %d, want it at 276", want[at])
	}
	gap := math.Inf(1)
	for _, trace := range traces[:9] {
		for _, l := range trace.Layers {
			gap = min(gap, rankGap(l.RouterLogits, s.TopK))
		}
	}
	near(t, "smallest router gap", gap, 0.0146, 6e-5)
}

// TestOracleMutations shows that the golden numbers notice each mistake: most change the greedy tokens, the few mild
// ones move a logit by more than 0.1, twice the tolerance of half precision.
func TestOracleMutations(t *testing.T) {
	_, w, s := goldenModel(t, tinymodel.Tiny)
	for m := faithful; m <= upstreamL2Epsilon; m++ {
		t.Run(m.String(), func(t *testing.T) {
			o := newOracle(w, s)
			o.mutation = m
			got, traces := o.greedy(goldenPrompt(), len(goldenTiny()))
			moved := 0.0
			for p, g := range goldenLogits {
				for i, id := range g.ids {
					moved = max(moved, math.Abs(traces[p].Logits[id]-g.logits[i]))
				}
			}
			same := slices.Equal(got, goldenTiny())
			switch m {
			case faithful:
				if !same || moved > goldenDigits {
					t.Errorf("got tokens %d and logits that moved by %g, want %d and the golden ones", got, moved, goldenTiny())
				}
			case upstreamL2Epsilon:
				if !same {
					t.Errorf("got tokens %d, want %d: the two conventions agree on them", got, goldenTiny())
				}
			case unnormalisedTopK, wholeHeadRotary:
				if moved < 0.1 {
					t.Errorf("got logits that moved by %g, want at least 0.1", moved)
				}
			default:
				if same {
					t.Errorf("got the golden tokens %d, want others", got)
				}
			}
		})
	}
}

// topIDs returns the n indices of the largest values, largest first.
func topIDs(x []float64, n int) []int {
	ids := make([]int, len(x))
	for i := range ids {
		ids[i] = i
	}
	slices.SortStableFunc(ids, func(a, b int) int {
		if x[a] > x[b] {
			return -1
		}
		if x[a] < x[b] {
			return 1
		}
		return 0
	})
	return ids[:n]
}

// rankGap is the distance between the values of rank n and n+1, counted from 1.
func rankGap(x []float64, n int) float64 {
	ids := topIDs(x, n+1)
	return x[ids[n-1]] - x[ids[n]]
}
