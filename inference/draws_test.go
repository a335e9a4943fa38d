package inference

import (
	"math"
	"math/rand/v2"
	"testing"

	"pond/inference/sample"
	"pond/metal/kernels"
)

// deviceChoice chooses as a device does, by the plain reference of its kernels.
func deviceChoice(t *testing.T, s *sample.Sampler, logits []float32, position int) (id int32, status uint32) {
	t.Helper()
	d, ok := s.Draw(position)
	if !ok {
		t.Fatalf("%+v: not for a device", d)
	}
	p := kernels.SampleParams{N: len(logits), Block: kernels.BestBlock}
	words, marks, choice := make([]uint32, kernels.DrawWords), make([]uint32, p.N), make([]uint32, kernels.ChoiceWords)
	kernels.Draw(d).Put(words)
	list, biases := s.Marks()
	for _, m := range list {
		marks[m.ID] = kernels.Mark(m.Count, m.Seen, m.Bias)
	}
	args := []kernels.Arg{{F32: logits}, {U32: words}, {U32: marks}, {F32: biases}, {U32: make([]uint32, 2*p.Bests())}}
	kernels.LogitBests().Run(args, p, 0, p.Bests(), nil)
	kernels.DrawToken().Run(append(args, kernels.Arg{U32: choice}), p, 0, 1, nil)
	return int32(choice[kernels.ChoiceID]), choice[kernels.ChoiceStatus]
}

// logitsOf are logits of every kind, by number.
func logitsOf(r *rand.Rand, kind, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		v := r.NormFloat64()
		switch kind {
		case 1:
			v *= 10
		case 2:
			v = math.Round(2 * v) // ties
		case 3:
			v = 0.25
		case 4:
			v = math.Copysign(0, v)
		case 5:
			if i != n/2 {
				v = math.Inf(-1)
			}
		case 6:
			if v < 0.5 {
				v = math.Inf(-1)
			}
		case 7:
			v *= 1e38
		case 8:
			v *= 1e-30
		}
		x[i] = float32(v)
	}
	if kind == 6 {
		x[0] = 1
	}
	return x
}

func oneOf[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// TestTheDeviceChoosesTheSameToken: host and device agree on thousands of logits and settings, along answers whose tokens count, with numbers
// at the ends of their ranges.
func TestTheDeviceChoosesTheSameToken(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 1))
	for round := range 3000 {
		n := oneOf(r, 1, 2, 5, 255, 256, 300, 700)
		p := sample.Params{Temperature: oneOf(r, 0, 0.1, 0.6, 1, 1.7, 1e-30, 1e9), TopK: oneOf(r, 1, 2, 20, 64, 256), TopP: oneOf(r, 0, 1, 0.95, 0.5, 1e-9, r.Float64()),
			MinP: oneOf(r, 0, 0.05, 1, r.Float64()), Seed: r.Uint64()}
		if r.IntN(2) == 0 {
			p.Presence, p.Frequency = oneOf(r, 0, 1.5, -2, r.Float64()), oneOf(r, 0, 0.1, 2, -r.Float64())
		}
		if r.IntN(3) == 0 {
			p.Repetition = oneOf(r, 1.1, 0.5, 1, 1e300, 1e-300, math.MaxFloat64)
		}
		if r.IntN(3) == 0 {
			p.Bias = map[int32]float64{}
			for range r.IntN(5) {
				p.Bias[r.Int32N(int32(n))] = oneOf(r, -100, 100, r.Float64(), 0)
			}
		}
		prompt := make([]int32, r.IntN(4))
		for i := range prompt {
			prompt[i] = r.Int32N(int32(n))
		}
		s, err := sample.New(p, n, prompt)
		if err != nil {
			t.Fatal(err)
		}
		logits := logitsOf(r, r.IntN(9), n)
		for position := range 6 {
			want, err := s.Next(logits, position, -1)
			got, status := deviceChoice(t, s, logits, position)
			if (err != nil) != (status != kernels.Chosen) {
				t.Fatalf("round %d: %+v: host: %v, device: status %d", round, p, err, status)
			}
			if err != nil {
				break
			}
			if got != want.ID {
				t.Fatalf("round %d, position %d: %+v: the host chose %d (%v), the device %d (%v)", round, position, p, want.ID, logits[want.ID], got, logits[got])
			}
			s.Accept(got)
		}
	}
}

// TestTheDeviceRefusesWhatTheHostRefuses: no token is ever chosen from logits that are no numbers.
func TestTheDeviceRefusesWhatTheHostRefuses(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		logits []float32
		status uint32
		id     int32
	}{
		{[]float32{1, nan, 3, nan}, kernels.NotFinite, 1}, {[]float32{1, -nan, 3}, kernels.NotFinite, 1}, {[]float32{1, 2, inf}, kernels.NotFinite, 2},
		{[]float32{-inf, -inf}, kernels.AllBanned, 0},
	} {
		for _, p := range []sample.Params{{}, {Temperature: 1, TopK: 2}, {Temperature: 1, TopK: 2, Presence: 1, Repetition: 1.2}} {
			s, err := sample.New(p, len(c.logits), []int32{0, 1})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Next(c.logits, 0, -1); err == nil {
				t.Fatalf("%v: the host chose", c.logits)
			}
			if id, status := deviceChoice(t, s, c.logits, 0); status != c.status || id != c.id {
				t.Errorf("%v with %+v: got status %d of token %d, want %d of %d", c.logits, p, status, id, c.status, c.id)
			}
		}
	}
}

// TestWhatIsNotForADevice: more candidates, or more biases, than it takes.
func TestWhatIsNotForADevice(t *testing.T) {
	many := map[int32]float64{}
	for id := range int32(sample.MostBiases + 1) {
		many[id] = 1
	}
	for _, c := range []struct {
		p    sample.Params
		want bool
	}{
		{sample.Params{}, true}, {sample.Params{TopK: 0, TopP: 0.9}, true}, {sample.Params{Temperature: 1}, false}, {sample.Params{Temperature: 1, TopK: 256}, true},
		{sample.Params{Temperature: 1, TopK: 257}, false}, {sample.Params{Temperature: 1, TopK: 20, Bias: many}, false}, {sample.Params{Bias: map[int32]float64{3: 1}}, true},
	} {
		s, err := sample.New(c.p, 1000, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := s.Draw(0); ok != c.want {
			t.Errorf("%+v: got %v, want %v", c.p, ok, c.want)
		}
	}
}

// TestDevicesDrawByTheOdds: over many seeds a device's draws come as often as their probabilities say.
func TestDevicesDrawByTheOdds(t *testing.T) {
	logits := []float32{1, -1, 0.5, 2, 0, -3, 1.5, 0.7}
	const temperature, draws = 0.8, 40_000
	var odds [8]float64
	total := 0.0
	for i, x := range logits {
		odds[i] = math.Exp(float64(x) / temperature)
		total += odds[i]
	}
	var seen [8]int
	for seed := range uint64(draws) {
		s, err := sample.New(sample.Params{Temperature: temperature, TopK: 8, Seed: seed}, len(logits), nil)
		if err != nil {
			t.Fatal(err)
		}
		id, _ := deviceChoice(t, s, logits, int(seed%1000))
		seen[id]++
	}
	chi := 0.0
	for i, n := range seen {
		want := odds[i] / total * draws
		chi += (float64(n) - want) * (float64(n) - want) / want
	}
	if chi > 24.3 { // 7 degrees of freedom: one in a thousand is above, and the seeds are fixed
		t.Errorf("got counts %v, chi squared %.1f", seen, chi)
	}
}
