package app

import (
	"fmt"
	"time"

	"pond/inference"
	"pond/inference/memgate"
)

// MemoryError says that the memory gate does not let a model in, and why with its numbers.
type MemoryError struct {
	Model  string
	Asked  int // context asked for; 0: none
	Result memgate.Result
}

func (e *MemoryError) Error() string {
	if r := e.Result; r.Allows() {
		return fmt.Sprintf("model %s: a context of %s does not fit; %s", e.Model, Tokens(e.Asked), r.Sentence())
	}
	return fmt.Sprintf("model %s: %s", e.Model, e.Result.Sentence())
}

// pressureInterval is how often a running Pond asks the system whether memory is short: one system call.
const pressureInterval = 2 * time.Second

// memory reads the machine.
func (c Config) memory() memgate.Reading {
	if c.Memory != nil {
		return c.Memory()
	}
	return memgate.Read()
}

// contextFor turns a verdict into the context to open with; 0 leaves it to the engine. The error is a *MemoryError.
func (c Config) contextFor(r memgate.Result) (int, error) {
	asked := c.ContextTokens
	switch {
	case asked > r.Need.MaxTokens:
		return asked, nil // the engine says what it was made for
	case r.Verdict == memgate.Unknown:
		return asked, nil
	case !r.Allows():
		if !c.Anyway || r.Override != memgate.Slow || asked > r.OverrideTokens {
			return 0, &MemoryError{c.Model.ID, asked, r}
		}
		return modest(r.Need, r.OverrideTokens), nil
	case asked > r.Tokens:
		return 0, &MemoryError{c.Model.ID, asked, r}
	}
	return modest(r.Need, r.Tokens), nil
}

// modest keeps a small model from taking gigabytes for a context that it makes nothing of, unless it was asked for.
func modest(n memgate.Need, tokens int) int {
	if n.Tokens == 0 && n.MacFloor == 0 {
		return min(tokens, inference.DefaultContext)
	}
	return tokens
}

// recheck looks again at the machine when the model is loaded: says what it took, and refuses it after all when what it wired does
// not fit. Mapped weights may stay: the system takes their pages back when it needs them.
func (c Config) recheck(before memgate.Reading, n memgate.Need) (memgate.Loaded, error) {
	l := memgate.Recheck(before, c.memory(), n)
	log := c.Logger
	if log != nil {
		log.Info("memory", "model", c.Model.ID, "verdict", l.Verdict.String(), "sentence", l.Sentence(), "own_growth_bytes", l.OwnGrowth, "swap_growth_bytes", l.SwapGrowth.Bytes)
		if l.Swapped() {
			log.Warn("loading pushed memory into swap", "swap_growth_bytes", l.SwapGrowth.Bytes)
		}
	}
	if !l.Allows() && n.Placement == memgate.Wired && !c.Anyway {
		return l, &MemoryError{c.Model.ID, n.Tokens, l.Result}
	}
	return l, nil
}

// loadedLine tells of a load what a person should know: nothing when there is room.
func loadedLine(l memgate.Loaded) string {
	var text string
	if l.Verdict != memgate.Fits {
		text = l.Sentence()
	}
	if l.Swapped() {
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("swap grew by %s while it was loaded", memgate.Bytes(l.SwapGrowth.Bytes))
	}
	return text
}
