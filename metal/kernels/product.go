package kernels

// matrix is one quantised weight matrix as it lies in the file: w = scale*q + bias in groups of 64 along K (spec 3.4).
type matrix struct {
	codes, scales, biases []byte
	k, bits               int
}

func matrixOf(a []Arg, segment, k, bits int) matrix {
	a = a[SegmentArgs*segment:]
	return matrix{a[0].Raw, a[1].Raw, a[2].Raw, k, bits}
}

// expert is matrix e of a stack of matrices of n rows.
func (m matrix) expert(e, n int) matrix {
	row, groups := m.k*m.bits/8, m.k/Group*2
	m.codes = m.codes[e*n*row : (e+1)*n*row]
	m.scales = m.scales[e*n*groups : (e+1)*n*groups]
	m.biases = m.biases[e*n*groups : (e+1)*n*groups]
	return m
}

// unpack writes the codes of one group as floats.
func (m matrix) unpack(q *[Group]float32, row, group int) {
	if m.bits == 8 {
		for i, b := range m.codes[row*m.k+group*Group:][:Group] {
			q[i] = float32(b)
		}
		return
	}
	for i, b := range m.nibbles(row, group) {
		q[2*i] = float32(b & 15)
		q[2*i+1] = float32(b >> 4)
	}
}

// nibbles are the packed 4-bit codes of one group.
func (m matrix) nibbles(row, group int) *[Group / 2]byte {
	return (*[Group / 2]byte)(m.codes[row*m.k/2+group*Group/2:])
}

// nibbleValues is the value of each 4-bit code: a load is cheaper than a conversion.
type nibbleValues [16]float32

func newNibbleValues() (t nibbleValues) {
	for i := range t {
		t[i] = float32(i)
	}
	return t
}

// rowsTimesVector computes dst[i] = W[r0+i] · x for each i. Within a group the products are added from the lowest index up in one
// float32 accumulator, then acc += scale*dot + bias*sum(x), group after group: rowsTimesMatrix adds in the same order, which
// is what makes prefill and decode equal bit for bit. Four rows go together because one chain of additions would wait four
// cycles for each.
func rowsTimesVector(dst []float32, m matrix, r0 int, x, sums []float32) {
	var q [4][Group]float32
	t := newNibbleValues()
	i := 0
	for ; i+4 <= len(dst); i += 4 {
		var a0, a1, a2, a3 float32
		r := r0 + i
		for g := range sums {
			var d0, d1, d2, d3 float32
			if xg := (*[Group]float32)(x[g*Group:]); m.bits == 4 {
				d0, d1, d2, d3 = dotNibbles(m.nibbles(r, g), m.nibbles(r+1, g), m.nibbles(r+2, g), m.nibbles(r+3, g), xg, &t)
			} else {
				for j := range q {
					m.unpack(&q[j], r+j, g)
				}
				d0, d1, d2, d3 = dotFour(xg, &q[0], &q[1], &q[2], &q[3])
			}
			a0 = m.accumulate(a0, d0, sums[g], r, g)
			a1 = m.accumulate(a1, d1, sums[g], r+1, g)
			a2 = m.accumulate(a2, d2, sums[g], r+2, g)
			a3 = m.accumulate(a3, d3, sums[g], r+3, g)
		}
		dst[i], dst[i+1], dst[i+2], dst[i+3] = a0, a1, a2, a3
	}
	for ; i < len(dst); i++ {
		var acc float32
		for g := range sums {
			m.unpack(&q[0], r0+i, g)
			acc = m.accumulate(acc, dot(&q[0], (*[Group]float32)(x[g*Group:])), sums[g], r0+i, g)
		}
		dst[i] = acc
	}
}

// accumulate adds one group. The explicit conversions keep each product rounded, so that no compiler fuses it differently in
// one caller than in another.
func (m matrix) accumulate(acc, dot, sum float32, row, group int) float32 {
	i := row*(m.k/Group) + group
	return acc + float32(float32(bf16(m.scales, i)*dot)+float32(bf16(m.biases, i)*sum))
}

func dot(q, x *[Group]float32) float32 {
	var a float32
	for i, v := range q {
		a += float32(v * x[i])
	}
	return a
}

// dotFour is four dots with one vector v.
func dotFour(v, x0, x1, x2, x3 *[Group]float32) (a0, a1, a2, a3 float32) {
	for i := 0; i < Group; i += 2 {
		p, q := v[i], v[i+1]
		a0 += float32(p * x0[i])
		a1 += float32(p * x1[i])
		a2 += float32(p * x2[i])
		a3 += float32(p * x3[i])
		a0 += float32(q * x0[i+1])
		a1 += float32(q * x1[i+1])
		a2 += float32(q * x2[i+1])
		a3 += float32(q * x3[i+1])
	}
	return
}

// dotNibbles is dotFour on packed rows.
func dotNibbles(c0, c1, c2, c3 *[Group / 2]byte, x *[Group]float32, t *nibbleValues) (a0, a1, a2, a3 float32) {
	for i, b0 := range c0 {
		b1, b2, b3 := c1[i], c2[i], c3[i]
		p, q := x[2*i], x[2*i+1]
		a0 += float32(t[b0&15] * p)
		a1 += float32(t[b1&15] * p)
		a2 += float32(t[b2&15] * p)
		a3 += float32(t[b3&15] * p)
		a0 += float32(t[b0>>4] * q)
		a1 += float32(t[b1>>4] * q)
		a2 += float32(t[b2>>4] * q)
		a3 += float32(t[b3>>4] * q)
	}
	return
}

// rowsTimesMatrix computes, for rows [r0, r1) of W and each listed row of x, y[out(t)*ldy + col + r-r0] = W[r] · x[in(t)]. Four
// tokens share one unpacked row; the order of additions is that of rowsTimesVector.
type rowsTimesMatrix struct {
	m      matrix
	r0, r1 int
	x      []float32 // [*, K]
	sums   []float32 // [*, K/64]
	y      []float32
	ldy    int
	col    int
	in     []uint32 // rows of x, nil = 0..tokens-1
	out    []uint32 // rows of y, nil = 0..tokens-1
	tokens int
	acc    []float32 // workspace, at least tokens
}

func (p rowsTimesMatrix) inRow(t int) int {
	if p.in == nil {
		return t
	}
	return int(p.in[t])
}

func (p rowsTimesMatrix) run() {
	var q [Group]float32
	k, groups := p.m.k, p.m.k/Group
	acc := p.acc[:p.tokens]
	for r := p.r0; r < p.r1; r++ {
		clear(acc)
		for g := range groups {
			p.m.unpack(&q, r, g)
			i := r*groups + g
			scale, bias := bf16(p.m.scales, i), bf16(p.m.biases, i)
			t := 0
			for ; t+4 <= p.tokens; t += 4 {
				i0, i1, i2, i3 := p.inRow(t), p.inRow(t+1), p.inRow(t+2), p.inRow(t+3)
				d0, d1, d2, d3 := dotFour(&q, (*[Group]float32)(p.x[i0*k+g*Group:]), (*[Group]float32)(p.x[i1*k+g*Group:]),
					(*[Group]float32)(p.x[i2*k+g*Group:]), (*[Group]float32)(p.x[i3*k+g*Group:]))
				acc[t] += float32(float32(scale*d0) + float32(bias*p.sums[i0*groups+g]))
				acc[t+1] += float32(float32(scale*d1) + float32(bias*p.sums[i1*groups+g]))
				acc[t+2] += float32(float32(scale*d2) + float32(bias*p.sums[i2*groups+g]))
				acc[t+3] += float32(float32(scale*d3) + float32(bias*p.sums[i3*groups+g]))
			}
			for ; t < p.tokens; t++ {
				row := p.inRow(t)
				d := dot(&q, (*[Group]float32)(p.x[row*k+g*Group:]))
				acc[t] += float32(float32(scale*d) + float32(bias*p.sums[row*groups+g]))
			}
		}
		for t, v := range acc {
			row := t
			if p.out != nil {
				row = int(p.out[t])
			}
			p.y[row*p.ldy+p.col+r-p.r0] = v
		}
	}
}
