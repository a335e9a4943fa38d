// Package memgate decides whether a model may be loaded on a machine at this moment, and how long its conversations may get.
//
// It is arithmetic over numbers: a Reading says what the machine has, a Need what the model takes, and Check compares them. It
// knows no model and no device, loads nothing and changes nothing; Read (probe_darwin.go, probe_other.go) is the only part
// that asks the system. Start with Check.
//
// Amounts in sentences are decimal (1 GB = 10^9 bytes), as the sizes of downloads are. The size of a machine is named as it is
// sold: "a Mac with 32 GB" has 32 · 2^30 bytes.
package memgate

// Amount is a number of bytes that a probe may have failed to read. The zero value is unknown.
type Amount struct {
	Bytes uint64
	Known bool
}

// Of is a known amount. No machine has an exbibyte; what claims more is taken for that, so that a need too big to count never fits.
func Of(bytes uint64) Amount { return Amount{min(bytes, 1<<60), true} }

// or is the amount, or what to take it for when it is unknown.
func (a Amount) or(bytes uint64) uint64 {
	if a.Known {
		return min(a.Bytes, 1<<60)
	}
	return bytes
}

// System is whose rules hold.
type System uint8

const (
	OtherSystem System = iota
	MacOS
	Linux
)

func (s System) String() string {
	switch s {
	case MacOS:
		return "macOS"
	case Linux:
		return "Linux"
	}
	return "this system"
}

// Reading is what a probe saw at one moment. All amounts are bytes; each may be unknown by itself.
//
// On a Mac the pages of memory are counted once in each of two ways: free, wired, compressed, and the rest (active or inactive;
// file-backed or anonymous). Available is set where the system tells it itself (Linux); on a Mac it follows from the others.
type Reading struct {
	System     System
	Total      Amount // of the machine, or of the cgroup that Pond runs in when that is less
	Available  Amount // what the system says can be had without swapping
	Free       Amount // pages that hold nothing
	Inactive   Amount // pages not used lately, file-backed and anonymous
	FileBacked Amount // pages that a file holds too: given back at once, read again when needed
	Purgeable  Amount // anonymous pages whose owner said that they may be dropped
	Wired      Amount // pages that cannot leave memory: the kernel's, the GPU's, virtual machines'
	Compressed Amount // pages that hold the compressor's packed pages
	SwapUsed   Amount

	GPULimit  Amount // recommendedMaxWorkingSetSize of the GPU
	GPURaised Amount // iogpu.wired_limit_mb in bytes, when an administrator set it; it may also be a lower limit

	Own      Amount // physical footprint of this process: what comes back when it lets go of everything
	Users    []User // the biggest other programs that a person can quit, biggest first; nil when unknown
	Pressure Pressure
}

// User is a program that holds memory, all its processes together.
type User struct {
	Name  string // as a person knows it: "Docker Desktop"
	Bytes uint64 // what quitting it gives back
}

// Placement is what becomes of the weights when a model is loaded.
type Placement uint8

const (
	Mapped Placement = iota // pages of the files; they must stay in the system's cache, or every token reads the disk
	Held                    // copied into ordinary memory
	Wired                   // copied into buffers of the GPU, which cannot be paged out
)

func (p Placement) String() string {
	switch p {
	case Held:
		return "held"
	case Wired:
		return "wired"
	}
	return "mapped"
}

// Floors of the full model.
const (
	MacFloorBytes       = 32 << 30     // total memory of a Mac
	AvailableFloorBytes = 41 << 30 / 2 // 20.5 GiB available where the weights are mapped
)

// Need is what a loaded model takes. All sizes are bytes.
type Need struct {
	Placement       Placement
	Weights         uint64 // as kept in memory: text tensors alone
	SequenceState   uint64 // of one sequence, whatever its length: gdn states and conv windows
	Sequences       int    // conversations kept at once
	Snapshots       int    // copies of SequenceState kept for each
	SequenceAhead   uint64 // of one sequence, for a token that is taken in ahead of its time; in no snapshot
	KVBytesPerToken uint64 // of one sequence
	Workspace       uint64 // scratch of prefill and decode, allocated once
	Program         uint64 // everything else of the process
	MinTokens       int    // the shortest context worth loading for
	MaxTokens       int    // the longest the model was made for
	Tokens          int    // the context asked for; 0 asks for as long as fits
	MacFloor        uint64 // least total memory of a Mac; 0: none
	AvailableFloor  uint64 // least available memory where the weights are mapped; 0: none
}

// fixed is what the model takes before the first token.
func (n Need) fixed() uint64 {
	return add(add(n.Weights, n.states()), add(n.Workspace, n.Program))
}

// states are those of all sequences and their snapshots.
func (n Need) states() uint64 {
	kept := mul(n.SequenceState, mul(count(n.Sequences), add(count(n.Snapshots), 1)))
	return add(kept, mul(n.SequenceAhead, count(n.Sequences)))
}

// perToken is what each token of context takes, in all sequences.
func (n Need) perToken() uint64 { return mul(n.KVBytesPerToken, count(n.Sequences)) }

// Bytes is what the model takes with a context of tokens, without what must stay free for the system.
func (n Need) Bytes(tokens int) uint64 { return add(n.fixed(), mul(n.perToken(), count(tokens))) }

// least is the shortest context that is an answer: MinTokens, or less for a model made for less or when less is asked for.
func (n Need) least() int {
	least := max(1, n.MinTokens)
	if n.MaxTokens > 0 {
		least = min(least, n.MaxTokens)
	}
	if n.Tokens > 0 {
		least = min(least, n.Tokens)
	}
	return least
}

// wanted is the context to open with when memory is no matter.
func (n Need) wanted() int {
	if n.Tokens > 0 {
		return n.Tokens
	}
	return max(n.MaxTokens, n.least())
}

// The arithmetic saturates: a reading that makes no sense must not wrap around into one that does.

func add(a, b uint64) uint64 {
	if c := a + b; c >= a {
		return c
	}
	return ^uint64(0)
}

func sub(a, b uint64) uint64 {
	if a > b {
		return a - b
	}
	return 0
}

func mul(a, b uint64) uint64 {
	if a == 0 || b <= ^uint64(0)/a {
		return a * b
	}
	return ^uint64(0)
}

func count(n int) uint64 { return uint64(max(n, 0)) }
