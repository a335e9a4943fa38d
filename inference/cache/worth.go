package cache

import (
	"cmp"
	"slices"
)

// Which snapshots are worth the disk. A state of the full model is 64 MB, a turn of a conversation makes two, and most of them are never gone
// back to: what a later process starts from is the end of a conversation, the place before its last answer, or where conversations part. Such a
// state is saved when it spares more than a token a MiB: reading one takes about as long as computing one. Any other, which is for
// an edit in the middle, must spare sixteen times as much.
const (
	endBytesAToken  = 1 << 20
	restBytesAToken = 64 << 10
)

// Saving is a snapshot to be written, with the tokens that lead to it.
type Saving struct {
	Tokens   []int32
	Snapshot *Snapshot
}

// Savings lists what is worth the disk and not there, what others build on first.
func (s *Store) Savings(d *Disk) (out []Saving) {
	all := s.index.All()
	slices.SortStableFunc(all, func(a, b *Kept[*Snapshot]) int { return cmp.Compare(a.Tokens, b.Tokens) })
	chosen := map[*branch[*Snapshot]]bool{}
	for _, k := range all {
		tokens := k.Sequence()
		there := d.Longest(tokens, len(tokens))
		if there == len(tokens) {
			continue
		}
		for b := k.at.parent; b != nil; b = b.parent {
			if chosen[b] {
				there = max(there, b.kept.Tokens)
				break
			}
		}
		limit := int64(restBytesAToken)
		if k.at.end() || k.at.parts() {
			limit = endBytesAToken
		}
		if k.Value.StateBytes() <= limit*int64(len(tokens)-there) {
			chosen[k.at] = true
			out = append(out, Saving{tokens, k.Value})
		}
	}
	return out
}

// end reports whether nothing is kept behind a node, or only the answer to it.
func (b *branch[T]) end() bool {
	for _, c := range b.children {
		if c.kept != nil && len(c.children) == 0 {
			return true
		}
	}
	return len(b.children) == 0
}

// parts reports whether sequences go different ways from a node.
func (b *branch[T]) parts() bool { return len(b.children) > 1 }
