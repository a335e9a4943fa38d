package ui

import (
	"strings"
	"unicode/utf8"
)

// A text that grows is drawn in blocks, so that only its last one is parsed and laid out again. The rules:
//
//   - A block that is closed never changes, whatever follows.
//   - Blocks hold the whole text in its order; what is between them is blank lines and fences.
//   - No block is long: a paragraph, list, table or code of any size is cut into pieces that can be laid out fast.

// The longest blocks: what is laid out in about a millisecond.
const (
	proseBytes = 3000
	codeBytes  = 6000
	codeLines  = 100
)

// block is a piece of a message.
type block struct {
	code      bool
	language  string // of code, as the fence names it
	continues bool   // code: goes on with the block before
	text      string // Markdown; of code, the lines without the fence
}

// splitter cuts a growing text. The zero value begins one.
type splitter struct {
	at       int    // where the open block begins
	fence    string // of the code that is open; empty: none is
	indent   int    // of its first fence
	language string
	within   bool   // at least one piece of the open code is closed
	midLine  bool   // the open code's piece begins in the middle of a line
	header   string // the first two lines of a table that was cut
}

// update takes the whole text, of which all that was there before is a prefix, and gives the blocks that are closed now and the one that is
// still open. ended: nothing will follow.
func (s *splitter) update(text string, ended bool) (closed []block, open *block) {
	for s.at < len(text) {
		var b block
		var n int
		var whole bool
		if s.fence != "" {
			b, n, whole = s.cutCode(text[s.at:], ended)
		} else {
			b, n, whole = s.cutProse(text[s.at:], ended)
		}
		if !whole {
			return closed, &b
		}
		s.at += n
		if b.text != "" || b.code && !b.continues {
			closed = append(closed, b)
		}
	}
	return closed, nil
}

// cutProse finds the first block of a text outside of code. whole: it is closed, and n bytes long.
func (s *splitter) cutProse(text string, ended bool) (b block, n int, whole bool) {
	header := s.header
	table, list := header != "", false
	start, rows := -1, 0 // where the first line that is not blank begins
	for at := 0; at < len(text); {
		line, complete := lineAt(text, at)
		next := at + len(line)
		trimmed := strings.TrimSpace(line)
		if start < 0 && trimmed != "" {
			start = at
			list = isItem(line)
			if header != "" && !strings.Contains(line, "|") {
				header, table = "", false
			}
		}
		fence, language := openingFence(line)
		switch {
		case fence != "" && start == at:
			if !complete && !ended {
				return block{code: true}, 0, false
			}
			s.fence, s.language, s.indent = fence, language, len(line)-len(strings.TrimLeft(line, " \t"))
			s.within, s.midLine, s.header = false, false, ""
			return block{}, next, true // the code comes next
		case fence != "" && !complete && !ended: // a backtick to come may make it ordinary text
			return block{text: header + text[start:at]}, 0, false
		case fence != "":
			return s.prose(text, header, start, at)
		case trimmed == "" && complete && start >= 0 && (table || !list):
			return s.prose(text, header, start, next)
		case trimmed == "" && complete && start >= 0: // a list goes on with what is indented
			if after, known := nextLine(text, next); known && !strings.HasPrefix(after, " ") && !strings.HasPrefix(after, "\t") {
				return s.prose(text, header, start, next)
			} else if !known && !ended {
				return block{text: header + text[start:]}, 0, false
			}
		}
		if trimmed != "" {
			rows++
			if rows == 2 && header == "" && isDelimiterRow(line) && strings.Contains(text[start:at], "|") {
				table = true
			}
		}
		if start >= 0 && next-start > proseBytes {
			return s.shorten(text, header, start, at, next, table)
		}
		at = next
	}
	if start < 0 {
		if ended {
			return block{}, len(text), true
		}
		return block{}, 0, false
	}
	if ended {
		return s.prose(text, header, start, len(text))
	}
	return block{text: header + text[start:]}, 0, false
}

// prose closes a block of text[start:end].
func (s *splitter) prose(text, header string, start, end int) (block, int, bool) {
	s.header = ""
	return block{text: header + strings.TrimRight(text[start:end], "\n")}, end, true
}

// shorten closes a block that became too long, at the last line that begins before the limit if there is one, else between words, else between
// characters. A table's header is repeated on its next piece.
func (s *splitter) shorten(text, header string, start, line, next int, table bool) (block, int, bool) {
	end := line
	if line == start {
		table = false
		end = start + proseBytes
		if space := strings.LastIndexByte(text[start:end], ' '); space > proseBytes/2 {
			end = start + space + 1
		}
		for end < next && !utf8.RuneStart(text[end]) {
			end++
		}
	}
	b, n, _ := s.prose(text, header, start, end)
	if table {
		s.header = header
		if header == "" {
			first, _ := lineAt(text, start)
			second, _ := lineAt(text, start+len(first))
			s.header = first + second
		}
		if len(s.header) > proseBytes/2 {
			s.header = ""
		}
	}
	return b, n, true
}

// cutCode finds the next piece of the code that is open.
func (s *splitter) cutCode(text string, ended bool) (b block, n int, whole bool) {
	b = block{code: true, language: s.language, continues: s.within}
	var body strings.Builder
	lines := 0
	midLine := s.midLine
	close := func(end int, over bool) (block, int, bool) {
		b.text = body.String()
		if over {
			b.text = strings.TrimSuffix(b.text, "\n")
			s.fence, s.within, s.midLine = "", false, false
		} else {
			s.within = true
		}
		return b, end, true
	}
	for at := 0; at < len(text); {
		line, complete := lineAt(text, at)
		if !midLine {
			if closesFence(line, s.fence) {
				if !complete && !ended {
					break // more could follow on the line
				}
				return close(at+len(line), true)
			}
			if !complete && !ended && onlyMarks(line, s.fence[0]) {
				break // half a fence is not shown
			}
		}
		if len(line) > codeBytes {
			cut := codeBytes
			for !utf8.RuneStart(line[cut]) {
				cut++
			}
			if body.Len() > 0 {
				s.midLine = midLine
				return close(at, false)
			}
			body.WriteString(unindent(line[:cut], s.indent, midLine))
			s.midLine = true
			return close(at+cut, false)
		}
		if complete && (body.Len()+len(line) > codeBytes || lines >= codeLines) && body.Len() > 0 {
			s.midLine = midLine
			return close(at, false)
		}
		body.WriteString(unindent(line, s.indent, midLine))
		lines++
		midLine = false
		at += len(line)
	}
	if ended {
		return close(len(text), true)
	}
	b.text = strings.TrimSuffix(body.String(), "\n")
	return b, 0, false
}

// lineAt is the line that begins at a place, its newline included, and whether it has one.
func lineAt(text string, at int) (line string, complete bool) {
	if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
		return text[at : at+i+1], true
	}
	return text[at:], false
}

// nextLine is the first line from a place that is not blank; unknown while it may still be coming.
func nextLine(text string, at int) (line string, known bool) {
	for at < len(text) {
		line, complete := lineAt(text, at)
		if strings.TrimSpace(line) != "" {
			return line, true
		}
		if !complete {
			return "", false
		}
		at += len(line)
	}
	return "", false
}

// openingFence tells whether a line opens code: three or more backticks or tildes, behind any indentation, because models indent code within
// lists as they like.
func openingFence(line string) (fence, language string) {
	text := strings.TrimSpace(line)
	for _, mark := range []byte{'`', '~'} {
		n := 0
		for n < len(text) && text[n] == mark {
			n++
		}
		if n < 3 {
			continue
		}
		rest := strings.TrimSpace(text[n:])
		if mark == '`' && strings.Contains(rest, "`") {
			return "", ""
		}
		language, _, _ = strings.Cut(rest, " ")
		return text[:n], language
	}
	return "", ""
}

func closesFence(line, fence string) bool {
	text := strings.TrimSpace(line)
	return len(text) >= len(fence) && onlyMarks(text, fence[0])
}

func onlyMarks(line string, mark byte) bool {
	text := strings.TrimSpace(line)
	return text != "" && strings.Trim(text, string(mark)) == ""
}

// unindent removes up to n blanks in front of a line.
func unindent(line string, n int, midLine bool) string {
	if midLine {
		return line
	}
	for ; n > 0 && len(line) > 0 && (line[0] == ' ' || line[0] == '\t'); n-- {
		line = line[1:]
	}
	return line
}

// isItem tells whether a line begins a list item.
func isItem(line string) bool {
	text := strings.TrimLeft(line, " ")
	if len(text) > 1 && strings.IndexByte("-*+", text[0]) >= 0 && (text[1] == ' ' || text[1] == '\t') {
		return true
	}
	n := 0
	for n < len(text) && n < 9 && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	return n > 0 && n+1 < len(text) && (text[n] == '.' || text[n] == ')') && text[n+1] == ' '
}

// isDelimiterRow tells whether a line is the second of a table.
func isDelimiterRow(line string) bool {
	text := strings.TrimSpace(line)
	return strings.Contains(text, "-") && strings.Contains(text, "|") && strings.Trim(text, "|-: \t") == ""
}
