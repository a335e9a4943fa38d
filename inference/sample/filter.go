package sample

import (
	"cmp"
	"math"
	"slices"
)

// candidate is a token that may be drawn.
type candidate struct {
	id     int32
	logit  float32
	weight uint64 // see weight
}

// descending orders by logit, the largest first, the lower id first of equal
// ones.
func descending(a, b candidate) int {
	return cmp.Or(cmp.Compare(b.logit, a.logit), cmp.Compare(a.id, b.id))
}

// keep returns the tokens that the filters leave, with their weights, in
// ascending order of id. largest is the maximum of logits. At least the
// likeliest token is left. The slice is valid until the next call.
func (s *Sampler) keep(logits []float32, largest float32) []candidate {
	p := &s.params
	var kept []candidate
	if p.TopK > 0 && p.TopK < len(logits) {
		kept = s.largest(logits, p.TopK)
		slices.SortFunc(kept, func(a, b candidate) int { return cmp.Compare(a.id, b.id) })
	} else {
		kept = s.all(logits)
	}
	var total uint64
	for i := range kept {
		c := &kept[i]
		c.weight = weight(c.logit, largest, s.draw.Scale)
		total += c.weight
	}
	if s.draw.TopP > 0 {
		kept = s.topP(kept, total)
	}
	if s.draw.Least > 0 {
		kept = slices.DeleteFunc(kept, func(c candidate) bool { return c.weight < s.draw.Least })
	}
	return kept
}

// all returns every token of finite logit.
func (s *Sampler) all(logits []float32) []candidate {
	out := s.candidates[:0]
	for id, x := range logits {
		if !math.IsInf(float64(x), -1) {
			out = append(out, candidate{id: int32(id), logit: x})
		}
	}
	s.candidates = out
	return out
}

// largest returns exactly n tokens, n at most len(logits): those of the largest
// logits in descending order, the lower id first of equal ones, also at the cut.
// A heap of n keeps the pass over the vocabulary to one comparison a token.
func (s *Sampler) largest(logits []float32, n int) []candidate {
	heap := s.candidates[:0]
	for id, x := range logits[:n] {
		heap = append(heap, candidate{id: int32(id), logit: x})
	}
	for i := n/2 - 1; i >= 0; i-- {
		sink(heap, i)
	}
	if n > 0 {
		least := heap[0].logit
		for i, x := range logits[n:] {
			if x > least { // of equal ones the earlier stays
				heap[0] = candidate{id: int32(n + i), logit: x}
				sink(heap, 0)
				least = heap[0].logit
			}
		}
	}
	slices.SortFunc(heap, descending)
	s.candidates = heap
	return heap
}

// sink restores a heap whose root is last in descending order.
func sink(heap []candidate, i int) {
	for {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if child+1 < len(heap) && descending(heap[child], heap[child+1]) < 0 {
			child++
		}
		if descending(heap[i], heap[child]) >= 0 {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}

// topP keeps a token where the likelier ones together stay below a part of total,
// the sum of all weights. It looks for the last such token by halving, as quickselect
// does: a sort of a flat distribution would take 100 ms.
func (s *Sampler) topP(kept []candidate, total uint64) []candidate {
	enough := topPart(total, s.draw.TopP)
	// Tokens below this bound have together at most half of what is cut off, so all
	// of them are.
	bound := (total - enough) / 2 / uint64(len(kept))
	rest := s.nucleus[:0]
	for _, c := range kept {
		if c.weight >= bound {
			rest = append(rest, c)
		}
	}
	s.nucleus = rest
	before := uint64(0) // sum of the tokens likelier than all of rest; the last token to keep is in rest
	for len(rest) > 1 {
		n := split(rest)
		sum := uint64(0)
		for _, c := range rest[:n] {
			sum += c.weight
		}
		if before+sum >= enough {
			rest = rest[:n]
		} else {
			before += sum
			rest = rest[n:]
		}
	}
	last := rest[0]
	return slices.DeleteFunc(kept, func(c candidate) bool { return descending(c, last) > 0 })
}

// split moves the first n of c in descending order to its front, for some n
// with 0 < n < len(c).
func split(c []candidate) (n int) {
	end := len(c) - 1
	middle := end / 2
	if descending(c[middle], c[0]) < 0 {
		c[middle], c[0] = c[0], c[middle]
	}
	if descending(c[end], c[middle]) < 0 {
		c[end], c[middle] = c[middle], c[end]
	}
	if descending(c[middle], c[0]) > 0 { // the median of three goes to the end
		c[middle], c[end] = c[end], c[middle]
	} else {
		c[0], c[end] = c[end], c[0]
	}
	for i := range end {
		if descending(c[i], c[end]) < 0 {
			c[i], c[n] = c[n], c[i]
			n++
		}
	}
	c[n], c[end] = c[end], c[n]
	return max(n, 1)
}

// pick returns the first token, in ascending order of id, up to which the
// weights reach beyond u parts of 2^24 of their sum, u below 2^24.
func pick(kept []candidate, u uint32) int32 {
	var total, sum uint64
	for _, c := range kept {
		total += c.weight
	}
	target := uniformPart(total, u)
	for _, c := range kept {
		if sum += c.weight; sum > target {
			return c.id
		}
	}
	return kept[len(kept)-1].id // the likeliest has a weight, so the loop has returned
}
