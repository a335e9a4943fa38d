package memgate

import (
	"fmt"
	"strings"
)

// Bytes writes an amount of memory in decimal gigabytes, or megabytes below one: "20.9 GB", "31 MB".
func Bytes(n uint64) string {
	if n < 999_500_000 {
		return fmt.Sprintf("%d MB", (n+500_000)/1_000_000)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// Tokens writes a context as people say it: "48K tokens", "4000 tokens".
func Tokens(n int) string {
	if n >= 8192 {
		return fmt.Sprintf("%dK tokens", n/1024)
	}
	return fmt.Sprintf("%d tokens", n)
}

// Sold names the size of a machine as it is sold: 34359738368 bytes are "32 GB".
func Sold(n uint64) string {
	if gib := float64(n) / (1 << 30); gib >= 1 {
		return fmt.Sprintf("%g GB", float64(int(gib*10+0.5))/10)
	}
	return Bytes(n)
}

// Sentence says the verdict with its numbers, without a period.
func (r Result) Sentence() string {
	switch r.Verdict {
	case Refuse:
		return r.refusal()
	case Unknown:
		return fmt.Sprintf("the memory of this machine cannot be read, so nothing is promised; needs %s", Bytes(r.NeedBytes))
	}
	numbers := fmt.Sprintf("needs %s, %s available", Bytes(r.NeedBytes), r.have())
	if r.Limit == GPULimit {
		numbers = fmt.Sprintf("needs %s of the GPU's %s", Bytes(r.GPUNeedBytes), Bytes(r.GPUHaveBytes.Bytes))
	}
	text := fmt.Sprintf("up to %s on this machine now: %s", Tokens(r.Ceiling), numbers)
	if r.Reading.System == MacOS {
		text = strings.Replace(text, "this machine", "this Mac", 1)
	}
	switch {
	case r.Idle:
		text += "; part of that is idle memory of other programs, which macOS has to compress first"
	case r.Verdict == Tight && r.Reading.Pressure == Normal:
		text += "; little is left for other programs"
	case r.Verdict == Tight:
		text += "; the system says that memory is short (" + r.Reading.Pressure.String() + ")"
	}
	return text
}

func (r Result) have() string {
	if !r.HaveBytes.Known {
		return "an unknown amount"
	}
	return Bytes(r.HaveBytes.Bytes)
}

func (r Result) refusal() string {
	switch r.Limit {
	case FloorLimit:
		text := fmt.Sprintf("needs a Mac with %s of memory, and this Mac has %s: it takes %s at least", Sold(r.Need.MacFloor), Sold(r.Reading.Total.Bytes), Bytes(r.NeedBytes))
		if left := sub(r.Reading.Total.Bytes, r.NeedBytes); left > 0 {
			text += fmt.Sprintf(", and macOS and all other programs would be left with %s", Bytes(left))
		}
		return text
	case GPULimit:
		text := fmt.Sprintf("needs %s for the GPU, and macOS lets it hold %s", Bytes(r.GPUNeedBytes), Bytes(r.GPUHaveBytes.Bytes))
		if r.Reading.GPURaised.Known && r.Reading.GPURaised.Bytes > 0 {
			text += " (iogpu.wired_limit_mb is set)"
		}
		return text
	}
	text := fmt.Sprintf("needs %s, %s available", Bytes(r.NeedBytes), r.have())
	if len(r.Quit) > 0 {
		text += "; would fit if you quit " + listUsers(r.Quit)
	} else if n := len(r.Reading.Users); n > 0 {
		text += "; the biggest programs are " + listUsers(r.Reading.Users[:min(n, 3)])
	}
	return text
}

// listUsers writes "Docker Desktop, 6.2 GB, and Xcode, 3.1 GB".
func listUsers(users []User) string {
	words := make([]string, len(users))
	for i, u := range users {
		words[i] = u.Name + ", " + Bytes(u.Bytes)
	}
	return strings.Join(words, ", and ")
}

// OverrideSentence says what loading against a Refuse would mean, or why there is no such thing.
func (r Result) OverrideSentence() string {
	switch {
	case r.Verdict != Refuse:
		return "nothing to override"
	case r.Override == Slow && r.Need.Placement == Mapped:
		return "loading anyway works, and is slow: what does not fit is read from the disk again for every token"
	case r.Override == Slow:
		return "loading anyway works, and makes other programs slow: their memory goes to the disk"
	}
	return "no override: it could take the machine down"
}

// Line is one row of the arithmetic.
type Line struct {
	Label string
	Bytes uint64
}

// Arithmetic is the need in rows that add up to NeedBytes. Rows of nothing are left out.
func (r Result) Arithmetic() []Line {
	n := r.Need
	tokens := r.Tokens
	if tokens == 0 {
		tokens = n.least()
	}
	var lines []Line
	sum := uint64(0)
	row := func(label string, bytes uint64) {
		if bytes > 0 {
			lines = append(lines, Line{label, bytes})
			sum = add(sum, bytes)
		}
	}
	row("weights, "+n.Placement.String(), n.Weights)
	row(fmt.Sprintf("state of %d conversations, and %d snapshots of each", n.Sequences, n.Snapshots), n.states())
	row(fmt.Sprintf("keys and values of %d × %s", n.Sequences, Tokens(tokens)), mul(n.perToken(), count(tokens)))
	row("workspace", n.Workspace)
	row("the program itself", n.Program)
	row("left free for the system", r.Reserve)
	row(fmt.Sprintf("more, to the least that must be available (%.1f GiB)", float64(n.AvailableFloor)/(1<<30)), sub(r.NeedBytes, sum))
	return lines
}
