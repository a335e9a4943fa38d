// Package mslpp rewrites preprocessed Metal Shading Language so that a C++20 compiler takes it: as code that the stand-in runs
// (Host), as code that is only type-checked, with address spaces as real types (Lint), or as CUDA (CUDA).
//
// It is a lexer and a walk over declarations, not a C++ parser: expressions and types stay as they are, and what is left of the
// language is library, in the msl_ headers. Line markers survive, so every later message names a line of the .metal text. What Apple's
// compiler refuses and a C++ compiler would let pass is an error here. Start with Rewrite; declare.go walks, kernel.go makes entry points,
// space.go handles address spaces, strict.go refuses, cuda.go is what CUDA has otherwise.
package mslpp

import (
	"fmt"
	"slices"
	"strings"
)

// Target is what the rewritten text is for.
type Target uint8

const (
	Host Target = iota // runs on the processor, with msl_host.h
	Lint               // type check with clang's address_space, with msl_lint.h
	CUDA               // machine code for an NVIDIA GPU, a kernel at a time, with msl_cuda.h
)

func (t Target) String() string { return [...]string{"host", "lint", "cuda"}[t] }

// Error lists what is wrong with the text, a line each in a compiler's form: "gemv.metal:12: error: …".
type Error struct{ Lines []string }

func (e *Error) Error() string { return strings.Join(e.Lines, "\n") }

// Rewrite turns the output of a C preprocessor into C++. file names the source until the first line marker. The error is an *Error
// when the text is at fault.
func Rewrite(src, file string, target Target) (out string, err error) {
	// The walk assumes declarations; a text that is something else, and that every compiler refuses, may lead it out of its tokens.
	defer func() {
		if p := recover(); p != nil {
			out, err = "", &Error{Lines: []string{fmt.Sprintf("%s: error: the text is no sequence of declarations (%v)", file, p)}}
		}
	}()
	ts, err := lex(src, file)
	if err != nil {
		return "", &Error{Lines: []string{err.Error()}}
	}
	for range lookahead {
		ts = append(ts, token{kind: end, file: file, line: ts[len(ts)-1].line})
	}
	r := &rewriter{ts: ts, target: target, kernels: map[string]*kernel{}, mentions: map[string]map[string]bool{}, signatures: map[string]string{}, constants: map[string]bool{}, declared: map[string]bool{}, indexOf: map[string]string{}, asked: map[string]bool{}}
	if err := r.balance(); err != nil {
		return "", &Error{Lines: []string{err.Error()}}
	}
	r.words()
	r.scope(0, len(r.ts)-1-lookahead, scopeOf{})
	r.spaces()
	if len(r.errs) > 0 {
		slices.SortStableFunc(r.errs, func(a, b fault) int { return a.at - b.at })
		e := &Error{}
		for _, f := range r.errs {
			if l := r.ts[f.at].pos() + ": error: " + f.text; !slices.Contains(e.Lines, l) {
				e.Lines = append(e.Lines, l)
			}
		}
		return "", e
	}
	return r.print(), nil
}

// lookahead is how many ends follow the text, so that a look at the next few tokens needs no check.
const lookahead = 8

// fault is one complaint at a token.
type fault struct {
	at   int
	text string
}

// rewriter holds one translation. Token indexes stay valid throughout: nothing is inserted or removed, tokens only change.
type rewriter struct {
	ts     []token
	mate   []int // for each bracket, the index of the other one
	target Target
	errs   []fault

	kernels    map[string]*kernel
	entries    []entry                    // what is registered, in order of appearance
	mentions   map[string]map[string]bool // function, or a constant that is computed -> words in its body, to know what it may call and read
	signatures map[string]string          // function definitions without address spaces -> where
	constants  map[string]bool            // function constants and what is computed from them
	declared   map[string]bool            // of these, the function constants
	indexOf    map[string]string          // function constant -> its index
	asked      map[string]bool            // function constants under is_function_constant_defined
	unique     int
}

func (r *rewriter) fail(at int, format string, a ...any) {
	r.errs = append(r.errs, fault{at, fmt.Sprintf(format, a...)})
}

// balance pairs the brackets ( [ {.
func (r *rewriter) balance() error {
	r.mate = make([]int, len(r.ts))
	var open []int
	for i, t := range r.ts {
		if t.kind != punct {
			continue
		}
		switch t.s {
		case "(", "[", "{":
			open = append(open, i)
		case ")", "]", "}":
			if len(open) == 0 || strings.Index("([{", r.ts[open[len(open)-1]].s) != strings.Index(")]}", t.s) {
				return fmt.Errorf("%s: error: unexpected '%s'", t.pos(), t.s)
			}
			o := open[len(open)-1]
			open = open[:len(open)-1]
			r.mate[o], r.mate[i] = i, o
		}
	}
	if len(open) > 0 {
		t := r.ts[open[len(open)-1]]
		return fmt.Errorf("%s: error: '%s' is never closed", t.pos(), t.s)
	}
	return nil
}

// is reports whether token i is the word or operator s.
func (r *rewriter) is(i int, s string) bool {
	return i >= 0 && i < len(r.ts) && r.ts[i].s == s && r.ts[i].kind != text && r.ts[i].kind != line
}

func (r *rewriter) isOneOf(i int, words ...string) bool {
	return slices.ContainsFunc(words, func(s string) bool { return r.is(i, s) })
}

// next returns the first token at or after i that is no preprocessor line.
func (r *rewriter) next(i int) int {
	for i < len(r.ts)-1 && r.ts[i].kind == line {
		i++
	}
	return min(i, len(r.ts)-1)
}

// find returns the first token at or after i that is one of the words, or the end of the text.
func (r *rewriter) find(i int, words ...string) int {
	for i < len(r.ts)-1 && !r.isOneOf(i, words...) {
		i++
	}
	return min(i, len(r.ts)-1)
}

// prev returns the last live token before i, or -1.
func (r *rewriter) prev(i int) int {
	for i--; i >= 0 && (r.ts[i].kind == line || r.ts[i].dropped); i-- {
	}
	return i
}

// attribute reports whether an attribute list [[…]] opens at i.
func (r *rewriter) attribute(i int) bool {
	return r.is(i, "[") && r.is(i+1, "[") && r.mate[i+1] == r.mate[i]-1
}

// closeAngle returns the index of the '>' that closes the '<' at i, or -1: then it was a comparison.
func (r *rewriter) closeAngle(i int) int {
	depth := 0
	for ; i < len(r.ts) && r.ts[i].kind != end; i++ {
		switch {
		case r.is(i, "<"):
			depth++
		case r.is(i, ">"):
			if depth--; depth == 0 {
				return i
			}
		case r.isOneOf(i, "(", "[", "{"):
			i = r.mate[i]
		case r.isOneOf(i, ";", ")", "]", "}", "&&", "||"):
			return -1
		}
	}
	return -1
}

// drop removes [a, b) from the output; lines stay.
func (r *rewriter) drop(a, b int) {
	for ; a < b; a++ {
		if r.ts[a].kind != line {
			r.ts[a].dropped = true
		}
	}
}

// source returns the text of [a, b) on one line, without what was dropped.
func (r *rewriter) source(a, b int) string {
	var sb strings.Builder
	for ; a < b; a++ {
		t := r.ts[a]
		if t.dropped || t.kind == line {
			continue
		}
		if t.space != "" {
			sb.WriteByte(' ')
		}
		sb.WriteString(t.before + t.s)
	}
	return strings.TrimSpace(sb.String())
}

// print writes the text with its registrations.
func (r *rewriter) print() string {
	var sb strings.Builder
	if r.target != Lint {
		sb.WriteString(r.swizzles())
	}
	if r.target == CUDA {
		sb.WriteString(r.settings())
	}
	fmt.Fprintf(&sb, "#include \"msl_%s.h\"\nnamespace metal { namespace msl_text {\n", r.target)
	if r.ts[0].kind != line {
		fmt.Fprintf(&sb, "# 1 %q\n", r.ts[0].file)
	}
	for _, t := range r.ts {
		sb.WriteString(t.space)
		if t.dropped {
			sb.WriteString(t.before)
			continue
		}
		sb.WriteString(t.before + t.s)
	}
	sb.WriteString("\n# 1 \"kernels\"\n")
	for i, e := range r.entries {
		switch r.target {
		case Host:
			sb.WriteString(r.register(i, e))
		case CUDA:
			sb.WriteString(r.entry(e))
		}
	}
	sb.WriteString("} }\n")
	return sb.String()
}
