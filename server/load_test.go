package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pond/inference"
	"pond/inference/chat"
	"pond/server/openai"
)

const loadClients = 64

// resources is what a server may leak.
type resources struct {
	goroutines, files int
	heapBytes         uint64
}

func resourcesNow() (r resources) {
	runtime.GC()
	runtime.GC() // what finalizers let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r.goroutines, r.heapBytes = runtime.NumGoroutine(), m.HeapAlloc
	files, err := os.ReadDir("/proc/self/fd") // not on a Mac
	if err == nil {
		r.files = len(files)
	}
	return r
}

// TestLoad is `make load`: 64 clients for POND_LOAD, streaming or not, one in four leaving in the middle. Nobody gets another's answer, nothing
// is left over, and what the server adds to the engine's step is printed.
func TestLoad(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("POND_LOAD"))
	if err != nil {
		t.Skip("POND_LOAD names no length of time: make load runs this")
	}
	dir := inference.FromDir("../assets/demo")
	engine, err := inference.Open(context.Background(), inference.Options{Model: dir, ID: "pond-demo", ContextTokens: 1024, QueueLimit: 4 * loadClients})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	l := serve(t, Options{Engine: engine})
	ask := func(i int) string {
		return fmt.Sprintf(`"messages":[{"role":"user","content":"Tell me about number %d."}],"max_tokens":12,"seed":%d,"temperature":0.8`, i, i)
	}
	want := make([]string, 8)
	said := func(m openai.AnswerMessage) string {
		text := m.Reasoning + "|"
		if m.Content != nil {
			text += *m.Content
		}
		return text
	}
	for i := range want {
		want[i] = said(l.chat(ask(i)).Choices[0].Message)
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: loadClients}}
	client.CloseIdleConnections()
	http.DefaultClient.CloseIdleConnections()
	waitFor(t, "an idle server", func() bool { return l.server.InFlight() == 0 })
	before := resourcesNow()

	var whole, streamed, left atomic.Int64
	deadline := time.Now().Add(length)
	var clients sync.WaitGroup
	for n := range loadClients {
		clients.Go(func() {
			for turn := n; time.Now().Before(deadline); turn++ {
				i := turn % len(want)
				switch {
				case turn%4 == 3:
					if err := leaveInTheMiddle(client, l.url, ask(i)); err != nil {
						t.Errorf("client %d, leaving: %v", n, err)
						return
					}
					left.Add(1)
				case turn%2 == 0:
					got, err := wholeAnswer(client, l.url, ask(i))
					if err != nil || len(got.Choices) != 1 || said(got.Choices[0].Message) != want[i] {
						t.Errorf("client %d, question %d: got %+v, %v; want %q", n, i, got, err, want[i])
						return
					}
					whole.Add(1)
				default:
					got, err := streamedAnswer(client, l.url, ask(i))
					if err != nil || got != want[i] {
						t.Errorf("client %d, question %d, streamed: got %q, %v; want %q", n, i, got, err, want[i])
						return
					}
					streamed.Add(1)
				}
			}
		})
	}
	clients.Wait()
	ended := time.Now()
	waitFor(t, "an idle server", func() bool { st := engine.Stats(); return l.server.InFlight()+st.Active+st.Queued == 0 })
	t.Logf("%d whole, %d streamed, %d left in the middle; in flight 0 after %v", whole.Load(), streamed.Load(), left.Load(), time.Since(ended).Round(time.Millisecond))
	if whole.Load() == 0 || streamed.Load() == 0 {
		t.Error("too few answers to show anything")
	}
	client.CloseIdleConnections()
	var after resources
	waitFor(t, "goroutines and files to be given back", func() bool {
		after = resourcesNow()
		return after.goroutines <= before.goroutines+2 && after.files <= before.files+2
	})
	t.Logf("before %+v, after %+v", before, after)
	if after.heapBytes > before.heapBytes+32<<20 {
		t.Errorf("got %d bytes of memory more than before, want at most 32 MiB", after.heapBytes-before.heapBytes)
	}
	logOverhead(t, l, engine)
}

func post(client *http.Client, url, body string) (*http.Response, error) {
	resp, err := client.Post(url+"/v1/chat/completions", "application/json", strings.NewReader("{"+body+"}"))
	if err == nil && resp.StatusCode != 200 {
		resp.Body.Close()
		return nil, fmt.Errorf("got status %d", resp.StatusCode)
	}
	return resp, err
}

func wholeAnswer(client *http.Client, url, body string) (c openai.Chat, err error) {
	resp, err := post(client, url, body)
	if err != nil {
		return c, err
	}
	defer resp.Body.Close()
	return c, json.NewDecoder(resp.Body).Decode(&c)
}

func streamedAnswer(client *http.Client, url, body string) (string, error) {
	resp, err := post(client, url, body+`,"stream":true`)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var reasoning, content strings.Builder
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case !ok:
			continue
		case data == "[DONE]":
			return reasoning.String() + "|" + content.String(), nil
		}
		var c openai.ChatChunk
		if err := json.Unmarshal([]byte(data), &c); err != nil || len(c.Choices) != 1 {
			return "", fmt.Errorf("got the chunk %s, %v", data, err)
		}
		d := c.Choices[0].Delta
		reasoning.WriteString(d.Reasoning)
		if d.Content != nil {
			content.WriteString(*d.Content)
		}
	}
	return "", fmt.Errorf("the stream ended without [DONE]")
}

// leaveInTheMiddle closes the connection after the first comment: while it waits, in the prompt or in the answer, as it comes.
func leaveInTheMiddle(client *http.Client, url, body string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "POST", url+"/v1/chat/completions", strings.NewReader("{"+body+`,"stream":true}`))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		return fmt.Errorf("got status %d", resp.StatusCode)
	}
	_, err = bufio.NewReader(resp.Body).ReadString('\n')
	return err
}

// logOverhead prints the time of a token through HTTP beside the engine's own, the median of several runs in turn. It asserts nothing: that is
// for a quiet machine.
func logOverhead(t *testing.T, l *live, engine *inference.Engine) {
	const tokens, rounds = 128, 7
	fields := fmt.Sprintf(`"messages":[{"role":"user","content":"Tell a story."}],"max_tokens":%d,"temperature":0,"logit_bias":{}`, tokens)
	req, err := openai.DecodeChat([]byte("{" + fields + "}"))
	if err != nil {
		t.Fatal(err)
	}
	var direct, served []float64
	for range rounds {
		g, err := l.server.generation(req.Generation, true)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		a, err := engine.Chat(context.Background(), inference.ChatRequest{Conversation: chat.Conversation{Messages: []chat.Message{{Role: "user", Content: chat.TextContent("Tell a story.")}}}, Generation: g})
		if err != nil {
			t.Fatal(err)
		}
		r, err := a.Wait()
		if err != nil {
			t.Fatal(err)
		}
		direct = append(direct, time.Since(start).Seconds()/float64(r.Usage.CompletionTokens))
		start = time.Now()
		if _, err := streamedAnswer(http.DefaultClient, l.url, fields); err != nil {
			t.Fatal(err)
		}
		served = append(served, time.Since(start).Seconds()/float64(r.Usage.CompletionTokens))
	}
	slices.Sort(direct)
	slices.Sort(served)
	d, s := direct[rounds/2], served[rounds/2]
	t.Logf("a token: %.3f ms by the engine alone, %.3f ms streamed: the server adds %.1f %%", d*1000, s*1000, (s/d-1)*100)
}
