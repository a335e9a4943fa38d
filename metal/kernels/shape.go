package kernels

// Letters in shape comments, the same in Go, Metal and the plan:
//
//	M  tokens of a chunk (1 in decode)      D   hidden width
//	N  output rows of a projection          K   input width of a projection
//	E  routed experts                       T   experts a token uses (top-k)
//	I  width of a routed expert             SI  width of the shared expert
//	H  query heads                          KV  key/value heads
//	HD head width                           R   rotated dims of a head
//	HK gdn key heads                        HV  gdn value heads
//	DK gdn key head width                   DV  gdn value head width
//	C  gdn conv width, 2*HK*DK + HV*DV      NB  attention blocks

// Group is how many weights share one scale and bias (MLX affine, spec 3.4).
const Group = 64

// MaxSegments is how many weight matrices one product may take, side by side in its output: the gdn input projection has
// four (qkv, z, b, a).
const MaxSegments = 4

// ConvTaps is the length of the gdn convolution. The conv window keeps as many rows: a ring in which row p%ConvTaps holds
// the input of position p, so that a step may write its own row while other workers still read the three before it.
const ConvTaps = 4

// AttnBlock is how many keys one partial result of attention covers. Blocks start at multiples of it, whatever the chunk or
// the context, so that prefill and decode add in the same order.
const AttnBlock = 256

// StateBlock is how many rows of a gdn state (value dims of one head) one work item owns.
const StateBlock = 32
