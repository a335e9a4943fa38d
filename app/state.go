package app

import (
	"fmt"

	"pond/inference/memgate"
)

// Phase is what Pond as a whole is doing.
type Phase int

// The phases, in the order a user meets them.
const (
	Stopped Phase = iota
	Loading
	Running
	Failed
)

func (p Phase) String() string {
	switch p {
	case Stopped:
		return "stopped"
	case Loading:
		return "loading"
	case Running:
		return "running"
	case Failed:
		return "failed"
	}
	return fmt.Sprintf("Phase(%d)", int(p))
}

// State is everything a user interface draws from: an immutable snapshot. Events make the next one; nobody changes one.
type State struct {
	Phase         Phase
	Model         string // model id
	Executor      string // what computes, once loaded
	Address       string // host:port: where the endpoint listens, or will
	NeedsKey      bool   // clients must send an API key
	ContextTokens int    // longest conversation, once loaded
	Memory        string // what to know of the memory since the load; empty: there is room
	Pressure      memgate.Pressure
	Failure       string // why Phase is Failed, one sentence
}

// Event is something that happened; it turns one State into the next.
type Event interface{ next(State) State }

// LoadStarted: the weights of a model are being opened.
type LoadStarted struct {
	Model, Address string
	NeedsKey       bool
}

// Served: the endpoint answers.
type Served struct {
	Address, Executor string
	ContextTokens     int
	Memory            string
}

// Pressed: the system says that memory is short, or no longer.
type Pressed struct{ Level memgate.Pressure }

// Failure: loading or serving ended with an error.
type Failure struct{ Err error }

// Halted: the endpoint is closed and the model let go, as asked.
type Halted struct{}

var (
	_ Event = LoadStarted{}
	_ Event = Served{}
	_ Event = Pressed{}
	_ Event = Failure{}
	_ Event = Halted{}
)

// After is the state that follows an event.
func (s State) After(e Event) State { return e.next(s) }

func (e LoadStarted) next(State) State {
	return State{Phase: Loading, Model: e.Model, Address: e.Address, NeedsKey: e.NeedsKey}
}

func (e Served) next(s State) State {
	s.Phase, s.Address, s.Executor, s.ContextTokens, s.Memory = Running, e.Address, e.Executor, e.ContextTokens, e.Memory
	return s
}

func (e Pressed) next(s State) State {
	s.Pressure = e.Level
	return s
}

func (e Failure) next(s State) State {
	return State{Phase: Failed, Model: s.Model, Address: s.Address, NeedsKey: s.NeedsKey, Failure: e.Err.Error()}
}

func (e Halted) next(s State) State {
	return State{Phase: Stopped, Model: s.Model, Address: s.Address, NeedsKey: s.NeedsKey}
}

// Line is the state in a few words: the first line of the menu and of the window.
func (s State) Line() string {
	switch s.Phase {
	case Loading:
		return "Loading " + s.Model
	case Running:
		return "Running · " + s.Address
	case Failed:
		return "Failed: " + s.Failure
	}
	return "Stopped"
}

// MemoryNote is what to know of the memory, in a few words; empty when there is room.
func (s State) MemoryNote() string {
	if s.Pressure != memgate.Normal {
		return "memory is short (" + s.Pressure.String() + ")"
	}
	return s.Memory
}

// Endpoint is the base URL for clients.
func (s State) Endpoint() string { return Endpoint(s.Address) }

// Endpoint is the base URL of an address.
func Endpoint(address string) string { return "http://" + address + "/v1" }

// CurlLine is a command that asks the endpoint one question and works as it stands. withKey adds the header that reads the
// key from the environment.
func CurlLine(address, model string, withKey bool) string {
	key := ""
	if withKey {
		key = ` -H "Authorization: Bearer $POND_API_KEY"`
	}
	return fmt.Sprintf(`curl -s %s/chat/completions -H 'Content-Type: application/json'%s -d '{"model":"%s","messages":[{"role":"user","content":"Hello! Who are you?"}]}'`,
		Endpoint(address), key, model)
}

// Tokens writes a number of tokens: "4096 tokens", "48K tokens".
func Tokens(n int) string { return memgate.Tokens(n) }
