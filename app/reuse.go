package app

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"pond/inference/memgate"
)

// ReuseLine is what was not computed twice, in a few words.
func (s State) ReuseLine() string {
	r := s.Work.Reuse
	if r.ReusedTokens+r.ComputedTokens == 0 {
		return "no prompt was read yet"
	}
	text := fmt.Sprintf("%s of %s prompt tokens", thousands(r.ReusedTokens), thousands(r.ReusedTokens+r.ComputedTokens))
	if r.DiskTokens > 0 {
		text += fmt.Sprintf(", %s from the disk", thousands(r.DiskTokens))
	}
	if r.SavedToday >= time.Second {
		text += "; saved " + About(r.SavedToday) + " today"
	}
	return text
}

// KeptLine is what is kept of conversations, and where.
func (s State) KeptLine() string {
	var parts []string
	if w := s.Work; w.KeptBytes > 0 {
		text := memgate.Bytes(uint64(w.KeptBytes)) + " in memory"
		if w.Reuse.StoredTokens > 0 {
			text += fmt.Sprintf(" for %s tokens", thousands(int64(w.Reuse.StoredTokens)))
		}
		parts = append(parts, text)
	}
	if s.KeptBytes > 0 {
		parts = append(parts, memgate.Bytes(uint64(s.KeptBytes))+" on the disk")
	}
	if s.Work.Disk.Trouble != "" {
		parts = append(parts, "none goes to the disk: "+s.Work.Disk.Trouble)
	}
	if len(parts) == 0 {
		return "nothing yet"
	}
	return strings.Join(parts, ", ")
}

// Bounds of MissLine: misses that cost less than a moment are no news, and a piece of a prompt is a hint, not a page.
const (
	missTokens = 256
	missRunes  = 32
)

// MissLine says where the last prompt departed from what was kept, when it had to be read again for that; else it is empty.
func (s State) MissLine() string {
	m := s.Work.Reuse.Miss
	if m == nil || m.PromptTokens-m.ReusedTokens < missTokens {
		return ""
	}
	return fmt.Sprintf("Of the last prompt that differed, %s of %s tokens were reused: after %s it went on with \u201c%s\u201d, and not with \u201c%s\u201d.",
		thousands(int64(m.ReusedTokens)), thousands(int64(m.PromptTokens)), thousands(int64(m.CommonTokens)), piece(m.Text), piece(m.WasBefore))
}

// piece is the beginning of a text on one line.
func piece(text string) string {
	runes := []rune(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " "))
	if len(runes) > missRunes {
		return string(runes[:missRunes]) + "\u2026"
	}
	return string(runes)
}

// thousands writes a number as a person reads it: 812, 34.1K, 2.3M.
func thousands(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 999_500:
		return fmt.Sprintf("%.3gK", float64(n)/1e3)
	}
	return fmt.Sprintf("%.3gM", float64(n)/1e6)
}
