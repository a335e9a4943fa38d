package fullsize

// What the bytes are. A tensor is a row of little-endian 64-bit words; word i is (mix(key + i·gamma) & mask) ^ pattern, where mix is
// the output function of SplitMix64 and key the FNV-1a of a name. Mask and pattern hold the same 16 bits four times, so that a word is
// four bfloat16 with a chosen exponent, and random sign and mantissa:
//
//	codes        every bit random
//	scales       ±2^e · [1, 2); e by the width of the rows, so that a product keeps its input's size
//	biases       the same words as the scales (one key for both), sign turned and exponent raised by 3 (4 bit) or 7 (8 bit): exactly
//	             -8 or -128 scales, half a code below the middle, which random signs of the scales average out
//	norms        [1, 1.25)
//	conv1d       ±[0.25, 0.5)
//	A_log, dt    ±[0.5, 1)
//	vision       ±2^-6 · [1, 2)

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"sort"
	"strings"

	"pond/inference/tinymodel"
)

// content makes the bytes of a tensor.
type content struct {
	key, mask, pattern uint64
}

const (
	gamma  = 0x9e3779b97f4a7c15
	gamma2 = gamma * 2 & math.MaxUint64
	gamma3 = gamma * 3 & math.MaxUint64
	gamma4 = gamma * 4 & math.MaxUint64
)

// mix is the output function of SplitMix64 (Steele, Lea and Flood).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// keyOf is the FNV-1a of a name.
func keyOf(name string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 0x100000001b3
	}
	return h
}

// signed is ±2^e · [1, 2) in bfloat16: the sign and seven bits of mantissa random.
func signed(e int) (mask, pattern uint16) { return 0x807f, uint16(127+e) << 7 }

func contentOf(t tinymodel.Tensor) (content, error) {
	floats := func(key string, mask, pattern uint16) (content, error) {
		const four = 0x0001_0001_0001_0001
		return content{keyOf(key), uint64(mask) * four, uint64(pattern) * four}, nil
	}
	name := t.Name
	at := strings.LastIndexByte(name, '.')
	module, kind := name[:max(at, 0)], name[at+1:]
	switch {
	case t.DType == "U32":
		return content{keyOf(name), ^uint64(0), 0}, nil
	case strings.HasPrefix(name, visionPrefix):
		mask, pattern := signed(-6)
		return floats(name, mask, pattern)
	case kind == "scales" || kind == "biases":
		e, width := exponent(module, t.Shape[len(t.Shape)-1]*64)
		mask, pattern := signed(e)
		if kind == "biases" {
			_, pattern = signed(e + width - 1)
			pattern ^= 0x8000
		}
		return floats(module+".scales", mask, pattern)
	case strings.HasSuffix(module, "norm"):
		return floats(name, 0x001f, 0x3f80)
	case strings.HasSuffix(module, "conv1d"):
		mask, pattern := signed(-2)
		return floats(name, mask, pattern)
	case kind == "A_log" || kind == "dt_bias":
		mask, pattern := signed(-1)
		return floats(name, mask, pattern)
	}
	return content{}, fmt.Errorf("fullsize: internal error: tensor %s: no content for %s %d", name, t.DType, t.Shape)
}

// exponent chooses the scales' of a module with rows of in weights, and says how many bits a code has. A weight is a scale times a
// code less half the codes: its root mean square is 1.53·4.64 = 7.1 · 2^e with 4 bits and 1.53·73.9 = 113 · 2^e with 8, and 1/√in keeps
// the size of what is multiplied. The embedding has no input (0.44 is about its published size), and a router is three times as sharp.
func exponent(module string, in int) (e, width int) {
	width, rms, want := 4, 7.1, 1/math.Sqrt(float64(in))
	switch {
	case strings.HasSuffix(module, "embed_tokens"):
		want = 0.44
	case strings.HasSuffix(module, "mlp.gate"):
		width, rms, want = 8, 113, 3*want
	case strings.HasSuffix(module, "shared_expert_gate"):
		width, rms = 8, 113
	}
	return int(math.Round(math.Log2(want / rms))), width
}

// fill writes the tensor's bytes from off on into p; the tensor has as many.
func (c content) fill(p []byte, off int64) {
	x := c.key + uint64(off/8)*gamma
	if skip := int(off % 8); skip > 0 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], mix(x)&c.mask^c.pattern)
		p = p[copy(p, word[skip:]):]
		x += gamma
	}
	for len(p) >= 32 { // four at once: the multiplications of one overlap those of the others
		q := p[:32]
		binary.LittleEndian.PutUint64(q[0:], mix(x)&c.mask^c.pattern)
		binary.LittleEndian.PutUint64(q[8:], mix(x+gamma)&c.mask^c.pattern)
		binary.LittleEndian.PutUint64(q[16:], mix(x+gamma2)&c.mask^c.pattern)
		binary.LittleEndian.PutUint64(q[24:], mix(x+gamma3)&c.mask^c.pattern)
		x += gamma4
		p = p[32:]
	}
	for len(p) > 0 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], mix(x)&c.mask^c.pattern)
		p = p[copy(p, word[:]):]
		x += gamma
	}
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("fullsize: %s: got offset %d, want 0 or more", f.Name, off)
	}
	head, err := f.text()
	if err != nil {
		return 0, err
	}
	n := 0
	if off < int64(len(head)) {
		n = copy(p, head[off:])
	}
	i := sort.Search(len(f.tensors), func(i int) bool { return f.tensors[i].end > off+int64(n) })
	for ; n < len(p) && i < len(f.tensors); i++ {
		t := f.tensors[i]
		at := off + int64(n)
		take := min(int64(len(p)-n), t.end-at)
		t.content.fill(p[n:n+int(take)], at-t.begin)
		n += int(take)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Sample fills p with the first bytes of a tensor, for measurements that need numbers of the right size and no whole file.
func Sample(t tinymodel.Tensor, p []byte) error {
	c, err := contentOf(t)
	if err != nil {
		return err
	}
	c.fill(p, 0)
	return nil
}
