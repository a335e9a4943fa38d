package badhub

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// Random is lenBytes bytes that depend on the seed alone.
func Random(seed uint64, lenBytes int) Content {
	rng := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24), 'h', 'u', 'b'})
	b := make([]byte, lenBytes)
	if _, err := rng.Read(b); err != nil {
		panic("badhub: internal error: " + err.Error()) // it never fails
	}
	return Bytes(b)
}

// Bytes are content in memory.
type Bytes []byte

// Size is their number.
func (b Bytes) Size() int64 { return int64(len(b)) }

// ReadAt copies.
func (b Bytes) ReadAt(p []byte, at int64) (int, error) {
	if at >= int64(len(b)) {
		return 0, io.EOF
	}
	n := copy(p, b[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// patternBytes is the length of what Pattern repeats.
const patternBytes = 1 << 20

// Pattern is a file of any size that takes a megabyte of memory: random bytes over and over, each repetition begun with its number,
// so that no two places are alike.
type Pattern struct {
	block []byte
	size  int64
}

// NewPattern makes one.
func NewPattern(seed uint64, size int64) *Pattern {
	return &Pattern{Random(seed, patternBytes).(Bytes), size}
}

// Size is the length of the file.
func (p *Pattern) Size() int64 { return p.size }

// ReadAt makes the bytes at an offset.
func (p *Pattern) ReadAt(b []byte, at int64) (int, error) {
	n := 0
	for n < len(b) && at < p.size {
		block, off := at/patternBytes, at%patternBytes
		m := copy(b[n:min(len(b), n+int(min(p.size-at, patternBytes-off)))], p.block[off:])
		if off < 8 {
			var number [8]byte
			binary.LittleEndian.PutUint64(number[:], uint64(block))
			copy(b[n:n+m], number[off:])
		}
		n, at = n+m, at+int64(m)
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// Schedule is a random series of acts that depends on the seed alone, but for the order in which requests come: about rate of all
// requests misbehave, at most most of them. Waits are of the order of wait. With lies, some bytes are wrong too.
func Schedule(seed uint64, rate float64, most int64, wait time.Duration, lies bool) func(Ask) Act {
	var left atomic.Int64
	left.Store(most)
	return func(a Ask) Act {
		rng := rand.New(rand.NewPCG(seed, uint64(a.N)))
		if rng.Float64() >= rate || left.Add(-1) < 0 {
			return Act{}
		}
		length := max(a.To-a.From, 1)
		act := Act{Kind: Kind(1 + rng.IntN(int(kinds)-1)), After: rng.Int64N(length), Wait: wait}
		switch act.Kind {
		case Corrupt, OtherETag:
			if !lies {
				act.Kind = Reset
			}
		case Short, LongLength:
			act.After = rng.Int64N(min(length, 4096))
		case Trickle:
			act.Wait = wait / 20
		case Status:
			statuses := []int{429, 503, 500, 502, 403, 404, 408, 410, 416, 401, 418}
			act.Status = statuses[rng.IntN(len(statuses))]
			if act.Status == 429 || act.Status == 503 {
				act.RetryAfter = []string{"", "0", "soon", time.Now().UTC().Format(time.RFC1123)}[rng.IntN(4)]
			}
		}
		return act
	}
}
