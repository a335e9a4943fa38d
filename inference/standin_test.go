//go:build !darwin

package inference

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"pond/inference/memgate"
	"pond/inference/tinymodel"
	"pond/metal/gpu"
	"pond/metal/gputest"
	"pond/metal/standin"
)

// The engine over Metal, played by the stand-in: the same answers as the host's, one owner of all encoding, and a GPU that fails.

// openStandin opens the tiny model; the engine's end must show no leak and no misuse.
func openStandin(t *testing.T, o Options) (*Engine, *standin.Library) {
	t.Helper()
	if err := Available(Standin); err != nil {
		t.Skip("executor standin: ", err)
	}
	o.Executor = Standin
	e := openTiny(t, o)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return e, e.dev.(*standinDevice).library
}

func TestStandinAnswersAsTheHost(t *testing.T) {
	g := Generation{MaxTokens: 24, Sampling: seeded(7)}
	want := ask(t, openTiny(t, Options{}), user("hello"), g)
	e, _ := openStandin(t, Options{})
	if !strings.Contains(e.Info().Executor, "metal") {
		t.Errorf("executor: got %q, want metal on the stand-in", e.Info().Executor)
	}
	got := ask(t, e, user("hello"), g)
	if got.Answer.Content != want.Answer.Content || got.Answer.Reasoning != want.Answer.Reasoning || got.Usage.CompletionTokens != want.Usage.CompletionTokens {
		t.Errorf("got %q, thought %q; the host gives %q, thought %q", got.Answer.Content, got.Answer.Reasoning, want.Answer.Content, want.Answer.Reasoning)
	}
	// warm: the kept state is the GPU's
	if again := ask(t, e, user("hello"), g); again.Answer.Content != want.Answer.Content || again.Usage.CachedTokens == 0 {
		t.Errorf("warm: got %q with %d tokens kept, want %q", again.Answer.Content, again.Usage.CachedTokens, want.Answer.Content)
	}
}

// Clients that come together, leave in the middle and come again at once once made two threads encode at the same time, which ends the
// process on a Mac. The stand-in objects to any such use, and Close tells.
func TestOneOwnerOfEncoding(t *testing.T) {
	e, _ := openStandin(t, Options{})
	g := Generation{MaxTokens: 6, Sampling: seeded(3)}
	want := ask(t, e, user("one after the other"), g)
	for range 2 {
		var clients sync.WaitGroup
		for range 3 {
			clients.Go(func() {
				a, err := e.Chat(context.Background(), ChatRequest{Conversation: user("one after the other"), Generation: g})
				if err != nil {
					t.Error(err)
					return
				}
				r, err := a.Wait()
				if err != nil || r.Answer.Content != want.Answer.Content {
					t.Errorf("got %q, %v, want %q", r.Answer.Content, err, want.Answer.Content)
				}
			})
		}
		clients.Go(func() { // leaves during its prompt
			ctx, leave := context.WithCancel(context.Background())
			left := g
			left.OnPrefill = func(int, int) { leave() }
			a, err := e.Chat(ctx, ChatRequest{Conversation: user(strings.Repeat("a long prompt ", 20)), Generation: left})
			if err == nil {
				_, err = a.Wait()
			}
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want the cancellation", err)
			}
		})
		clients.Wait()
	}
}

// A GPU that fails costs one request its answer and the next one nothing.
func TestAFailedGPUCostsOneRequest(t *testing.T) {
	e, lib := openStandin(t, Options{})
	g := Generation{MaxTokens: 6, Sampling: seeded(3)}
	want := ask(t, e, user("hello"), g)
	lib.Inject(standin.FaultCommandBuffer, 2, "page-fault")
	a, err := e.Chat(context.Background(), ChatRequest{Conversation: user("hello"), Generation: g})
	if err != nil {
		t.Fatal(err)
	}
	var fault *gpu.FaultError
	if r, err := a.Wait(); !errors.As(err, &fault) {
		t.Fatalf("got %q, %v, want the GPU's failure", r.Answer.Content, err)
	}
	if got := ask(t, e, user("hello"), g); got.Answer.Content != want.Answer.Content {
		t.Errorf("after the failure: got %q, want %q", got.Answer.Content, want.Answer.Content)
	}
}

// The stand-in copies weights into ordinary memory, which cannot be evicted: the memory gate has to count them.
func TestStandinHoldsItsWeights(t *testing.T) {
	gen, err := tinymodel.Generate(tinymodel.Tiny)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := gen.Write(dir); err != nil {
		t.Fatal(err)
	}
	for x, want := range map[Executor]memgate.Placement{Host: memgate.Mapped, Auto: memgate.Mapped, Standin: memgate.Held} {
		n, err := MemoryNeed(Options{Model: FromDir(dir), Executor: x})
		if err != nil {
			t.Fatal(err)
		}
		if n.Placement != want {
			t.Errorf("%s: got placement %v, want %v", x, n.Placement, want)
		}
	}
}

// What `pond doctor --self-test` runs, with the head sizes of the full model.
func TestStandinSelfTest(t *testing.T) {
	if err := Available(Standin); err != nil {
		t.Skip("executor standin: ", err)
	}
	r, err := SelfTest(context.Background(), Standin)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range r.Differing() {
		t.Errorf("%s differs: %s", k.Kernel, k.Failure)
	}
	if !strings.HasPrefix(r.From, "their text, because this program is in no app") {
		t.Errorf("got kernels from %q", r.From)
	}
}

// The same on a GPU with tensor units, whose kernels round what they multiply: `pond doctor --self-test` said that moe_down_grouped_bf16 differs there.
func TestStandinSelfTestByTensorOps(t *testing.T) {
	device := gputest.Open(t, gputest.Options{Standin: standin.Options{MacOS: 26, Family: 10}})
	names := device.TensorKernels()
	r, err := selfTest(context.Background(), Standin, unclosed{device})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range r.Kernels {
		if unused := []string{"moe_down_grouped", "q4_gemm_add"}; slices.Contains(names, k.Kernel) && (k.Failure != "" || k.Dispatches == 0 && !slices.Contains(unused, k.Kernel)) {
			t.Errorf("%s by tensor operations: got %d dispatches, %q", k.Kernel, k.Dispatches, k.Failure)
		}
	}
	if len(names) == 0 || !strings.Contains(r.Device, "with tensor operations") {
		t.Errorf("got %s, want tensor operations", r.Device)
	}
}

// unclosed is a device that is closed by whoever opened it.
type unclosed struct{ *gputest.Device }

func (unclosed) Close() error { return nil }

// Three answers in one pass of the GPU are those that each is alone.
func TestStandinAnswersTogether(t *testing.T) {
	e, _ := openStandin(t, Options{ContextTokens: 512})
	request := func(i int) CompletionRequest {
		return CompletionRequest{Prompt: strings.Repeat("abc"[:i+1], 3), Generation: Generation{MaxTokens: 8 + i, Sampling: endless(e, uint64(i))}}
	}
	var want [3]string
	for i := range want {
		e.DropSnapshots()
		a, err := e.Complete(context.Background(), request(i))
		if err != nil {
			t.Fatal(err)
		}
		r, err := a.Wait()
		if err != nil {
			t.Fatal(err)
		}
		want[i] = text(r)
	}
	e.DropSnapshots()
	e.Pause()
	var answers []*Answer
	for i := range want {
		a, err := e.Complete(context.Background(), request(i))
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, a)
	}
	e.Resume()
	for i, a := range answers {
		if r, err := a.Wait(); err != nil || text(r) != want[i] {
			t.Errorf("answer %d: got %s, %v, want what it is alone, %s", i, text(r), err, want[i])
		}
	}
	if steps := e.Stats().Steps; steps[1]+steps[2] == 0 {
		t.Errorf("got steps by answers %v, want some of several", steps)
	}
}
