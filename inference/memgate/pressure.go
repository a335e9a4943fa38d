package memgate

import (
	"context"
	"time"
)

// Pressure is how short of memory the system says it is.
type Pressure uint8

const (
	Normal   Pressure = iota // or unknown
	Warning                  // give back what can be made again
	Critical                 // give back at once, or be killed
)

func (p Pressure) String() string {
	switch p {
	case Warning:
		return "warning"
	case Critical:
		return "critical"
	}
	return "normal"
}

// PressureInterval is how often Watch asks; a question is one system call.
const PressureInterval = time.Second

// Watch asks the system for its pressure until ctx is done and tells every change, the first time when it is not Normal. It calls
// tell on its own goroutine's time: while tell works, nothing is asked. ask is CurrentPressure except in tests.
func Watch(ctx context.Context, every time.Duration, ask func() Pressure, tell func(Pressure)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	last := Normal
	for {
		if p := ask(); p != last {
			last = p
			tell(p)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Loaded compares the machine before and after a load: what the model really took, whether it still fits, and what the load
// pushed into swap.
type Loaded struct {
	Result            // checked anew; the model's own memory is not counted twice
	OwnGrowth  uint64 // bytes that this process's footprint grew by
	SwapGrowth Amount // bytes that swap grew by, all programs together; unknown when either reading lacks it
}

// swapNoise is a growth of swap that no one feels: other programs swap a little at any time.
const swapNoise = 64 << 20

// Recheck looks again after a load.
func Recheck(before, after Reading, n Need) Loaded {
	l := Loaded{Result: Check(after, n), OwnGrowth: sub(after.Own.or(0), before.Own.or(0))}
	if before.SwapUsed.Known && after.SwapUsed.Known {
		l.SwapGrowth = Of(sub(after.SwapUsed.Bytes, before.SwapUsed.Bytes))
	}
	return l
}

// Swapped reports whether the load pushed memory into swap to a degree that is felt.
func (l Loaded) Swapped() bool { return l.SwapGrowth.Known && l.SwapGrowth.Bytes > swapNoise }
