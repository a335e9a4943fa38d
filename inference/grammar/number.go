package grammar

import (
	"fmt"
	"math/big"
	"strings"
)

// Numbers. Ranges are written as expressions over digits: a number is at least 3.25 if its whole part is above 3, or is 3 and its
// fraction, digit by digit, at least 25.

const (
	anyInteger  = `0|-?[1-9][0-9]{0,17}`
	anyFraction = `-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?([eE][+-]?[0-9]{1,2})?`
	tail        = 15 // digits behind the point in a range
	mostDigits  = 18 // before it
)

func (b *builder) anyNumber(from, to stateID, whole bool) {
	name, expr := "number", anyFraction
	if whole {
		name, expr = "integer", anyInteger
	}
	b.call(from, to, b.part(name, func(from, to stateID) {
		d, err := regular(expr, plainText, false)
		if err != nil {
			panic("grammar: internal error: " + err.Error())
		}
		b.dfa(from, to, d)
	}))
}

func (b *builder) number(from, to stateID, s *shape) {
	whole := s.types&typeFraction == 0
	if s.types&typeInteger == 0 {
		return // fractions alone are asked for by nobody
	}
	low, high := s.low, s.high
	if low == nil && high == nil && len(s.multiples) == 0 {
		b.anyNumber(from, to, whole)
		return
	}
	var all *dfa
	and := func(expr string, keyword string) bool {
		d, err := regular(expr, plainText, false)
		if err == nil && all != nil {
			var ok bool
			if d, ok = intersect(all, d); !ok {
				err = fmt.Errorf("want simpler bounds")
			}
		}
		if err != nil {
			b.unsupported(s.facts[0], keyword, err.Error())
			return false
		}
		all = d
		return true
	}
	digits := tail
	step := new(big.Int)
	for _, m := range s.multiples {
		r, err := readNumber(m)
		if err != nil {
			b.fail(err)
			return
		}
		if r.IsInt() {
			whole = true
			if step.Sign() == 0 {
				step.Set(r.Num())
			} else { // the least common multiple
				g := new(big.Int).GCD(nil, nil, step, r.Num())
				step.Div(step.Mul(step, r.Num()), g)
			}
			continue
		}
		n, ok := decimals(r)
		if !ok {
			b.fail(&UnsupportedError{parent(m.path), "multipleOf", "want a whole number or 0.1, 0.01 and so on"})
			return
		}
		digits = min(digits, n)
	}
	base := fmt.Sprintf(`-?(0|[1-9][0-9]{0,%d})(\.[0-9]{1,%d})?`, mostDigits-1, digits)
	if whole {
		base = anyInteger
	}
	if !and(base, "type") {
		return
	}
	if low != nil {
		expr, ok := atLeastText(low, s.lowOpen)
		if !ok {
			b.unsupported(s.facts[0], "minimum", "want at most 18 digits before and 15 behind the point")
			return
		}
		if !and(signed(expr), "minimum") {
			return
		}
	}
	if high != nil {
		expr, ok := atLeastText(new(big.Rat).Neg(high), s.highOpen)
		if !ok {
			b.unsupported(s.facts[0], "maximum", "want at most 18 digits before and 15 behind the point")
			return
		}
		if !and(signed(mirror(expr)), "maximum") {
			return
		}
	}
	if step.Sign() > 0 && step.Cmp(big.NewInt(1)) != 0 {
		if step.Cmp(big.NewInt(1000)) > 0 {
			b.unsupported(s.facts[0], "multipleOf", "want at most 1000")
			return
		}
		d, ok := intersect(all, multiplesOf(int(step.Int64())))
		if !ok {
			b.unsupported(s.facts[0], "multipleOf", "want simpler bounds")
			return
		}
		all = d
	}
	b.dfa(from, to, all)
}

// decimals returns n for 10^-n.
func decimals(r *big.Rat) (int, bool) {
	if r.Num().Cmp(big.NewInt(1)) != 0 {
		return 0, false
	}
	for n, p := 1, big.NewInt(10); n <= tail; n++ {
		if r.Denom().Cmp(p) == 0 {
			return n, true
		}
		p.Mul(p, big.NewInt(10))
	}
	return 0, false
}

// multiplesOf reads integers by the remainder of what was read.
func multiplesOf(m int) *dfa {
	d := &dfa{}
	for i := range m + 2 { // the start, behind a sign, then the remainders
		row := noWay()
		if i == 0 {
			row['-'] = 1
		}
		rest := max(0, i-2)
		for c := range 10 {
			row['0'+c] = int32(2 + (rest*10+c)%m)
		}
		d.next = append(d.next, row)
		d.final = append(d.final, i == 2)
	}
	return d
}

// sides of a range's expression: what a magnitude reads as with and without a sign, put together by mirror.
const (
	minus = "<" // stands for the sign of negative numbers
	plus  = ">" // and for the missing one of the others
)

// atLeastText is an expression for decimals of at least r, above it if open. Signs are written as minus and plus until signed.
func atLeastText(r *big.Rat, open bool) (string, bool) {
	if r.Sign() >= 0 {
		up, ok := magnitudesFrom(r, open)
		return plus + "(" + up + ")", ok
	}
	down, ok := magnitudesTo(new(big.Rat).Neg(r), open)
	return plus + "(" + anyMagnitude() + ")|" + minus + "(" + down + ")", ok
}

func anyMagnitude() string {
	return fmt.Sprintf(`(0|[1-9][0-9]{0,%d})(\.[0-9]{1,%d})?`, mostDigits-1, tail)
}

// mirror turns an expression for numbers into that for their negatives.
func mirror(expr string) string {
	return strings.NewReplacer(minus, plus, plus, minus).Replace(expr)
}

// signed puts the signs in. Zero has none, and with a sign it is the same number.
func signed(expr string) string { return strings.NewReplacer(minus, "-", plus, "").Replace(expr) }

// split returns the digits before and behind the point.
func split(r *big.Rat) (whole, fraction string, ok bool) {
	s := r.FloatString(tail)
	back, parsed := new(big.Rat).SetString(s)
	whole, fraction, _ = strings.Cut(s, ".")
	return whole, strings.TrimRight(fraction, "0"), parsed && back.Cmp(r) == 0 && len(whole) <= mostDigits
}

// magnitudesFrom is an expression for the decimals from r, which is not negative, up.
func magnitudesFrom(r *big.Rat, open bool) (string, bool) {
	whole, fraction, ok := split(r)
	if !ok {
		return "", false
	}
	end := fmt.Sprintf(`(\.[0-9]{1,%d})?`, tail)
	var ways []string
	if above := digitsBetween(plusOne(whole), strings.Repeat("9", mostDigits)); above != "" {
		ways = append(ways, "("+above+")"+end)
	}
	free := fmt.Sprintf("[0-9]{0,%d}", tail)
	switch {
	case fraction == "" && !open:
		ways = append(ways, whole+end)
	case fraction == "":
		ways = append(ways, whole+`\.`+free+"[1-9]")
	default:
		var f []string
		for i := range fraction {
			if fraction[i] < '9' {
				f = append(f, fraction[:i]+fmt.Sprintf("[%c-9]", fraction[i]+1)+free)
			}
		}
		if open {
			f = append(f, fraction+free+"[1-9]")
		} else {
			f = append(f, fraction+free)
		}
		ways = append(ways, whole+`\.(`+strings.Join(f, "|")+")")
	}
	return strings.Join(ways, "|"), true
}

// magnitudesTo is an expression for the decimals from 0 to r.
func magnitudesTo(r *big.Rat, open bool) (string, bool) {
	whole, fraction, ok := split(r)
	if !ok {
		return "", false
	}
	end := fmt.Sprintf(`(\.[0-9]{1,%d})?`, tail)
	var ways []string
	if whole != "0" {
		n, _ := new(big.Int).SetString(whole, 10)
		ways = append(ways, "("+digitsBetween("0", n.Sub(n, big.NewInt(1)).String())+")"+end)
	}
	free := fmt.Sprintf("[0-9]{0,%d}", tail)
	zeros := fmt.Sprintf("0{0,%d}", tail)
	switch {
	case fraction == "" && !open:
		ways = append(ways, whole+fmt.Sprintf(`(\.0{1,%d})?`, tail))
	case fraction == "":
		if len(ways) == 0 {
			return "[^\x00-\U0010ffff]", true // nothing is below 0 here
		}
	default:
		var f []string
		for i := range fraction {
			if i > 0 {
				f = append(f, fraction[:i])
			}
			if fraction[i] > '0' {
				f = append(f, fraction[:i]+fmt.Sprintf("[0-%c]", fraction[i]-1)+free)
			}
		}
		if !open {
			f = append(f, fraction+zeros)
		}
		ways = append(ways, whole)
		if len(f) > 0 {
			ways = append(ways, whole+`\.(`+strings.Join(f, "|")+")")
		}
	}
	return strings.Join(ways, "|"), true
}

func plusOne(digits string) string {
	n, _ := new(big.Int).SetString(digits, 10)
	return n.Add(n, big.NewInt(1)).String()
}

// digitsBetween is an expression for the integers from lo to hi; empty where there are none.
func digitsBetween(lo, hi string) string {
	if len(lo) > len(hi) || len(lo) == len(hi) && lo > hi {
		return ""
	}
	var ways []string
	for n := len(lo); n <= len(hi); n++ {
		a, z := "1"+strings.Repeat("0", n-1), strings.Repeat("9", n)
		if n == 1 {
			a = "0"
		}
		if n == len(lo) {
			a = lo
		}
		if n == len(hi) {
			z = hi
		}
		ways = append(ways, sameLength(a, z))
	}
	return strings.Join(ways, "|")
}

// sameLength is an expression for the digits from lo to hi.
func sameLength(lo, hi string) string {
	n := len(lo)
	if lo == hi {
		return lo
	}
	if strings.Trim(lo, "0") == "" && strings.Trim(hi, "9") == "" {
		return fmt.Sprintf("[0-9]{%d}", n)
	}
	if lo[0] == hi[0] {
		return string(lo[0]) + "(" + sameLength(lo[1:], hi[1:]) + ")"
	}
	if n == 1 {
		return fmt.Sprintf("[%c-%c]", lo[0], hi[0])
	}
	var ways []string
	first, last := lo[0], hi[0]
	if strings.Trim(lo[1:], "0") != "" {
		ways = append(ways, string(first)+"("+sameLength(lo[1:], strings.Repeat("9", n-1))+")")
		first++
	}
	top := strings.Trim(hi[1:], "9") != ""
	if top {
		last--
	}
	if first <= last {
		ways = append(ways, fmt.Sprintf("[%c-%c][0-9]{%d}", first, last, n-1))
	}
	if top {
		ways = append(ways, string(hi[0])+"("+sameLength(strings.Repeat("0", n-1), hi[1:])+")")
	}
	return strings.Join(ways, "|")
}
