package inference

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pond/inference/sample"
)

// BenchmarkDemo measures the demo model as a user meets it: the time from opening it to the first token of a 20-token prompt, the
// time from another such request to its first token, the rate at which a prompt of 512 tokens is taken in, and the rate of 64 tokens of answer after a prompt of 128. Run it by `make bench`, on a quiet
// machine; it is no test, since a rate says nothing without the machine.
func BenchmarkDemo(b *testing.B) {
	const dir = "../assets/demo"
	if _, err := os.Stat(filepath.Join(dir, "config.json")); err != nil {
		b.Skip("no demo model: ", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "heldout.txt"))
	if err != nil {
		b.Fatal(err)
	}
	var first, asked, prefill, decode time.Duration
	var prefillTokens, decodeTokens int
	for b.Loop() {
		start := time.Now()
		e, err := Open(context.Background(), Options{Model: FromDir(dir), ID: "pond-demo"})
		if err != nil {
			b.Fatal(err)
		}
		ids := e.Tokenizer().Encode(string(text[:16<<10]))
		run := func(n, answer int) Usage {
			a, err := e.Complete(context.Background(), CompletionRequest{Tokens: ids[:n], Generation: Generation{MaxTokens: answer, Sampling: &sample.Params{}}})
			if err != nil {
				b.Fatal(err)
			}
			r, err := a.Wait()
			if err != nil {
				b.Fatal(err)
			}
			ids = ids[n:] // the next prompt shares nothing with this one
			return r.Usage
		}
		run(20, 1)
		first += time.Since(start)
		start = time.Now()
		run(20, 1)
		asked += time.Since(start)
		u := run(512, 1)
		prefill, prefillTokens = prefill+u.PrefillTime, prefillTokens+u.PromptTokens-u.CachedTokens
		u = run(128, 65)
		decode, decodeTokens = decode+u.DecodeTime, decodeTokens+u.CompletionTokens-1
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(0, "ns/op") // one iteration is a mixture; its length means nothing
	b.ReportMetric(float64(first.Milliseconds())/float64(b.N), "ms-start-to-first-token")
	b.ReportMetric(float64(asked.Microseconds())/1000/float64(b.N), "ms-request-to-first-token")
	b.ReportMetric(float64(prefillTokens)/prefill.Seconds(), "prefill-tok/s")
	b.ReportMetric(float64(decodeTokens)/decode.Seconds(), "decode-tok/s")
}
