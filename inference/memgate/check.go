package memgate

// The rules, in the order in which they are asked:
//
//  1. A Mac below its floor is refused for ever; nothing overrides that.
//  2. What counts is what is available now, not what is free: free pages, pages that files hold too, purgeable pages, and, as a
//     last resort, what the compressor would gain from idle anonymous pages. Pages that are wired, or hold compressed
//     ones, are not available whatever else the reading says.
//  3. What this process holds already comes back when it loads anew, so it is available and never counted twice.
//  4. Something stays free for the system; it is part of the need.
//  5. What is wired for the GPU must also fit its working-set limit, raised or lowered as the administrator set it.
//  6. Where the weights are mapped the need is at least AvailableFloor.
//  7. What cannot be read is not held against anyone: the verdict is Unknown, which warns. But no unknown allows what the known
//     amounts exclude.

// Verdict is the decision.
type Verdict uint8

const (
	Unknown        Verdict = iota // the machine could not be read: warn, do not block
	Refuse                        // not now, or not on this machine
	Tight                         // it fits, and little is left, or idle memory has to be compressed, or memory is short already
	FitsWithTokens                // it fits with a context shorter than wanted
	Fits                          // it fits as wanted
)

func (v Verdict) String() string {
	switch v {
	case Refuse:
		return "refuse"
	case Tight:
		return "tight"
	case FitsWithTokens:
		return "fits with a shorter context"
	case Fits:
		return "fits"
	}
	return "unknown"
}

// Limit is what decides.
type Limit uint8

const (
	NoLimit        Limit = iota // the model's own longest context, or the one asked for
	FloorLimit                  // the total memory of a Mac
	AvailableLimit              // what is available now
	GPULimit                    // the working set of the GPU
)

// Override says whether a user may load against a Refuse. It exists only where it cannot take the machine down.
type Override uint8

const (
	// Never: memory that cannot be paged out would run short, or the process would be killed.
	Never Override = iota
	// Slow: the weights are mapped, so pages that do not fit are read again from the disk; or, on a Mac, memory that cannot be paged
	// out leaves a quarter of the machine to the rest and stays within Apple's own limit for the GPU, so only other programs
	// are paged.
	Slow
)

// Result is the answer of Check with the numbers behind it. Bytes.
type Result struct {
	Reading Reading
	Need    Need
	Verdict Verdict
	Limit   Limit
	Tokens  int // context to open with; 0 when refused, and when Unknown leaves it to the engine
	Ceiling int // the longest context that fits now; 0: none, or unknown

	NeedBytes      uint64 // with Tokens (refused: with the shortest context), Reserve and AvailableFloor included
	HaveBytes      Amount // what is to be had for it, this process's own memory included
	Reserve        uint64 // part of NeedBytes that stays free for the system
	GPUNeedBytes   uint64 // part of NeedBytes that is wired for the GPU
	GPUHaveBytes   Amount
	Idle           bool // counts on the compression of idle memory
	Quit           []User
	Override       Override
	OverrideTokens int // context to open with against a Refuse
}

// Allows reports whether the model may be loaded with Tokens. Unknown allows.
func (r Result) Allows() bool { return r.Verdict != Refuse }

// round is the step of context ceilings.
const round = 1024

// Check compares what a model needs with what a machine has.
func Check(r Reading, n Need) Result {
	res := Result{Reading: r, Need: n, Reserve: r.reserve()}
	least, wanted := n.least(), n.wanted()
	have := r.have()
	res.HaveBytes = have.all
	if n.Placement == Wired && r.System == MacOS {
		res.GPUHaveBytes = r.gpuLimit()
	}
	res.spend(least)

	if r.System == MacOS && r.Total.Known && r.Total.Bytes < n.MacFloor {
		res.Verdict, res.Limit = Refuse, FloorLimit
		return res
	}
	if g := res.GPUHaveBytes; g.Known && res.GPUNeedBytes > g.Bytes {
		res.Verdict, res.Limit = Refuse, GPULimit
		return res
	}
	if !have.all.Known {
		if most := r.most(); most.Known && res.NeedBytes > most.Bytes {
			res.Verdict, res.Limit, res.HaveBytes = Refuse, AvailableLimit, most
		}
		return res
	}
	if res.NeedBytes > have.all.Bytes {
		res.Verdict, res.Limit = Refuse, AvailableLimit
		res.Quit = quit(r.Users, res.NeedBytes-have.all.Bytes)
		res.override(have.all.Bytes)
		return res
	}

	// The ceiling leaves some comfort, and counts on idle memory only when the shortest context, or the one asked for, does not fit
	// without.
	within := sub(have.clean, r.comfort())
	if res.needs(max(least, n.Tokens)) > within {
		within = have.all.Bytes
	}
	res.Ceiling, res.Limit = n.tokensIn(sub(within, add(n.fixed(), res.Reserve))), AvailableLimit
	if g := res.GPUHaveBytes; g.Known {
		if c := n.tokensIn(sub(g.Bytes, sub(n.fixed(), n.Program))); c < res.Ceiling {
			res.Ceiling, res.Limit = c, GPULimit
		}
	}
	if n.MaxTokens > 0 && res.Ceiling >= n.MaxTokens {
		res.Ceiling, res.Limit = n.MaxTokens, NoLimit
	} else {
		rounded := res.Ceiling / round * round
		for _, tokens := range []int{least, n.Tokens} { // rounding must not take away what was asked for
			if tokens <= res.Ceiling {
				rounded = max(rounded, tokens)
			}
		}
		res.Ceiling = rounded
	}
	res.Tokens = min(wanted, res.Ceiling)
	res.spend(res.Tokens)
	res.Idle = res.NeedBytes > have.clean
	switch {
	case add(res.NeedBytes, r.comfort()) > have.clean || r.Pressure >= Warning:
		res.Verdict = Tight
	case res.Tokens < wanted:
		res.Verdict = FitsWithTokens
	default:
		res.Verdict = Fits
	}
	if res.Tokens == wanted {
		res.Limit = NoLimit
	}
	return res
}

// spend sets the needs to those of a context.
func (r *Result) spend(tokens int) {
	r.NeedBytes = r.needs(tokens)
	r.GPUNeedBytes = 0
	if r.Need.Placement == Wired {
		r.GPUNeedBytes = sub(r.Need.Bytes(tokens), r.Need.Program)
	}
}

// needs is all that must be available for a context.
func (r *Result) needs(tokens int) uint64 {
	b := add(r.Need.Bytes(tokens), r.Reserve)
	if r.Need.Placement == Mapped {
		b = max(b, r.Need.AvailableFloor)
	}
	return b
}

// override says what a user may do against a refusal for want of available memory.
func (r *Result) override(have uint64) {
	n := r.Need
	switch n.Placement {
	case Mapped: // the weights give way, the rest must fit
		rest := n
		rest.Weights = 0
		tokens := min(n.wanted(), rest.tokensIn(sub(have, add(rest.fixed(), r.Reserve))))
		if tokens >= n.least() {
			r.Override, r.OverrideTokens = Slow, tokens
		}
	case Wired:
		total := r.Reading.Total
		if r.Reading.System != MacOS || !total.Known || !r.Reading.Wired.Known {
			return
		}
		least := n.least()
		pinned := add(n.Bytes(least), add(r.Reading.wiredByOthers(), r.Reading.Compressed.or(0)))
		limit := min(usualGPULimit(total.Bytes), r.GPUHaveBytes.or(0))
		if pinned <= total.Bytes/4*3 && r.GPUNeedBytes <= limit {
			r.Override, r.OverrideTokens = Slow, least
		}
	}
}

// tokensIn is how many tokens' KV rows fit into an amount, at most what was asked for or the model was made for.
func (n Need) tokensIn(bytes uint64) int {
	most := count(max(n.wanted(), n.MaxTokens))
	if per := n.perToken(); per > 0 {
		most = min(most, bytes/per)
	}
	return int(most)
}

// having is what a reading makes available: without the compression of idle memory, and with it.
type having struct {
	clean uint64
	all   Amount
}

// have adds up what is available, by rules 2 and 3.
func (r Reading) have() having {
	var clean, idle uint64
	switch {
	case r.Available.Known:
		clean = r.Available.or(0)
	case r.Free.Known && (r.Inactive.Known || r.FileBacked.Known):
		cache := add(r.FileBacked.or(0), r.Purgeable.or(0))
		clean = add(r.Free.or(0), cache)
		// At least this much of the inactive pages is anonymous. The compressor makes less than half of such pages ("more than
		// 50 percent", Apple, OS X Mavericks Core Technologies Overview); the usual gain is two thirds.
		idle = sub(r.Inactive.or(0), cache) / 3 * 2
	default:
		return having{}
	}
	clean = min(add(clean, r.Own.or(0)), 1<<60)
	idle = min(add(clean, idle), 1<<60)
	if most := r.most(); most.Known {
		clean, idle = min(clean, most.Bytes), min(idle, most.Bytes)
	}
	return having{clean, Of(idle)}
}

// most is the most that can be available, whatever the other amounts say.
func (r Reading) most() Amount {
	if !r.Total.Known {
		return Amount{}
	}
	return Of(sub(sub(r.Total.Bytes, r.wiredByOthers()), r.Compressed.or(0)))
}

// wiredByOthers leaves out what this process may have wired itself.
func (r Reading) wiredByOthers() uint64 { return sub(r.Wired.or(0), r.Own.or(0)) }

// reserve stays free for the system: half a GiB, or a sixty-fourth of a smaller machine. Linux leaves its own watermarks out of what
// it calls available.
func (r Reading) reserve() uint64 { return min(1<<29, r.Total.or(1<<40)/64) }

// comfort is as much again on a Mac: the files of which it would drop the pages are also the programs that the user has open.
func (r Reading) comfort() uint64 {
	if r.System == MacOS {
		return r.reserve()
	}
	return 0
}

// gpuLimit is how much of a Mac may be wired for the GPU: what an administrator set, else what the GPU says, else the usual.
func (r Reading) gpuLimit() Amount {
	var limit uint64
	switch {
	case r.GPURaised.Known && r.GPURaised.Bytes > 0:
		limit = r.GPURaised.Bytes
	case r.GPULimit.Known && r.GPULimit.Bytes > 0:
		limit = r.GPULimit.Bytes
	case !r.Total.Known:
		return Amount{}
	default:
		limit = usualGPULimit(r.Total.Bytes)
	}
	return Of(min(limit, r.Total.or(limit)))
}

// usualGPULimit is what macOS sets on a machine of that size: two thirds, three quarters from 36 GB on.
func usualGPULimit(total uint64) uint64 {
	if total < 36*(1<<30) {
		return total / 3 * 2
	}
	return total / 4 * 3
}

// quit names programs that together hold what is lacking: one if one is enough, the smallest such; else the biggest, three at
// most; else none.
func quit(users []User, lacking uint64) []User {
	one := -1
	for i, u := range users {
		if u.Bytes >= lacking && (one < 0 || u.Bytes < users[one].Bytes) {
			one = i
		}
	}
	if one >= 0 {
		return users[one : one+1]
	}
	var sum uint64
	for i, u := range users {
		if i == 3 {
			break
		}
		if sum = add(sum, u.Bytes); sum >= lacking {
			return users[:i+1]
		}
	}
	return nil
}
