package cache

import (
	"cmp"
	"slices"
)

// Index finds, for a prompt, the longest beginning of it that something is kept for: a radix tree over token sequences. It knows nothing of
// what is kept. Invariants:
//   - what is kept at a sequence counts for exactly that many tokens, and is found only as a whole;
//   - a node without anything kept has at least two children, so that the tree is never larger than what it leads to.
//
// It belongs to one goroutine.
type Index[T any] struct {
	tokens int   // in the tree
	clock  int64 // counts calls, the measure of age
	root   *branch[T]
}

// branch is a node: tokens, then what is kept behind them, then how the sequences go on.
type branch[T any] struct {
	tokens   []int32
	parent   *branch[T]
	children map[int32]*branch[T] // by first token
	kept     *Kept[T]             // nil: none
}

// Kept is something that is kept for a sequence of tokens.
type Kept[T any] struct {
	Value  T
	Tokens int // length of the sequence
	at     *branch[T]
	used   int64 // clock of the last use
}

// NewIndex is an empty index.
func NewIndex[T any]() *Index[T] {
	return &Index[T]{root: &branch[T]{children: map[int32]*branch[T]{}}}
}

// TokenBytes is the memory that the tree's tokens take.
func (x *Index[T]) TokenBytes() int64 { return 4 * int64(x.tokens) }

// Put keeps a value for tokens, and returns what was kept for them before.
func (x *Index[T]) Put(tokens []int32, value T) (kept *Kept[T], old *T) {
	x.clock++
	at := x.place(tokens)
	if at.kept != nil {
		old = &at.kept.Value
	}
	at.kept = &Kept[T]{Value: value, Tokens: len(tokens), at: at, used: x.clock}
	return at.kept, old
}

// At returns what is kept for exactly these tokens, and nil where there is nothing. It counts as a use.
func (x *Index[T]) At(tokens []int32) *Kept[T] {
	if k := x.Get(tokens, len(tokens)); k != nil && k.Tokens == len(tokens) {
		return k
	}
	return nil
}

// Common is the length of the longest common prefix of two token lists.
func Common(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// Get returns what is kept for the longest beginning of the prompt, at most limit tokens of it, and nil where there is none. It counts as a use.
func (x *Index[T]) Get(prompt []int32, limit int) *Kept[T] {
	x.clock++
	found := x.search(prompt[:min(limit, len(prompt))])
	if found != nil {
		found.used = x.clock
	}
	return found
}

// Departs is how many tokens of the prompt some kept sequence begins with, whether anything is kept there or not, and how that sequence goes on: nil
// where it ends there.
func (x *Index[T]) Departs(prompt []int32) (common int, instead []int32) {
	at := x.root
	for {
		n := Common(at.tokens, prompt[common:])
		common += n
		if n < len(at.tokens) {
			return common, at.tokens[n:]
		}
		next := (*branch[T])(nil)
		if common < len(prompt) {
			next = at.children[prompt[common]]
		}
		if next == nil {
			var latest *branch[T]
			for _, c := range at.children { // any of them; the first token decides, so that the answer is the same each time
				if latest == nil || c.tokens[0] < latest.tokens[0] {
					latest = c
				}
			}
			if latest != nil && (at.kept == nil || common == len(prompt)) {
				instead = latest.tokens
			}
			return common, instead
		}
		at = next
	}
}

func (x *Index[T]) search(prompt []int32) (found *Kept[T]) {
	at := x.root
	for rest := prompt; ; {
		if n := Common(at.tokens, rest); n < len(at.tokens) {
			return found
		}
		if rest = rest[len(at.tokens):]; at.kept != nil {
			found = at.kept
		}
		if len(rest) == 0 || at.children[rest[0]] == nil {
			return found
		}
		at = at.children[rest[0]]
	}
}

// All lists what is kept, the most recently used first.
func (x *Index[T]) All() []*Kept[T] {
	var out []*Kept[T]
	var walk func(b *branch[T])
	walk = func(b *branch[T]) {
		if b.kept != nil {
			out = append(out, b.kept)
		}
		for _, c := range b.children {
			walk(c)
		}
	}
	walk(x.root)
	slices.SortFunc(out, func(a, b *Kept[T]) int { return cmp.Or(cmp.Compare(b.used, a.used), cmp.Compare(a.Tokens, b.Tokens)) })
	return out
}

// Sequence is the tokens that it is kept for.
func (k *Kept[T]) Sequence() []int32 {
	out := make([]int32, k.Tokens)
	end := k.Tokens
	for b := k.at; b != nil; b = b.parent {
		end -= copy(out[end-len(b.tokens):end], b.tokens)
	}
	return out
}

// place returns the node of a sequence, made where there is none.
func (x *Index[T]) place(tokens []int32) *branch[T] {
	at := x.root
	for len(tokens) > 0 {
		next := at.children[tokens[0]]
		if next == nil {
			next = &branch[T]{tokens: slices.Clone(tokens), parent: at, children: map[int32]*branch[T]{}}
			at.children[tokens[0]] = next
			x.tokens += len(tokens)
			return next
		}
		n := Common(next.tokens, tokens)
		if n < len(next.tokens) {
			next = split(next, n)
		}
		at, tokens = next, tokens[n:]
	}
	return at
}

// split makes two nodes of one, the first n tokens in the first, and returns that.
func split[T any](b *branch[T], n int) *branch[T] {
	first := &branch[T]{tokens: slices.Clone(b.tokens[:n]), parent: b.parent, children: map[int32]*branch[T]{b.tokens[n]: b}}
	b.parent.children[b.tokens[0]] = first
	b.tokens, b.parent = slices.Clone(b.tokens[n:]), first
	return first
}

// Remove forgets what is kept, and the nodes that lead to nothing then.
func (x *Index[T]) Remove(k *Kept[T]) {
	at := k.at
	at.kept = nil
	for at.parent != nil && at.kept == nil && len(at.children) == 0 {
		x.tokens -= len(at.tokens)
		delete(at.parent.children, at.tokens[0])
		at = at.parent
	}
	if at.parent != nil && at.kept == nil && len(at.children) == 1 { // one way on: one node
		for _, only := range at.children {
			only.tokens = slices.Concat(at.tokens, only.tokens)
			only.parent = at.parent
			at.parent.children[at.tokens[0]] = only
		}
	}
}

// Least is what is worth least, but for one: the tokens that would be computed again without it, from the next shorter sequence on, for
// each byte that goes with it, and the less the longer ago it was used. nil where there is no other.
func (x *Index[T]) Least(but *Kept[T], cost func(T) int64) (least *Kept[T]) {
	worth := 0.0
	for _, k := range x.All() {
		if k == but {
			continue
		}
		saved := k.Tokens
		for b := k.at.parent; b != nil; b = b.parent {
			if b.kept != nil {
				saved -= b.kept.Tokens
				break
			}
		}
		if w := float64(saved) / float64(cost(k.Value)+1) / float64(x.clock-k.used+1); least == nil || w < worth {
			least, worth = k, w
		}
	}
	return least
}
