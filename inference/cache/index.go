package cache

import (
	"cmp"
	"slices"
)

// Index finds, for a prompt, the longest beginning of it that something is kept for: a radix tree over token sequences. It knows nothing of
// what is kept but its size, and frees it through a function. Invariants:
//   - what is kept at a sequence counts for exactly that many tokens, and is found only as a whole;
//   - used is the sum of the bytes of everything kept and of the tokens of the tree, and never above the budget after a call;
//   - a node without anything kept has at least two children, so that the tree is never larger than what it leads to;
//   - what is held is never dropped.
//
// It belongs to one goroutine.
type Index[T any] struct {
	budget int64
	used   int64
	clock  int64 // counts calls, the measure of age
	root   *branch[T]
	drop   func(T)
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
	Tokens int   // length of the sequence
	Bytes  int64 // size of the value
	at     *branch[T]
	used   int64 // clock of the last use
	holds  int
}

// tokenBytes is what a token of the tree takes.
const tokenBytes = 4

// NewIndex is an empty index. drop is called with what is let go of, to free it; nil does nothing.
func NewIndex[T any](budgetBytes int64, drop func(T)) *Index[T] {
	if drop == nil {
		drop = func(T) {}
	}
	return &Index[T]{budget: budgetBytes, root: &branch[T]{children: map[int32]*branch[T]{}}, drop: drop}
}

// Used is the bytes of everything kept and of the tree.
func (x *Index[T]) Used() int64 { return x.used }

// SetBudget changes the budget and drops what is above it.
func (x *Index[T]) SetBudget(bytes int64) {
	x.budget = bytes
	x.shrink(nil)
}

// Put keeps a value for tokens, in place of an older one. It reports false, and drops the value, where it does not fit even with all else
// dropped that is not held.
func (x *Index[T]) Put(tokens []int32, value T, bytes int64) bool {
	x.clock++
	var held int64
	for _, k := range x.All() {
		if k.holds > 0 {
			held += k.Bytes
		}
	}
	if held+bytes+tokenBytes*int64(len(tokens)) > x.budget {
		x.drop(value)
		return false
	}
	at := x.place(tokens)
	if old := at.kept; old != nil {
		if old.holds > 0 { // somebody works from it: it says the same
			old.used = x.clock
			x.drop(value)
			return true
		}
		x.used -= old.Bytes
		x.drop(old.Value)
	}
	at.kept = &Kept[T]{Value: value, Tokens: len(tokens), Bytes: bytes, at: at, used: x.clock}
	x.used += bytes
	kept := at.kept
	x.shrink(kept)
	if x.used > x.budget {
		x.remove(kept)
		return false
	}
	return true
}

// Get returns what is kept for the longest beginning of the prompt, at most limit tokens of it, and nil where there is none. It counts as a use.
func (x *Index[T]) Get(prompt []int32, limit int) *Kept[T] {
	x.clock++
	found, _ := x.search(prompt[:min(limit, len(prompt))])
	if found != nil {
		found.used = x.clock
	}
	return found
}

// Common is how many tokens of the prompt some kept sequence begins with, whether anything is kept there or not: where a miss went another way.
func (x *Index[T]) Common(prompt []int32) int {
	_, common := x.search(prompt)
	return common
}

func (x *Index[T]) search(prompt []int32) (found *Kept[T], common int) {
	at := x.root
	for {
		n := Common(at.tokens, prompt[common:])
		common += n
		if n < len(at.tokens) {
			return found, common
		}
		if at.kept != nil {
			found = at.kept
		}
		if common == len(prompt) || at.children[prompt[common]] == nil {
			return found, common
		}
		at = at.children[prompt[common]]
	}
}

// Hold keeps it from being dropped until as many calls of Release.
func (x *Index[T]) Hold(k *Kept[T]) { k.holds++ }

// Release ends a Hold, and drops what is above the budget.
func (x *Index[T]) Release(k *Kept[T]) {
	k.holds--
	x.shrink(nil)
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

// Clear drops everything that is not held and returns the bytes that were freed.
func (x *Index[T]) Clear() (freedBytes int64) {
	before := x.used
	for _, k := range x.All() {
		if k.holds == 0 {
			x.remove(k)
		}
	}
	return before - x.used
}

// place returns the node of a sequence, made where there is none.
func (x *Index[T]) place(tokens []int32) *branch[T] {
	at := x.root
	for len(tokens) > 0 {
		next := at.children[tokens[0]]
		if next == nil {
			next = &branch[T]{tokens: slices.Clone(tokens), parent: at, children: map[int32]*branch[T]{}}
			at.children[tokens[0]] = next
			x.used += tokenBytes * int64(len(tokens))
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

// remove drops what is kept at a node, and the nodes that lead to nothing then.
func (x *Index[T]) remove(k *Kept[T]) {
	x.used -= k.Bytes
	at := k.at
	at.kept = nil
	x.drop(k.Value)
	for at.parent != nil && at.kept == nil && len(at.children) == 0 {
		x.used -= tokenBytes * int64(len(at.tokens))
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

// shrink drops the least worth until the budget holds. What was just put is dropped last, so that a new conversation can begin.
func (x *Index[T]) shrink(put *Kept[T]) {
	for x.used > x.budget {
		var least *Kept[T]
		for _, k := range x.All() {
			if k.holds == 0 && k != put && (least == nil || x.worth(k) < x.worth(least)) {
				least = k
			}
		}
		if least == nil {
			return
		}
		x.remove(least)
	}
}

// worth is what is lost by dropping: the tokens that would be computed again, from the next shorter sequence on, for each byte, and the less the
// longer ago it was used.
func (x *Index[T]) worth(k *Kept[T]) float64 {
	saved := k.Tokens
	for b := k.at.parent; b != nil; b = b.parent {
		if b.kept != nil {
			saved -= b.kept.Tokens
			break
		}
	}
	return float64(saved) / float64(k.Bytes+1) / float64(x.clock-k.used+1)
}
