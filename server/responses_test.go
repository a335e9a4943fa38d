package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"pond/inference"
	"pond/server/openai"
)

// respond sends a request of the Responses API that must succeed; body is without the braces.
func (l *live) respond(body string) openai.Response {
	l.Helper()
	status, _, answer := l.post("/v1/responses", "{"+body+"}")
	if status != 200 {
		l.Fatalf("%s\ngot status %d: %s", body, status, answer)
	}
	var r openai.Response
	strictly(l, answer, &r)
	return r
}

// call sends a request without a body.
func (l *live) call(method, path string) (int, []byte) {
	l.Helper()
	r, err := http.NewRequest(method, l.url+path, nil)
	if err != nil {
		l.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		l.Fatal(err)
	}
	defer resp.Body.Close()
	var raw json.RawMessage
	if err := json.NewDecoder(resp.Body).Decode(&raw); err != nil {
		l.Fatal(err)
	}
	return resp.StatusCode, raw
}

// quick answers with four letters, the same on every machine.
const quick = `"max_output_tokens":4,"logit_bias":{"104":100},"reasoning":{"effort":"none"}`

// A stored response can be fetched, gone on from, listed and deleted.
func TestStoredResponses(t *testing.T) {
	l := serve(t, Options{})
	first := l.respond(`"input":"My name is Ann.",` + quick)
	status, body := l.call("GET", "/v1/responses/"+first.ID)
	var again openai.Response
	strictly(t, body, &again)
	if status != 200 || again.ID != first.ID || again.Output[0].ID != first.Output[0].ID {
		t.Errorf("get: got status %d and %s", status, body)
	}
	// Gone on from by its id: the prompt is the same as with all turns sent again, and so is the answer.
	said, _ := json.Marshal((*first.Output[0].Content)[0].Text)
	next := l.respond(`"input":"Who am I?","previous_response_id":"` + first.ID + `",` + quick)
	whole := l.respond(`"input":[{"role":"user","content":"My name is Ann."},{"role":"assistant","content":` + string(said) + `},{"role":"user","content":"Who am I?"}],` + quick)
	if next.Usage.InputTokens != whole.Usage.InputTokens || (*next.Output[0].Content)[0].Text != (*whole.Output[0].Content)[0].Text || *next.PreviousResponseID != first.ID {
		t.Errorf("by its id: got %+v of %d tokens, want %+v of %d", next.Output, next.Usage.InputTokens, whole.Output, whole.Usage.InputTokens)
	}
	// By reference to its items.
	reference := l.respond(`"input":[{"role":"user","content":"My name is Ann."},{"type":"item_reference","id":"` + first.Output[0].ID + `"},{"role":"user","content":"Who am I?"}],` + quick)
	if reference.Usage.InputTokens != whole.Usage.InputTokens {
		t.Errorf("by reference: got %d tokens, want %d", reference.Usage.InputTokens, whole.Usage.InputTokens)
	}
	// A streamed one is stored as well.
	_, _, stream := l.post("/v1/responses", `{"stream":true,"input":"x",`+quick+`}`)
	if status, _ := l.call("GET", "/v1/responses/"+foldResponse(t, stream).ID); status != 200 {
		t.Errorf("streamed: got status %d, want it stored", status)
	}
	// Items: newest first, one page after the other.
	_, body = l.call("GET", "/v1/responses/"+whole.ID+"/input_items?limit=2")
	var items openai.ItemList
	strictly(t, body, &items)
	if len(items.Data) != 2 || !items.HasMore || !strings.Contains(string(items.Data[0]), "Who am I?") {
		t.Errorf("items: got %s", body)
	}
	_, body = l.call("GET", "/v1/responses/"+whole.ID+"/input_items?limit=2&after="+*items.LastID)
	strictly(t, body, &items)
	if len(items.Data) != 1 || items.HasMore || !strings.Contains(string(items.Data[0]), "Ann") {
		t.Errorf("second page: got %s", body)
	}
	if status, _ := l.call("GET", "/v1/responses/"+whole.ID+"/input_items?order=up"); status != 400 {
		t.Errorf("order up: got status %d, want 400", status)
	}
	if status, body := l.call("POST", "/v1/responses/"+whole.ID+"/cancel"); status != 400 {
		t.Errorf("cancelling one that does not run in the background: got status %d and %s, want 400", status, body)
	}
	if status, body := l.call("DELETE", "/v1/responses/"+first.ID); status != 200 || !strings.Contains(string(body), `"deleted":true`) {
		t.Errorf("delete: got status %d and %s", status, body)
	}
	if status, _ := l.call("GET", "/v1/responses/"+first.ID); status != 404 {
		t.Errorf("after delete: got status %d, want 404", status)
	}
	if r := l.respond(`"store":false,"input":"x",` + quick); r.Store {
		t.Error("got store true, want false")
	} else if status, _ := l.call("GET", "/v1/responses/"+r.ID); status != 404 {
		t.Errorf("not stored: got status %d, want 404", status)
	}
}

// A response in the background runs without its client, and ends when it is told to, deleted, or when the server ends.
func TestBackgroundResponse(t *testing.T) {
	l := serve(t, Options{Engine: tiny(t, inference.Options{ContextTokens: 32768})})
	long := `"input":"x","background":true,"temperature":2,"top_k":0,"top_p":1,"logit_bias":{"288":-100,"257":-100,"256":-100,"258":-100},"seed":3`
	get := func(id string) (r openai.Response) {
		_, body := l.call("GET", "/v1/responses/"+id)
		strictly(t, body, &r)
		return r
	}
	short := l.respond(`"input":"x","background":true,` + quick)
	if short.Status != "queued" {
		t.Errorf("got status %s at once, want queued", short.Status)
	}
	waitFor(t, "the end of a short one", func() bool { return get(short.ID).Status == "incomplete" })
	if r := get(short.ID); len(r.Output) == 0 || r.Usage.OutputTokens != 4 {
		t.Errorf("got %+v, want 4 tokens", r)
	}
	running := l.respond(long)
	waitFor(t, "the long one to run", func() bool { return get(running.ID).Status == "in_progress" })
	if status, body := l.call("POST", "/v1/responses/"+running.ID+"/cancel"); status != 200 || !strings.Contains(string(body), `"cancelled"`) {
		t.Errorf("cancel: got status %d and %s", status, body)
	}
	l.idle()
	waitFor(t, "the cancelled one to say so", func() bool { return get(running.ID).Status == "cancelled" })
	gone := l.respond(long)
	l.call("DELETE", "/v1/responses/"+gone.ID)
	l.idle()
	if status, _ := l.call("GET", "/v1/responses/"+gone.ID); status != 404 {
		t.Errorf("deleted while it ran: got status %d, want 404", status)
	}
	l.respond(long) // the server's end ends it
}

// With truncation the oldest turns go, the instructions and the last question stay; without it the numbers come back.
func TestTruncation(t *testing.T) {
	l := serve(t, Options{Engine: tiny(t, inference.Options{ContextTokens: 512})})
	var turns []string
	for i := range 12 {
		turns = append(turns, fmt.Sprintf(`{"role":"user","content":"question %d %s"},{"role":"assistant","content":"answer"}`, i, strings.Repeat("x", 40)))
	}
	input := `"instructions":"Be brief.","input":[` + strings.Join(turns, ",") + `,{"role":"user","content":"last"}],` + quick
	if status, _, body := l.post("/v1/responses", "{"+input+"}"); status != 400 || !strings.Contains(string(body), "context_length_exceeded") {
		t.Errorf("without truncation: got status %d and %s, want 400", status, body)
	}
	r := l.respond(input + `,"truncation":"auto"`)
	if r.Usage.InputTokens > 508 || r.Usage.InputTokens < 300 {
		t.Errorf("got a prompt of %d tokens, want most of what fits into 512", r.Usage.InputTokens)
	}
}

// The store is bounded in number and in bytes.
func TestStoreBounds(t *testing.T) {
	var s responseStore
	for i := range maxStored + 10 {
		s.put(&stored{response: openai.Response{ID: fmt.Sprint(i), Output: []openai.ResponseItem{{ID: "item" + fmt.Sprint(i)}}}})
	}
	if n, _ := s.size(); n != maxStored {
		t.Errorf("got %d kept, want %d", n, maxStored)
	}
	if _, ok := s.item("item0"); ok {
		t.Error("the item of one that went is still there")
	}
	if _, err := s.get("10", "id"); err != nil {
		t.Errorf("the oldest that should be kept: %v", err)
	}
	_, first := s.size()
	first /= 2 // leaves room for half of them
	s.put(&stored{response: openai.Response{ID: "big"}, input: []json.RawMessage{make(json.RawMessage, maxStoredBytes-100_000-first)}})
	n, bytes := s.size()
	if bytes > maxStoredBytes || n >= maxStored {
		t.Errorf("got %d kept with %d bytes, want at most %d bytes", n, bytes, maxStoredBytes)
	}
	// What is used is young again.
	if _, err := s.get("11", "id"); err == nil {
		t.Error("the one unused longest is still there")
	}
	if _, err := s.get("10", "id"); err != nil {
		t.Errorf("the one used last went: %v", err)
	}
}
