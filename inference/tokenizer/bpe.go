package tokenizer

import "math/bits"

// mergeTable maps a pair of ids to the id they merge to and the merge's rank.
// It is a hash table with open addressing and linear probing, at most half
// full: a lookup is mostly one cache line, where a Go map costs several.
type mergeTable struct {
	slots []mergeSlot // length a power of two
	shift uint8       // 64 - log2(len(slots))
	count int
}

type mergeSlot struct {
	key  uint64 // pairKey; 0 = empty
	rank int32
	id   int32
}

// noMerge is the rank of a pair that does not merge: behind every real one.
const noMerge = 1<<31 - 1

func pairKey(left, right int32) uint64 { return uint64(left)<<32 | uint64(right) + 1 }

// newMergeTable makes an empty table for n merges.
func newMergeTable(n int) mergeTable {
	log := max(bits.Len(uint(2*n)), 4)
	return mergeTable{slots: make([]mergeSlot, 1<<log), shift: uint8(64 - log)}
}

func (t *mergeTable) slot(key uint64) *mergeSlot {
	mask := uint64(len(t.slots) - 1)
	for i := key * 0x9e3779b97f4a7c15 >> t.shift; ; i++ {
		s := &t.slots[i&mask]
		if s.key == key || s.key == 0 {
			return s
		}
	}
}

// add enters the next merge; its rank is the number of merges before it. It
// reports false for a pair that is there already.
func (t *mergeTable) add(left, right, id int32) bool {
	key := pairKey(left, right)
	s := t.slot(key)
	if s.key != 0 {
		return false
	}
	*s = mergeSlot{key: key, rank: int32(t.count), id: id}
	t.count++
	return true
}

// find returns the rank of a pair and the id it merges to.
func (t *mergeTable) find(left, right int32) (rank, id int32) {
	s := t.slot(pairKey(left, right))
	if s.key == 0 {
		return noMerge, 0
	}
	return s.rank, s.id
}

// scanLimit is the number of symbols up to which a scan for the best pair is
// faster than a heap. Words are shorter; long runs are not, and the scan is
// quadratic.
const scanLimit = 48

// merger holds the scratch of the merge loop, for one goroutine.
type merger struct {
	rank, made [scanLimit]int32
	next, prev []int32
	heap       []uint64 // rank<<32 | position: the smallest rank first, then the leftmost
}

// merge applies merges to ids in place, each time the one of the lowest rank
// and of those the leftmost, until none applies. It returns how many ids are
// left.
func (m *merger) merge(t *mergeTable, ids []int32) int {
	if len(ids) > scanLimit {
		return m.mergeLong(t, ids)
	}
	n := len(ids)
	for i := 0; i+1 < n; i++ {
		m.rank[i], m.made[i] = t.find(ids[i], ids[i+1])
	}
	for n > 1 {
		best, at := int32(noMerge), 0
		for i, r := range m.rank[:n-1] {
			if r < best {
				best, at = r, i
			}
		}
		if best == noMerge {
			break
		}
		ids[at] = m.made[at]
		copy(ids[at+1:n-1], ids[at+2:n])
		copy(m.rank[at:n-2], m.rank[at+1:n-1])
		copy(m.made[at:n-2], m.made[at+1:n-1])
		n--
		if at > 0 {
			m.rank[at-1], m.made[at-1] = t.find(ids[at-1], ids[at])
		}
		if at+1 < n {
			m.rank[at], m.made[at] = t.find(ids[at], ids[at+1])
		}
	}
	return n
}

// mergeLong is merge by a linked list and a heap of candidate pairs. An entry
// whose pair has changed since is recognised by its rank and dropped.
func (m *merger) mergeLong(t *mergeTable, ids []int32) int {
	n := int32(len(ids))
	m.next, m.prev, m.heap = m.next[:0], m.prev[:0], m.heap[:0]
	for i := range n {
		m.next = append(m.next, i+1)
		m.prev = append(m.prev, i-1)
	}
	offer := func(at int32) {
		if rank, _ := t.find(ids[at], ids[m.next[at]]); rank != noMerge {
			m.push(uint64(rank)<<32 | uint64(at))
		}
	}
	for i := range n - 1 {
		offer(i)
	}
	const gone = -1
	for len(m.heap) > 0 {
		top := m.pop()
		at := int32(uint32(top))
		if ids[at] == gone || m.next[at] == n {
			continue
		}
		after := m.next[at]
		rank, id := t.find(ids[at], ids[after])
		if rank != int32(top>>32) {
			continue
		}
		ids[at], ids[after] = id, gone
		m.next[at] = m.next[after]
		if m.next[at] < n {
			m.prev[m.next[at]] = at
			offer(at)
		}
		if m.prev[at] >= 0 {
			offer(m.prev[at])
		}
	}
	kept := 0
	for i := int32(0); i < n; i = m.next[i] {
		ids[kept] = ids[i]
		kept++
	}
	return kept
}

func (m *merger) push(v uint64) {
	m.heap = append(m.heap, v)
	h := m.heap
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if h[parent] <= h[i] {
			break
		}
		h[parent], h[i] = h[i], h[parent]
		i = parent
	}
}

func (m *merger) pop() uint64 {
	h := m.heap
	top := h[0]
	last := len(h) - 1
	h[0] = h[last]
	h = h[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && h[child+1] < h[child] {
			child++
		}
		if h[i] <= h[child] {
			break
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
	m.heap = h
	return top
}
