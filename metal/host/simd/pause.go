package simd

// Pause tells the processor that the caller spins: it saves power and gives the other thread of the core a chance.
func Pause()
