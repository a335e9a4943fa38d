package app

import (
	"fmt"
	"time"

	"pond/inference"
	"pond/inference/memgate"
)

// Phase is what Pond as a whole is doing, as the icon and the first line tell it. A download that goes on while another model answers is
// in State.Job, not in the phase.
type Phase int

// The phases. Stopped is ready to start.
const (
	Stopped     Phase = iota
	NeedModel         // the model is not on the disk, or not whole
	Downloading       // also while the download pauses, see Job
	Verifying         // reading what is there: a verification, a repair, an adoption
	Loading
	Running // answers, and has nothing to do
	Busy    // answers
	Paused  // new work waits
	Failed
)

func (p Phase) String() string {
	names := [...]string{"stopped", "need model", "downloading", "verifying", "loading", "running", "busy", "paused", "failed"}
	if p < 0 || int(p) >= len(names) {
		return fmt.Sprintf("Phase(%d)", int(p))
	}
	return names[p]
}

// Serving reports whether the endpoint listens in this phase.
func (p Phase) Serving() bool { return p == Running || p == Busy || p == Paused }

// State is everything a user interface draws from: an immutable snapshot. Events make the next one; nobody changes one, or what its slices
// hold.
type State struct {
	Phase Phase

	Model   string       // id of the model that Start loads
	Ready   bool         // it can be started: built in, or every byte of it verified
	Disk    DiskState    // where it is kept, and how far it is; zero for a model that is built in
	Found   []Copy       // copies of it that other tools have
	Verdict Verdict      // may it be loaded now
	Machine MachineFacts // what it would run on
	Job     Job          // what is being done to its files

	Executor      string // what computes, once loaded
	Address       string // host:port: where the endpoint listens, or will
	NeedsKey      bool   // clients must send an API key
	ContextTokens int    // longest conversation, once loaded
	Memory        string // what to know of the memory since the load; empty: there is room
	Pressure      memgate.Pressure
	Load          Load      // while Phase is Loading
	Work          Work      // what the engine is doing
	Unloaded      bool      // it listens, and loads the model when somebody asks
	UnloadBytes   int64     // what Unload gives back, about; 0: nothing is loaded
	PausedUntil   time.Time // while Phase is Paused; zero: until it is ended, or until the reason is gone
	PauseReason   string    // why, when the user did not ask for it: "on battery"

	Failure     string // why Phase is Failed, one sentence
	NextAddress string // a free one, where the failure was a taken port
	Holder      string // the program that has the taken port, where it is known
	Update      Update // of Pond itself
	Quiet       bool   // other programs go first
	KeptBytes   int64  // of conversations on the disk

	run  run // what of Phase comes from the run alone
	busy bool
}

// DiskState is how a model's folder looks.
type DiskState struct {
	Dir                   string
	Line                  string // "partly downloaded, 8.37 GB of 20.42 GB"
	DoneBytes, TotalBytes int64
	UsedBytes             int64    // room that it takes
	FreeBytes             int64    // on that disk; -1: unknown
	Headroom              int64    // what a download leaves free
	Changed               []string // files that are not what was verified
	Unknown               bool     // the chosen model is none that can be downloaded, and not there either; Trouble says so
	Trouble               string   // the folder cannot be used: a drive that is not connected; one sentence
}

// LacksBytes is how much room is missing for a download; 0: there is enough, or it is unknown.
func (d DiskState) LacksBytes() int64 {
	if d.FreeBytes < 0 || d.TotalBytes == 0 {
		return 0
	}
	return max(0, d.TotalBytes-max(d.UsedBytes, d.DoneBytes)+d.Headroom-d.FreeBytes)
}

// Verdict is the memory gate's answer, ready to be shown.
type Verdict struct {
	Known         bool // the rest holds
	Allowed       bool
	Sentence      string // with its numbers
	Sums          []Sum  // the arithmetic, a row each
	CeilingTokens int    // the longest context that fits now; 0: none
	NeedBytes     int64
	HaveBytes     int64  // 0: unknown
	Lacks         string // what besides memory is missing: "Apple Silicon (this is amd64)"
	Forever       bool   // no quitting of programs helps
	Anyway        bool   // loading against it can only be slow; AnywayText says so
	AnywayText    string
}

// MoreBytes is how much memory is missing; 0: none, or unknown.
func (v Verdict) MoreBytes() int64 {
	if !v.Known || v.Allowed || v.HaveBytes == 0 {
		return 0
	}
	return max(0, v.NeedBytes-v.HaveBytes)
}

// Sum is one row of an arithmetic.
type Sum struct {
	Label string
	Bytes int64
}

// MachineFacts are what a welcome window tells of the machine, in words.
type MachineFacts struct{ System, Processor, Memory string }

// Load is how much of the weights is in memory.
type Load struct{ DoneBytes, TotalBytes int64 }

// Work is what the engine is doing.
type Work struct {
	Active, Queued            int     // answers that are computed, and that wait
	TokensPerSecond           float64 // of decode; 0 while nothing is decoded
	PrefillDone, PrefillTotal int     // tokens of the prompt that is taken in; 0 of 0: none is
	Tokens                    int64   // since the start
	Reuse                     inference.Reuse
	Disk                      inference.DiskStats
	KeptBytes                 int64 // of conversations in memory, about: to the megabyte
}

// run is what the engine and its endpoint are doing.
type run int

const (
	halted run = iota
	loading
	serving
	paused
	failed
)

// phase puts together the run and the files.
func (s State) phase() Phase {
	switch s.run {
	case loading:
		return Loading
	case paused:
		return Paused
	case serving:
		if s.busy {
			return Busy
		}
		return Running
	}
	switch {
	case s.Job.Kind == DownloadJob:
		return Downloading
	case s.Job.Kind != NoJob:
		return Verifying
	case s.run == failed:
		return Failed
	case !s.Ready:
		return NeedModel
	}
	return Stopped
}

// Endpoint is the base URL for clients.
func (s State) Endpoint() string { return Endpoint(s.Address) }

// MemoryNote is what to know of the memory, in a few words; empty when there is room.
func (s State) MemoryNote() string {
	if s.Pressure != memgate.Normal {
		return "memory is short (" + s.Pressure.String() + ")"
	}
	return s.Memory
}

// ContextLine is "up to 48K tokens on this Mac now"; empty while nothing is known.
func (s State) ContextLine() string {
	tokens := s.Verdict.CeilingTokens
	if s.Phase.Serving() && !s.Unloaded {
		tokens = s.ContextTokens
	}
	if tokens <= 0 {
		return ""
	}
	return "up to " + Tokens(tokens) + " on this " + machineWord() + " now"
}
