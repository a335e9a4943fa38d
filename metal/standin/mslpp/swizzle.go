package mslpp

import (
	"fmt"
	"slices"
	"strings"
)

// swizzles writes the macros MSL_SWIZZLES_2, _3 and _4 of msl_types.h: a proxy for each swizzle that the text uses. All of them would be
// several hundred members in every vector type, and most of the compile time.
func (r *rewriter) swizzles() string {
	used := map[string]bool{}
	for i, t := range r.ts {
		if t.kind == ident && (r.is(i-1, ".") || r.is(i-1, "->")) {
			used[t.s] = true
		}
	}
	var names []string
	for n := range used {
		names = append(names, n)
	}
	slices.Sort(names)
	var sb strings.Builder
	for size := 2; size <= 4; size++ {
		fmt.Fprintf(&sb, "#define MSL_SWIZZLES_%d", size)
		for _, n := range names {
			if index := swizzle(n, size); index != nil {
				fmt.Fprintf(&sb, " msl_swizzle<T, %d, %s> %s;", size, strings.Join(index, ", "), n)
			}
		}
		sb.WriteByte('\n')
	}
	return sb.String()
}

// swizzle returns the components that a name picks from a vector of some size, nil when it is none.
func swizzle(name string, size int) []string {
	if size == 4 {
		switch name {
		case "lo":
			return []string{"0", "1"}
		case "hi":
			return []string{"2", "3"}
		case "even":
			return []string{"0", "2"}
		case "odd":
			return []string{"1", "3"}
		}
	}
	if len(name) < 2 || len(name) > 4 {
		return nil
	}
	for _, letters := range []string{"xyzw", "rgba"} {
		var out []string
		for _, c := range name {
			if i := strings.IndexRune(letters[:size], c); i >= 0 {
				out = append(out, fmt.Sprint(i))
			}
		}
		if len(out) == len(name) {
			return out
		}
	}
	return nil
}
