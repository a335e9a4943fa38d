package app

import (
	"time"

	"pond/inference/memgate"
)

// Event is something that happened; it turns one State into the next.
type Event interface{ next(State) State }

// After is the state that follows an event.
func (s State) After(e Event) State {
	s = e.next(s)
	s.Phase = s.phase()
	return s
}

// The events of the run.
type (
	// LoadStarted: the weights of a model are being opened.
	LoadStarted struct {
		Model, Address string
		NeedsKey       bool
	}
	// Loaded: so much of the weights is in memory.
	Loaded struct{ DoneBytes, TotalBytes int64 }
	// Served: the endpoint answers.
	Served struct {
		Address, Executor string
		ContextTokens     int
		Memory            string
		UnloadBytes       int64
	}
	// Worked: what the engine is doing changed.
	Worked struct{ Work Work }
	// Held: new work waits; until zero means until it is ended.
	Held struct {
		Until  time.Time
		Reason string
	}
	// Released: new work no longer waits.
	Released struct{}
	// Rested: the model is let go and the endpoint still listens.
	Rested struct{}
	// Pressed: the system says that memory is short, or no longer.
	Pressed struct{ Level memgate.Pressure }
	// Failure: loading or serving ended with an error.
	Failure struct{ Err error }
	// Halted: the endpoint is closed and the model let go, as asked.
	Halted struct{}
)

// The events of the model's files and of the machine.
type (
	// Chosen: which model Start loads, where it is, and how the endpoint will be reached.
	Chosen struct {
		Model    string
		Ready    bool
		Disk     DiskState
		Address  string
		NeedsKey bool
		Quiet    bool
		Kept     int64 // bytes of conversations on the disk
	}
	// UpdateKnown: there is a newer release.
	UpdateKnown struct{ Update Update }
	// CopiesFound: other tools have the model.
	CopiesFound struct{ Found []Copy }
	// Judged: the memory gate looked at the machine.
	Judged struct {
		Verdict Verdict
		Machine MachineFacts
	}
	// JobChanged: something is done to the model's files, or how far it is.
	JobChanged struct{ Job Job }
	// JobEnded: nothing is done to them any more. Err is why it ended early; nil when it is done or was cancelled.
	JobEnded struct{ Err error }
)

var (
	_ Event = LoadStarted{}
	_ Event = Loaded{}
	_ Event = Served{}
	_ Event = Worked{}
	_ Event = Held{}
	_ Event = Released{}
	_ Event = Rested{}
	_ Event = Pressed{}
	_ Event = Failure{}
	_ Event = Halted{}
	_ Event = Chosen{}
	_ Event = UpdateKnown{}
	_ Event = CopiesFound{}
	_ Event = Judged{}
	_ Event = JobChanged{}
	_ Event = JobEnded{}
)

// unloaded is s without everything that a run leaves.
func (s State) unloaded() State {
	s.Executor, s.ContextTokens, s.Memory, s.Pressure = "", 0, "", memgate.Normal
	s.Load, s.Work, s.Unloaded, s.UnloadBytes, s.busy = Load{}, Work{}, false, 0, false
	s.PausedUntil, s.PauseReason = time.Time{}, ""
	s.Failure, s.NextAddress, s.Holder = "", "", ""
	return s
}

func (e LoadStarted) next(s State) State {
	s = s.unloaded()
	s.run, s.Model, s.Address, s.NeedsKey = loading, e.Model, e.Address, e.NeedsKey
	return s
}

func (e Loaded) next(s State) State {
	s.Load = Load(e)
	return s
}

func (e Served) next(s State) State {
	s = s.unloaded()
	s.run, s.Ready = serving, true
	s.Address, s.Executor, s.ContextTokens, s.Memory, s.UnloadBytes = e.Address, e.Executor, e.ContextTokens, e.Memory, e.UnloadBytes
	return s
}

func (e Worked) next(s State) State {
	s.Work, s.busy = e.Work, e.Work.Active+e.Work.Queued > 0
	if e.Work.Disk.On {
		s.KeptBytes = e.Work.Disk.LenBytes
	}
	return s
}

func (e Held) next(s State) State {
	if s.run == serving || s.run == paused {
		s.run, s.PausedUntil, s.PauseReason = paused, e.Until, e.Reason
	}
	return s
}

func (e Released) next(s State) State {
	if s.run == paused {
		s.run, s.PausedUntil, s.PauseReason = serving, time.Time{}, ""
	}
	return s
}

func (e Rested) next(s State) State {
	s = s.unloaded()
	s.run, s.Unloaded = serving, true
	return s
}

func (e Pressed) next(s State) State {
	s.Pressure = e.Level
	return s
}

func (e Failure) next(s State) State {
	s = s.unloaded()
	s.run, s.Failure = failed, e.Err.Error()
	s.NextAddress, s.Holder = takenPort(e.Err)
	return s
}

func (e Halted) next(s State) State {
	s = s.unloaded()
	s.run = halted
	return s
}

func (e Chosen) next(s State) State {
	if s.run == halted || s.run == failed {
		s.Model, s.Address, s.NeedsKey = e.Model, e.Address, e.NeedsKey
	}
	if s.run == failed && e.Ready && !s.Ready { // what was missing is there again: a drive, for one
		s = s.unloaded()
		s.run = halted
	}
	if s.Model == e.Model {
		s.Ready = e.Ready
	}
	s.Disk, s.Quiet, s.KeptBytes = e.Disk, e.Quiet, e.Kept
	return s
}

func (e UpdateKnown) next(s State) State {
	s.Update = e.Update
	return s
}

func (e CopiesFound) next(s State) State {
	s.Found = e.Found
	return s
}

func (e Judged) next(s State) State {
	s.Verdict, s.Machine = e.Verdict, e.Machine
	return s
}

func (e JobChanged) next(s State) State {
	if s.run == failed && e.Job.Kind != s.Job.Kind { // a new beginning
		s = s.unloaded()
		s.run = halted
	}
	s.Job = e.Job
	return s
}

func (e JobEnded) next(s State) State {
	s.Job = Job{}
	if e.Err != nil {
		if s.run == halted || s.run == failed {
			return Failure{e.Err}.next(s)
		}
		s.Job.Trouble = e.Err.Error() // the endpoint goes on
	}
	return s
}
