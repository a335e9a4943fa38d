package server

import (
	"cmp"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"pond/inference"
	"pond/server/openai"
)

// statusAnswer is the body of GET /v1/pond/status. It never waits for the device.
type statusAnswer struct {
	State           string          `json:"state"` // idle, busy, paused
	Model           string          `json:"model"`
	Executor        string          `json:"executor"`
	Version         string          `json:"version"`
	UptimeSeconds   int64           `json:"uptime_seconds"`
	ContextTokens   int             `json:"context_tokens"` // most tokens of prompt and answer together, now
	Queued          int             `json:"queued"`
	Active          int             `json:"active"`
	PrefillDone     int             `json:"prefill_done"` // tokens of the prompt that is being taken in
	PrefillTotal    int             `json:"prefill_total"`
	TokensPerSecond float64         `json:"tokens_per_second"`
	DecodeSteps     []int64         `json:"decode_steps"` // of one answer, of two at once, of three, of four
	Memory          memoryAnswer    `json:"memory"`
	Reuse           reuseAnswer     `json:"reuse"`
	Disk            diskAnswer      `json:"disk"`
	Quiet           bool            `json:"quiet"`    // other programs go first
	Requests        []requestAnswer `json:"requests"` // that run or wait, oldest first
	Responses       int             `json:"stored_responses"`
}

type memoryAnswer struct {
	WeightBytes   int64 `json:"weight_bytes"`
	SnapshotBytes int64 `json:"snapshot_bytes"` // of places to which conversations can return
	ContextBytes  int64 `json:"context_bytes"`  // of conversations that rest: keys, values, states
	ResponseBytes int64 `json:"stored_response_bytes"`
}

// reuseAnswer says what was not computed twice, in tokens.
type reuseAnswer struct {
	Reused            int64       `json:"reused_tokens"`   // of prompts, since the start
	FromDisk          int64       `json:"disk_tokens"`     // of those, read from the disk
	Computed          int64       `json:"computed_tokens"` // of prompts, since the start
	Stored            int         `json:"stored_tokens"`   // that can be reused now
	SavedSecondsToday float64     `json:"saved_seconds_today"`
	LastMiss          *missAnswer `json:"last_miss"` // null: no prompt went another way than what was kept
}

// missAnswer is where a prompt went another way.
type missAnswer struct {
	Prompt int    `json:"prompt_tokens"`
	Common int    `json:"common_tokens"`
	Reused int    `json:"reused_tokens"`
	Text   string `json:"text"` // how the prompt goes on there, shortened; empty for other machines
	AgeMS  int64  `json:"age_ms"`
}

// diskAnswer is what is kept of conversations on the disk.
type diskAnswer struct {
	On            bool   `json:"on"`
	Trouble       string `json:"trouble,omitempty"` // why it is not on although it was asked for
	LenBytes      int64  `json:"bytes"`
	Conversations int    `json:"conversations"` // places that can be gone back to
	Tokens        int    `json:"tokens"`        // that lead to them
	Removed       int    `json:"removed_files"` // that were damaged or foreign, since the start
}

// reuseOf leaves out how a prompt went on where another machine asks: whoever holds the key is not whoever wrote the prompt.
func reuseOf(r inference.Reuse, here bool) reuseAnswer {
	a := reuseAnswer{Reused: r.ReusedTokens, FromDisk: r.DiskTokens, Computed: r.ComputedTokens, Stored: r.StoredTokens, SavedSecondsToday: r.SavedToday.Seconds()}
	if m := r.Miss; m != nil {
		a.LastMiss = &missAnswer{Prompt: m.PromptTokens, Common: m.CommonTokens, Reused: m.ReusedTokens, AgeMS: time.Since(m.At).Milliseconds()}
		if here {
			a.LastMiss.Text = m.Text
		}
	}
	return a
}

// requestAnswer is one request; its ids are for POST /v1/pond/stop-thinking.
type requestAnswer struct {
	ID      string `json:"id"`
	Answer  string `json:"answer"`
	AgeMS   int64  `json:"age_ms"`
	Doing   string `json:"doing"` // waiting, prompt n/m tokens, generating
	Choices int    `json:"choices"`
}

func (s *Server) status(c echo.Context) error {
	info, st := s.engine.Info(), s.engine.Stats()
	a := statusAnswer{State: "idle", Model: info.ID, Executor: info.Executor, Version: s.options.Version, UptimeSeconds: int64(time.Since(info.Created).Seconds()),
		ContextTokens: info.ContextTokens, Queued: st.Queued, Active: st.Active, PrefillDone: st.PrefillDone, PrefillTotal: st.PrefillTotal,
		TokensPerSecond: st.TokensPerSecond, DecodeSteps: st.Steps[:], Reuse: reuseOf(st.Reuse, fromHere(c.Request())), Disk: diskAnswer(st.Disk), Quiet: st.Quiet, Requests: []requestAnswer{}}
	a.Memory = memoryAnswer{WeightBytes: info.WeightBytes, SnapshotBytes: st.SnapshotBytes, ContextBytes: st.ContextBytes}
	a.Responses, a.Memory.ResponseBytes = s.stored.size()
	switch {
	case st.Paused:
		a.State = "paused"
	case st.Active+st.Queued > 0:
		a.State = "busy"
	}
	works := s.running.list()
	slices.SortFunc(works, func(a, b *work) int { return cmp.Compare(a.began.UnixNano(), b.began.UnixNano()) })
	for _, w := range works {
		a.Requests = append(a.Requests, requestAnswer{ID: w.request, Answer: w.answerID, AgeMS: time.Since(w.began).Milliseconds(), Doing: w.progress.String(), Choices: len(w.answers)})
	}
	return writeJSON(c, http.StatusOK, a)
}

// fromHere reports whether a request comes from this machine.
func fromHere(r *http.Request) bool {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && at.Addr().Unmap().IsLoopback()
}

// stopThinking answers POST /v1/pond/stop-thinking: "answer now". The thinking block of a running answer is closed, and the model goes on with
// the answer itself. Without an id the only running request is meant.
func (s *Server) stopThinking(c echo.Context) error {
	body, err := s.readBody(c)
	if err != nil {
		return err
	}
	id, ignored, err := openai.DecodeStopThinking(body)
	if err != nil {
		return err
	}
	w, err := s.running.find(id)
	if err != nil {
		return err
	}
	noteIgnored(c, ignored)
	for _, a := range w.answers {
		a.StopThinking()
	}
	return writeJSON(c, http.StatusOK, map[string]any{"id": w.request, "answer": w.answerID, "object": "pond.stop_thinking"})
}
