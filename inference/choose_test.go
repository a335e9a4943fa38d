package inference

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pond/inference/ablate"
	"pond/inference/sample"
)

// ways are settings that a device draws by, by name.
func ways() map[string]sample.Params {
	return map[string]sample.Params{
		"greedy":                {},
		"card":                  {Temperature: 0.6, TopP: 0.95, TopK: 20, Seed: 11},
		"narrow":                {Temperature: 1.3, TopK: 2, Seed: 12},
		"wide":                  {Temperature: 1.5, TopK: 256, MinP: 0.02, Seed: 13},
		"penalties":             {Temperature: 0.8, TopK: 20, Presence: 1.5, Frequency: 0.4, Seed: 14},
		"repetition":            {Temperature: 0.8, TopK: 40, Repetition: 1.3, Seed: 15},
		"all":                   {Temperature: 1, TopK: 64, TopP: 0.9, MinP: 0.01, Presence: -0.5, Frequency: 0.7, Repetition: 1.1, Bias: map[int32]float64{7: 3, 9: -100, 200: 1.5}, Seed: 16},
		"greedy with penalties": {Presence: 1, Frequency: 0.5, Repetition: 1.2},
	}
}

// played is what an engine answers to each of the ways, and again going on from where the first answer ended.
func played(t *testing.T, o Options, names []string, tokens int) (out []string, e *Engine) {
	t.Helper()
	e = openTiny(t, o)
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, name := range names {
		p := ways()[name]
		prompt := "a short prompt, " + name
		for round := range 2 {
			a, err := e.Complete(context.Background(), CompletionRequest{Prompt: prompt, Generation: Generation{MaxTokens: tokens, Sampling: &p}})
			if err != nil {
				t.Fatal(err)
			}
			r, err := a.Wait()
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprintf("%s, round %d: %s, cached %d", name, round, text(r), r.Usage.CachedTokens))
			prompt += text(r)
		}
	}
	return out, e
}

func names() (out []string) {
	for name := range ways() {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func needExecutor(t *testing.T, x Executor) {
	t.Helper()
	if err := Available(x); err != nil {
		t.Skip(err)
	}
}

// TestTheDevicesChoiceSwitchedOff: answers are the same to the last token with the device's choice and with the host's, with the next step begun
// ahead of its time and without.
func TestTheDevicesChoiceSwitchedOff(t *testing.T) {
	for _, x := range []Executor{HostExact, Host, Standin} {
		t.Run(string(x), func(t *testing.T) {
			needExecutor(t, x)
			all, tokens := names(), 40
			if x == Standin {
				all, tokens = []string{"all", "card", "greedy"}, 12
			}
			want, e := played(t, Options{Executor: x, ContextTokens: 2048, ChunkTokens: 64}, all, tokens)
			st := e.Stats()
			if st.ChosenOnHost != int64(2*len(all)) || st.ChosenOnDevice == 0 {
				t.Errorf("got %d tokens chosen on the host and %d on the device, want the first of each of %d answers, and the rest", st.ChosenOnHost, st.ChosenOnDevice, 2*len(all))
			}
			for _, name := range []ablate.Switch{ablate.DeviceSampler, ablate.DeviceToken, ablate.FusedChoice} {
				off, err := ablate.Parse(string(name))
				if err != nil {
					t.Fatal(err)
				}
				got, e := played(t, Options{Executor: x, ContextTokens: 2048, ChunkTokens: 64, Ablate: off}, all, tokens)
				for i, w := range want {
					if got[i] != w {
						t.Errorf("%s off: got\n%s\nwant\n%s", name, got[i], w)
					}
				}
				acts := name != ablate.DeviceToken || x == Standin // the host begins nothing ahead of its time
				if got := slices.Equal(off.Acted(), []ablate.Switch{name}); got != acts {
					t.Errorf("%s off: got %v that acted", name, off.Acted())
				}
				if st := e.Stats(); (name == ablate.DeviceSampler) != (st.ChosenOnDevice == 0) {
					t.Errorf("%s off: got %d tokens chosen on the device", name, st.ChosenOnDevice)
				}
			}
		})
	}
}

// TestWhatTheHostChooses: what asks for all logits is chosen on the host, and counted there.
func TestWhatTheHostChooses(t *testing.T) {
	e := openTiny(t, Options{Executor: HostExact, ContextTokens: 512})
	for name, g := range map[string]Generation{
		"log-probabilities": {Sampling: &sample.Params{}, Logprobs: true}, "no top-k": {Sampling: &sample.Params{Temperature: 1, Seed: 3}},
		"a large top-k": {Sampling: &sample.Params{Temperature: 1, TopK: sample.MostKept + 1, Seed: 3}},
	} {
		before := e.Stats()
		g.MaxTokens = 10
		a, err := e.Complete(context.Background(), CompletionRequest{Prompt: "host " + name, Generation: g})
		if err != nil {
			t.Fatal(err)
		}
		r, err := a.Wait()
		if err != nil {
			t.Fatal(err)
		}
		after := e.Stats()
		if n := after.ChosenOnHost - before.ChosenOnHost; n != int64(r.Usage.CompletionTokens) || after.ChosenOnDevice != before.ChosenOnDevice {
			t.Errorf("%s: got %d tokens chosen on the host and %d on the device, want all %d on the host", name, n, after.ChosenOnDevice-before.ChosenOnDevice, r.Usage.CompletionTokens)
		}
	}
}

// TestAnswersThatEndWithAStepInFlight: a stop text, a limit, a client that leaves: the step that began ahead of its time is forgotten, and the
// conversation goes on as it does where no step ever is ahead.
func TestAnswersThatEndWithAStepInFlight(t *testing.T) {
	for _, x := range []Executor{HostExact, Standin} {
		t.Run(string(x), func(t *testing.T) {
			needExecutor(t, x)
			off, err := ablate.Parse(string(ablate.DeviceToken))
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for i, set := range []*ablate.Set{off, nil} {
				e := openTiny(t, Options{Executor: x, ContextTokens: 2048, ChunkTokens: 64, Ablate: set})
				got := endings(t, e)
				if err := e.Close(); err != nil {
					t.Error(err)
				}
				if i == 0 {
					want = got
				}
				for k := range got {
					if got[k] != want[k] {
						t.Errorf("with steps ahead of their time: got\n%s\nwant\n%s", got[k], want[k])
					}
				}
			}
		})
	}
}

// endings ends answers in several ways, and asks again each time with what was said so far.
func endings(t *testing.T, e *Engine) (out []string) {
	t.Helper()
	ask := func(prompt string, g Generation) string {
		g.Sampling = &sample.Params{Temperature: 0.9, TopK: 30, Presence: 0.5, Seed: 5}
		a, err := e.Complete(context.Background(), CompletionRequest{Prompt: prompt, Generation: g})
		if err != nil {
			t.Fatal(err)
		}
		r, err := a.Wait()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s, %s, cached %d", text(r), r.Finish, r.Usage.CachedTokens))
		return text(r)
	}
	whole := ask("where does it end", Generation{MaxTokens: 24})
	stop := ""
	for _, word := range strings.SplitAfter(whole, "") {
		if len(word) > 0 && word[0] < 0x80 && strings.Index(whole, word) > len(whole)/3 {
			stop = word
			break
		}
	}
	said := "where does it end"
	if stop != "" {
		said += ask(said, Generation{MaxTokens: 24, Stop: []string{stop}}) + stop
	}
	said += ask(said, Generation{MaxTokens: 1})
	said += ask(said, Generation{MaxTokens: 2})
	said += ask(said, Generation{MaxTokens: 9})
	// a client that leaves: what it got depends on when, so only what comes after is compared
	ctx, leave := context.WithCancel(context.Background())
	a, err := e.Complete(ctx, CompletionRequest{Prompt: "leaving " + said, Generation: Generation{MaxTokens: 200, Sampling: endless(e, 3)}})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		a.Next()
	}
	leave()
	if _, err := a.Wait(); err == nil {
		t.Error("the client left, and its answer is whole")
	}
	ask(said, Generation{MaxTokens: 9})
	return out
}
