package sample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
)

func newSampler(t testing.TB, p Params, vocab int, prompt ...int32) *Sampler {
	t.Helper()
	s, err := New(p, vocab, prompt)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func next(t testing.TB, s *Sampler, logits []float32, position, top int) Choice {
	t.Helper()
	c, err := s.Next(logits, position, top)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func randomLogits(r *rand.Rand, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(3 * r.NormFloat64())
	}
	return out
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(a)+math.Abs(b)) }

// slowProbabilities is the reference for all filters: the warpers of Hugging
// Face transformers one after the other, each on the full array, with
// probabilities made anew at each step. Ties of top-k go to the lower id.
func slowProbabilities(p Params, logits []float32) []float64 {
	scores := make([]float64, len(logits))
	for i, x := range logits {
		scores[i] = float64(x) / p.Temperature
	}
	softmax := func() []float64 {
		out := make([]float64, len(scores))
		sum := 0.0
		for i, x := range scores {
			out[i] = math.Exp(x - slices.Max(scores))
			sum += out[i]
		}
		for i := range out {
			out[i] /= sum
		}
		return out
	}
	order := func() []int { // descending
		ids := make([]int, len(scores))
		for i := range ids {
			ids[i] = i
		}
		sort.SliceStable(ids, func(a, b int) bool { return scores[ids[a]] > scores[ids[b]] })
		return ids
	}
	if p.TopK > 0 {
		for _, id := range order()[min(p.TopK, len(scores)):] {
			scores[id] = math.Inf(-1)
		}
	}
	if p.TopP > 0 && p.TopP < 1 {
		probabilities, ids, sum := softmax(), order(), 0.0
		for i := len(ids) - 1; i > 0; i-- { // ascending, as transformers does; the likeliest stays
			if sum += probabilities[ids[i]]; sum > 1-p.TopP {
				break
			}
			scores[ids[i]] = math.Inf(-1)
		}
	}
	if p.MinP > 0 {
		probabilities := softmax()
		limit := p.MinP * slices.Max(probabilities)
		for i, q := range probabilities {
			if q < limit {
				scores[i] = math.Inf(-1)
			}
		}
	}
	return softmax()
}

func TestFiltersAgainstReference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	pickOne := func(values ...float64) float64 { return values[r.IntN(len(values))] }
	for range 3000 {
		p := Params{
			Temperature: pickOne(0.1, 0.6, 0.7, 1, 2, 10),
			TopK:        int(pickOne(0, 0, 1, 2, 5, 20, 1000)),
			TopP:        pickOne(0, 1, 0.01, 0.5, 0.8, 0.95, 0.999),
			MinP:        pickOne(0, 0, 0.01, 0.1, 0.5, 1),
		}
		logits := randomLogits(r, 1+r.IntN(60))
		for range r.IntN(3) {
			logits[r.IntN(len(logits))] = float32(math.Inf(-1))
		}
		best, err := argmax(logits)
		if err != nil {
			continue // all banned
		}
		kept := newSampler(t, p, len(logits)).keep(logits, logits[best])
		got := make([]float64, len(logits))
		total := 0.0
		for i, c := range kept {
			if i > 0 && kept[i-1].id >= c.id {
				t.Fatalf("%+v: ids not ascending: %v", p, kept)
			}
			total += float64(c.weight)
		}
		for _, c := range kept {
			got[c.id] = float64(c.weight) / total
		}
		for id, want := range slowProbabilities(p, logits) {
			if math.Abs(got[id]-want) > 1e-7 { // weights are exact to a part in 2^24
				t.Fatalf("%+v, logits %v: probability of %d: got %v, want %v", p, logits, id, got[id], want)
			}
		}
	}
}

// Draws follow the exact probabilities: chi-square, seed fixed.
func TestDistribution(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, p := range []Params{
		{Temperature: 1},
		{Temperature: 0.7, TopK: 20, TopP: 0.8},
		{Temperature: 1, TopK: 20, TopP: 0.95},
		{Temperature: 2, MinP: 0.05},
		{Temperature: 1.3, TopP: 0.9, Seed: 1 << 63},
	} {
		logits := randomLogits(r, 40)
		want := slowProbabilities(p, logits)
		s := newSampler(t, p, len(logits))
		const draws = 50_000
		counts := make([]int, len(logits))
		for position := range draws {
			counts[next(t, s, logits, position, -1).ID]++
		}
		chi, degrees, rest, restWant := 0.0, -1, 0, 0.0
		for id, q := range want {
			if q == 0 && counts[id] > 0 {
				t.Errorf("%+v: token %d drawn %d times, want never", p, id, counts[id])
			}
			if q*draws < 10 { // too rare for the test: one class together
				rest += counts[id]
				restWant += q * draws
				continue
			}
			d := float64(counts[id]) - q*draws
			chi += d * d / (q * draws)
			degrees++
		}
		if restWant >= 10 {
			d := float64(rest) - restWant
			chi += d * d / restWant
			degrees++
		}
		// Mean degrees, variance 2*degrees: 4 sigma.
		if limit := float64(degrees) + 4*math.Sqrt(2*float64(degrees)); chi > limit {
			t.Errorf("%+v: chi-square %.1f with %d degrees, want at most %.1f", p, chi, degrees, limit)
		}
	}
}

func TestSameSeedSameTokens(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	const vocab, steps = 500, 60
	logits := make([][]float32, steps)
	for i := range logits {
		logits[i] = randomLogits(r, vocab)
	}
	run := func(seed uint64, from int) (out []int32) {
		s := newSampler(t, Params{Temperature: 1, TopK: 50, Presence: 0.5, Seed: seed}, vocab)
		for i := range steps {
			id := next(t, s, logits[i], from+i, -1).ID
			s.Accept(id)
			out = append(out, id)
		}
		return out
	}
	if a, b := run(7, 0), run(7, 0); !slices.Equal(a, b) {
		t.Errorf("the same seed twice: got %v and %v", a, b)
	}
	if a, b := run(7, 0), run(8, 0); slices.Equal(a, b) {
		t.Errorf("seeds 7 and 8: got the same tokens %v", a)
	}
	if a, b := run(7, 0), run(7, 1); slices.Equal(a, b) {
		t.Errorf("positions from 0 and from 1: got the same tokens %v", a)
	}
	// Asking for log-probabilities changes no token.
	s := newSampler(t, Params{Temperature: 1, Seed: 7}, vocab)
	for i := range steps {
		if a, b := next(t, s, logits[i], i, -1).ID, next(t, s, logits[i], i, 20).ID; a != b {
			t.Fatalf("position %d: got %d without and %d with log-probabilities", i, a, b)
		}
	}
}

func TestGreedyAndTies(t *testing.T) {
	logits := []float32{1, 3, -1, 3, 3, 0, 99}
	s := newSampler(t, Params{}, 6) // the 99 is padding
	if c := next(t, s, logits, 0, 4); c.ID != 1 || fmt.Sprint(ids(c)) != "[1 3 4 0]" {
		t.Errorf("greedy: got %d of %v, want 1 of [1 3 4 0]", c.ID, ids(c))
	}
	seen := map[int32]int{}
	s = newSampler(t, Params{Temperature: 1, TopK: 2}, 6)
	for position := range 400 {
		seen[next(t, s, logits, position, -1).ID]++
	}
	if len(seen) != 2 || seen[1] < 150 || seen[3] < 150 {
		t.Errorf("top_k 2 of three equal logits: got %v, want the two lower ids about equally", seen)
	}
	s = newSampler(t, Params{Temperature: 1e-300}, 6)
	for position := range 100 {
		if id := next(t, s, logits, position, -1).ID; id != 1 && id != 3 && id != 4 {
			t.Errorf("tiny temperature: got %d, want one of the largest", id)
		}
	}
}

func ids(c Choice) (out []int32) {
	for _, t := range c.Top {
		out = append(out, t.ID)
	}
	return out
}

func TestPenalties(t *testing.T) {
	logits := []float32{2, -2, 1, 0.5, 0, -1}
	for name, c := range map[string]struct {
		p       Params
		prompt  []int32
		accepts []int32
		want    []float32
	}{
		"nothing":            {Params{}, []int32{0, 1}, []int32{2}, logits},
		"repetition":         {Params{Repetition: 2}, []int32{0, 1, 0}, []int32{3, 3, 4}, []float32{1, -4, 1, 0.25, 0, -1}},
		"repetition below 1": {Params{Repetition: 0.5}, []int32{0, 1}, nil, []float32{4, -1, 1, 0.5, 0, -1}},
		"repetition 1":       {Params{Repetition: 1}, []int32{0, 1}, []int32{2}, logits},
		"presence":           {Params{Presence: 1.5}, []int32{0, 1}, []int32{2, 2, 5}, []float32{2, -2, -0.5, 0.5, 0, -2.5}},
		"frequency":          {Params{Frequency: 0.5}, []int32{0, 1}, []int32{2, 2, 2, 5}, []float32{2, -2, -0.5, 0.5, 0, -1.5}},
		"negative presence":  {Params{Presence: -2}, nil, []int32{4}, []float32{2, -2, 1, 0.5, 2, -1}},
		"bias":               {Params{Bias: map[int32]float64{1: 100, 0: -100}}, nil, nil, []float32{-98, 98, 1, 0.5, 0, -1}},
		"all": {Params{Repetition: 2, Presence: 1, Frequency: 0.5, Bias: map[int32]float64{0: 3, 5: 1}}, []int32{5}, []int32{0, 0},
			// 0: 2/2 - 2*0.5 - 1 + 3, 5: -1*2 + 1
			[]float32{2, -2, 1, 0.5, 0, -1}},
		"foreign ids": {Params{Presence: 1, Repetition: 2}, nil, []int32{-1, 6, 1 << 30}, logits},
	} {
		s := newSampler(t, c.p, len(logits), c.prompt...)
		for _, id := range c.accepts {
			s.Accept(id)
		}
		given := slices.Clone(logits)
		if got := s.adjust(given, nil); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
		next(t, s, given, 0, 3)
		if !slices.Equal(given, logits) {
			t.Errorf("%s: Next changed its logits to %v", name, given)
		}
	}
}

func TestBias(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for position := range 500 {
		logits := randomLogits(r, 100)
		forced := r.Int32N(100)
		banned := next(t, newSampler(t, Params{}, 100), logits, 0, -1).ID
		s := newSampler(t, Params{Temperature: 1, Bias: map[int32]float64{forced: 100}}, 100)
		if id := next(t, s, logits, position, -1).ID; id != forced {
			t.Fatalf("bias 100: got %d, want %d", id, forced)
		}
		for _, temperature := range []float64{0, 1} {
			s = newSampler(t, Params{Temperature: temperature, Bias: map[int32]float64{banned: -100}}, 100)
			if id := next(t, s, logits, position, -1).ID; id == banned {
				t.Fatalf("bias -100, temperature %v: got %d, want another", temperature, id)
			}
		}
	}
	// The sampler keeps its own copy of the map.
	bias := map[int32]float64{3: 100}
	s := newSampler(t, Params{Bias: bias}, 10)
	bias[5], bias[30] = 100, 100
	delete(bias, 3)
	if id := next(t, s, make([]float32, 10), 0, -1).ID; id != 3 {
		t.Errorf("a map changed after New: got %d, want 3", id)
	}
}

func TestLogprobs(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 200 {
		const vocab = 50
		logits := append(randomLogits(r, vocab), 50, 60) // padding takes no part
		p := Params{Temperature: 0.3, TopK: 3, TopP: 0.5, Presence: 1, Bias: map[int32]float64{7: 2}}
		s := newSampler(t, p, vocab)
		s.Accept(9)
		adjusted := slices.Clone(logits[:vocab])
		adjusted[9]--
		adjusted[7] += 2
		want := slowProbabilities(Params{Temperature: 1}, adjusted)
		c := next(t, s, logits, 0, 60)
		if len(c.Top) != vocab || !near(c.Logprob, math.Log(want[c.ID])) {
			t.Fatalf("got %d tokens and log-probability %v, want %d and %v", len(c.Top), c.Logprob, vocab, math.Log(want[c.ID]))
		}
		sum := 0.0
		for i, top := range c.Top {
			if !near(top.Logprob, math.Log(want[top.ID])) {
				t.Fatalf("token %d: got %v, want %v", top.ID, top.Logprob, math.Log(want[top.ID]))
			}
			if i > 0 && c.Top[i-1].Logprob < top.Logprob {
				t.Fatalf("top tokens not in order: %v", c.Top)
			}
			sum += math.Exp(top.Logprob)
		}
		if !near(sum, 1) {
			t.Fatalf("probabilities sum to %v, want 1", sum)
		}
		if few := next(t, s, logits, 0, 5); !slices.Equal(few.Top, c.Top[:5]) || few.ID != c.ID {
			t.Fatalf("top 5: got %v, want %v", few.Top, c.Top[:5])
		}
		if none := next(t, s, logits, 0, 0); none.Top != nil || none.Logprob != c.Logprob {
			t.Fatalf("top 0: got %+v", none)
		}
		if none := next(t, s, logits, 0, -1); none.Top != nil || none.Logprob != 0 {
			t.Fatalf("top -1: got %+v", none)
		}
	}
}

func TestNextRefuses(t *testing.T) {
	inf := float32(math.Inf(1))
	for name, c := range map[string]struct {
		logits []float32
		want   string
	}{
		"NaN":        {[]float32{0, 1, float32(math.NaN())}, "logits[2]: got NaN, want a number or -Inf"},
		"+Inf":       {[]float32{0, inf, 1}, "logits[1]: got +Inf, want a number or -Inf"},
		"all banned": {[]float32{-inf, -inf, -inf}, "logits: got -Inf for each of 3 tokens, want a finite one"},
		"too few":    {[]float32{0, 1}, "logits: got 2, want at least 3"},
	} {
		for _, temperature := range []float64{0, 1} {
			_, err := newSampler(t, Params{Temperature: temperature}, 3).Next(c.logits, 0, 2)
			if err == nil || err.Error() != c.want {
				t.Errorf("%s: got error %v, want %q", name, err, c.want)
			}
		}
	}
	s := newSampler(t, Params{Temperature: 1}, 2)
	if c, err := s.Next([]float32{-inf, 1, inf}, 0, 2); err != nil || c.ID != 1 || c.Logprob != 0 {
		t.Errorf("-Inf and padding of +Inf: got %+v, %v, want token 1", c, err)
	}
}

// Large but finite logits stay finite under a repetition penalty.
func TestPenaltyOverflow(t *testing.T) {
	s := newSampler(t, Params{Repetition: 1e-300, Temperature: 1}, 3, 0, 1)
	if c := next(t, s, []float32{1e38, -1e38, 0}, 0, 0); c.ID != 0 || c.Logprob != 0 {
		t.Errorf("got %+v, want token 0", c)
	}
	s = newSampler(t, Params{Repetition: 1e300}, 2, 0, 1)
	if c := next(t, s, []float32{-1e30, -1e38}, 0, 0); c.ID != 0 || math.IsNaN(c.Logprob) {
		t.Errorf("got %+v, want token 0", c)
	}
}

func TestValidate(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for want, p := range map[string]Params{
		"":  {},
		" ": {Temperature: 2, TopK: 20, TopP: 0.95, MinP: 1, Repetition: 1.1, Presence: 2, Frequency: -2, Bias: map[int32]float64{5: -100}},
		"temperature: got -0.1, want a finite number not below 0":      {Temperature: -0.1},
		"temperature: got NaN, want a finite number not below 0":       {Temperature: nan},
		"temperature: got +Inf, want a finite number not below 0":      {Temperature: inf},
		"top_k: got -1, want a finite number not below 0":              {TopK: -1},
		"top_p: got 1.5, want a number from 0 to 1":                    {TopP: 1.5},
		"top_p: got NaN, want a number from 0 to 1":                    {TopP: nan},
		"min_p: got -0.5, want a number from 0 to 1":                   {MinP: -0.5},
		"repetition_penalty: got -1, want a finite number not below 0": {Repetition: -1},
		"presence_penalty: got 2.5, want a number from -2 to 2":        {Presence: 2.5},
		"frequency_penalty: got -3, want a number from -2 to 2":        {Frequency: -3},
		"logit_bias: got token -7, want one not below 0":               {Bias: map[int32]float64{-7: 1}},
		"logit_bias[3]: got 101, want a number from -100 to 100":       {Bias: map[int32]float64{3: 101, 4: 200}},
		"logit_bias[3]: got NaN, want a number from -100 to 100":       {Bias: map[int32]float64{3: nan}},
	} {
		got := ""
		if err := p.Validate(); err != nil {
			got = err.Error()
		}
		if got != strings.TrimSpace(want) {
			t.Errorf("Validate(%+v): got %q, want %q", p, got, strings.TrimSpace(want))
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for want, c := range map[string]struct {
		p      Params
		vocab  int
		prompt []int32
	}{
		"vocab: got 0, want at least 1":             {Params{}, 0, nil},
		"top_p: got 2, want a number from 0 to 1":   {Params{TopP: 2}, 5, nil},
		"logit_bias: got token 5, want one below 5": {Params{Bias: map[int32]float64{5: 1}}, 5, nil},
		"prompt: got token 5, want one below 5":     {Params{Repetition: 2}, 5, []int32{1, 5}},
		"prompt: got token -1, want one below 5":    {Params{Repetition: 2}, 5, []int32{-1}},
	} {
		if _, err := New(c.p, c.vocab, c.prompt); err == nil || err.Error() != want {
			t.Errorf("New: got error %v, want %q", err, want)
		}
	}
}

// Known answers of Random123's kat_vectors for philox4x32, 10 rounds.
func TestPhilox(t *testing.T) {
	all := uint32(0xffffffff)
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{all, all, all, all}, [2]uint32{all, all}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0}, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := philox(c.counter, c.key); got != c.want {
			t.Errorf("philox(%x, %x): got %x, want %x", c.counter, c.key, got, c.want)
		}
	}
	if got, want := Uniform(0, 0), float64(0x6627e8)/(1<<24); got != want {
		t.Errorf("Uniform(0, 0): got %v, want %v", got, want)
	}
}

func TestUniform(t *testing.T) {
	const n = 100_000
	for name, draw := range map[string]func(i int) float64{
		"positions": func(i int) float64 { return Uniform(42, i) },
		"seeds":     func(i int) float64 { return Uniform(uint64(i), 5) },
		"both":      func(i int) float64 { return Uniform(uint64(i), i) },
	} {
		var boxes [100]int
		lag := 0.0
		before := draw(n)
		for i := range n {
			u := draw(i)
			if u < 0 || u >= 1 || u != float64(float32(u)) {
				t.Fatalf("%s %d: got %v, want a float32 in [0, 1)", name, i, u)
			}
			boxes[int(u*100)]++
			lag += (u - 0.5) * (before - 0.5)
			before = u
		}
		chi := 0.0
		for _, count := range boxes {
			d := float64(count) - n/100
			chi += d * d / (n / 100)
		}
		if chi > 99+4*math.Sqrt(2*99) {
			t.Errorf("%s: chi-square %.1f with 99 degrees", name, chi)
		}
		// The sum of n products has standard deviation sqrt(n)/12.
		if math.Abs(lag) > 4*math.Sqrt(n)/12 {
			t.Errorf("%s: neighbours correlate: %.1f", name, lag)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	const vocab = 248_077
	logits := randomLogits(rand.New(rand.NewPCG(6, 6)), 248_320)
	prompt := make([]int32, 8000)
	for i := range prompt {
		prompt[i] = int32(i * 31)
	}
	for _, c := range []struct {
		name string
		p    Params
		top  int
	}{
		{"greedy", Params{}, -1},
		{"top-k-20", Params{Temperature: 1, TopK: 20, TopP: 0.95}, -1},
		{"top-k-20-presence", Params{Temperature: 1, TopK: 20, TopP: 0.95, Presence: 1.5}, -1},
		{"top-k-20-logprobs", Params{Temperature: 1, TopK: 20, TopP: 0.95}, 5},
		{"repetition", Params{Temperature: 1, TopK: 20, Repetition: 1.1}, -1},
		{"top-p", Params{Temperature: 1, TopP: 0.95}, -1},
		{"min-p", Params{Temperature: 1, MinP: 0.05}, -1},
		{"temperature", Params{Temperature: 1}, -1},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := newSampler(b, c.p, vocab, prompt...)
			s.Accept(5)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				next(b, s, logits, i, c.top)
			}
		})
	}
}

func TestSplit(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for range 5000 {
		c := make([]candidate, 2+r.IntN(30))
		for i := range c {
			c[i] = candidate{id: int32(i), logit: float32(r.IntN(6))}
		}
		r.Shuffle(len(c), func(i, j int) { c[i], c[j] = c[j], c[i] })
		sorted := slices.SortedFunc(slices.Values(c), descending)
		n := split(c)
		if n <= 0 || n >= len(c) {
			t.Fatalf("split of %d: got %d", len(c), n)
		}
		slices.SortFunc(c[:n], descending)
		slices.SortFunc(c[n:], descending)
		if !slices.Equal(c, sorted) {
			t.Fatalf("split at %d: got %v, want %v", n, c, sorted)
		}
	}
}
