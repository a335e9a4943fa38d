package ui

import (
	"fmt"
	"html"
	"net/url"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// What a model writes is shown by these rules:
//
//   - No word is left out: HTML stands as it was written, and an image is its description and a link.
//   - Nothing is fetched; a link opens only when it is tapped, and only http, https and mailto are links.
//   - No text breaks the window: what cannot be parsed is shown as it is.

// leafKind is what a leaf is.
type leafKind int

const (
	paragraph leafKind = iota
	heading
	ruler
	tableLeaf
	codeLeaf
)

// leaf is a line or paragraph of a block: Markdown's nesting as an indentation.
type leaf struct {
	kind   leafKind
	level  int    // of a heading
	indent int    // lists around it
	quote  int    // quotes around it
	marker string // in front of the first leaf of a list item: "•", "3."
	spans  []widget.RichTextSegment
	table  *grid
	code   string
}

// grid is a table.
type grid struct {
	align []fyne.TextAlign
	rows  [][][]widget.RichTextSegment // the first one is the header
}

// The largest table that is drawn as one; a larger one is shown as its text.
const (
	gridColumns = 16
	gridCells   = 400
)

// markdownParser parses as GitHub does, without making headings' anchors.
func markdownParser() parser.Parser {
	return goldmark.New(goldmark.WithExtensions(extension.Strikethrough, extension.TaskList, extension.Table)).Parser()
}

// parseMarkdown turns a block into its leaves. It takes any text.
func parseMarkdown(source string) (out []leaf) {
	defer func() {
		if recover() != nil { // a parser that others wrote, fed with what a model wrote
			out = plain(source)
		}
	}()
	source = strings.ToValidUTF8(source, "\uFFFD")
	m := reader{source: []byte(source)}
	m.blocks(markdownParser().Parse(text.NewReader(m.source)), leaf{})
	if len(m.out) == 0 && strings.TrimSpace(source) != "" {
		return plain(source) // a link's definition, for one, has no look of its own
	}
	return m.out
}

func plain(source string) []leaf {
	return []leaf{{spans: []widget.RichTextSegment{span(source, fyne.TextStyle{}, "")}}}
}

// reader walks the parser's tree.
type reader struct {
	source []byte
	out    []leaf
}

// blocks adds the leaves below a node; at tells where they stand.
func (m *reader) blocks(n ast.Node, at leaf) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		m.block(c, at)
		at.marker = "" // only the first leaf of an item bears it
	}
}

func (m *reader) block(n ast.Node, at leaf) {
	switch n := n.(type) {
	case *ast.Heading:
		at.kind, at.level = heading, n.Level
		m.leaf(at, m.inline(n, fyne.TextStyle{Bold: true}, headingSize(n.Level)))
	case *ast.ThematicBreak:
		at.kind = ruler
		m.out = append(m.out, at)
	case *ast.Blockquote:
		at.quote++
		m.blocks(n, at)
	case *ast.List:
		number := n.Start
		at.indent++
		for item := n.FirstChild(); item != nil; item = item.NextSibling() {
			at.marker = "•"
			if n.IsOrdered() {
				at.marker = fmt.Sprintf("%d.", number)
				number++
			}
			before := len(m.out)
			m.blocks(item, at)
			if len(m.out) == before {
				m.leaf(at, nil) // an empty item
			}
		}
	case *ast.FencedCodeBlock, *ast.CodeBlock:
		at.kind, at.code = codeLeaf, strings.TrimRight(m.lines(n), "\n")
		m.out = append(m.out, at)
	case *ast.HTMLBlock:
		raw := m.lines(n)
		if n.HasClosure() {
			raw += string(n.ClosureLine.Value(m.source))
		}
		m.leaf(at, []widget.RichTextSegment{span(strings.TrimRight(raw, "\n"), fyne.TextStyle{}, "")})
	case *east.Table:
		m.table(n, at)
	case *ast.Paragraph, *ast.TextBlock:
		m.leaf(at, m.inline(n, fyne.TextStyle{}, ""))
	default:
		m.blocks(n, at)
	}
}

func (m *reader) leaf(at leaf, spans []widget.RichTextSegment) {
	if len(spans) == 0 {
		spans = []widget.RichTextSegment{span(" ", fyne.TextStyle{}, "")}
	}
	at.spans = spans
	m.out = append(m.out, at)
}

func (m *reader) lines(n ast.Node) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		segment := n.Lines().At(i)
		b.Write(segment.Value(m.source))
	}
	return b.String()
}

func (m *reader) table(n *east.Table, at leaf) {
	g := &grid{}
	for _, a := range n.Alignments {
		switch a {
		case east.AlignCenter:
			g.align = append(g.align, fyne.TextAlignCenter)
		case east.AlignRight:
			g.align = append(g.align, fyne.TextAlignTrailing)
		default:
			g.align = append(g.align, fyne.TextAlignLeading)
		}
	}
	cells := 0
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		style := fyne.TextStyle{}
		if _, ok := row.(*east.TableHeader); ok {
			style.Bold = true
		}
		var out [][]widget.RichTextSegment
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			spans := m.inline(cell, style, "")
			for _, s := range spans {
				if t, ok := s.(*widget.TextSegment); ok && len(out) < len(g.align) {
					t.Style.Alignment = g.align[len(out)]
				}
			}
			out = append(out, spans)
			cells++
		}
		g.rows = append(g.rows, out)
	}
	if len(g.align) > gridColumns || cells > gridCells {
		var raw []string
		for line := range strings.SplitSeq(string(m.source), "\n") {
			if strings.Contains(line, "|") {
				raw = append(raw, line)
			}
		}
		at.kind, at.code = codeLeaf, strings.Join(raw, "\n")
	} else {
		at.kind, at.table = tableLeaf, g
	}
	m.out = append(m.out, at)
}

// inline turns the text below a node into spans; neighbours that look alike become one.
func (m *reader) inline(n ast.Node, style fyne.TextStyle, size fyne.ThemeSizeName) []widget.RichTextSegment {
	var out []widget.RichTextSegment
	m.spans(n, style, size, &out)
	return out
}

func (m *reader) spans(n ast.Node, style fyne.TextStyle, size fyne.ThemeSizeName, out *[]widget.RichTextSegment) {
	add := func(text string) {
		if text == "" {
			return
		}
		if k := len(*out); k > 0 {
			if last, ok := (*out)[k-1].(*widget.TextSegment); ok && last.Style == span("", style, size).Style {
				last.Text += text
				return
			}
		}
		*out = append(*out, span(text, style, size))
	}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			add(unescape(c.Value(m.source)))
			if c.HardLineBreak() {
				add("\n")
			} else if c.SoftLineBreak() {
				add(" ")
			}
		case *ast.String:
			add(string(c.Value))
		case *ast.CodeSpan:
			s := span(strings.ReplaceAll(m.raw(c), "\n", " "), fyne.TextStyle{}, size)
			s.Style = widget.RichTextStyleCodeInline
			if size != "" {
				s.Style.SizeName = size
			}
			*out = append(*out, s)
		case *ast.Emphasis:
			inner := style
			if c.Level > 1 {
				inner.Bold = true
			} else {
				inner.Italic = true
			}
			m.spans(c, inner, size, out)
		case *east.Strikethrough:
			inner := style
			inner.Strikethrough = true
			m.spans(c, inner, size, out)
		case *east.TaskCheckBox:
			if c.IsChecked {
				add("[x] ")
			} else {
				add("[ ] ")
			}
		case *ast.Link:
			m.link(m.plainText(c), string(c.Destination), style, size, out, add)
		case *ast.Image:
			m.link(m.plainText(c), string(c.Destination), style, size, out, add)
		case *ast.AutoLink:
			m.link(string(c.Label(m.source)), string(c.URL(m.source)), style, size, out, add)
		case *ast.RawHTML:
			for i := range c.Segments.Len() {
				segment := c.Segments.At(i)
				add(string(segment.Value(m.source)))
			}
		default:
			m.spans(c, style, size, out)
		}
	}
}

// link adds a link, or its text and address where the address is none that may be opened.
func (m *reader) link(label, address string, style fyne.TextStyle, size fyne.ThemeSizeName, out *[]widget.RichTextSegment, add func(string)) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" {
		add(strings.TrimSpace(label + " (" + address + ")"))
		return
	}
	if label == "" {
		label = address
	}
	*out = append(*out, &widget.HyperlinkSegment{Text: label, URL: u, TextStyle: style, SizeName: size})
}

// plainText is the text below a node without its looks.
func (m *reader) plainText(n ast.Node) string {
	var b strings.Builder
	for _, s := range m.inline(n, fyne.TextStyle{}, "") {
		b.WriteString(s.Textual())
	}
	return b.String()
}

// raw is the text below a node as it was written.
func (m *reader) raw(n ast.Node) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Value(m.source))
		}
	}
	return b.String()
}

// unescape is text as it is read: without the backslashes in front of punctuation, and with the characters that entities name.
func unescape(raw []byte) string {
	var b strings.Builder
	for i := 0; i < len(raw); {
		if raw[i] == '\\' && i+1 < len(raw) && util.IsPunct(raw[i+1]) {
			b.WriteByte(raw[i+1])
			i += 2
			continue
		}
		next := i + 1
		for next < len(raw) && raw[next] != '\\' {
			next++
		}
		b.WriteString(html.UnescapeString(string(raw[i:next])))
		i = next
	}
	return b.String()
}

func span(text string, style fyne.TextStyle, size fyne.ThemeSizeName) *widget.TextSegment {
	s := widget.RichTextStyleInline
	s.TextStyle = style
	if size != "" {
		s.SizeName = size
	}
	return &widget.TextSegment{Style: s, Text: text}
}

func headingSize(level int) fyne.ThemeSizeName {
	switch level {
	case 1:
		return theme.SizeNameHeadingText
	case 2:
		return theme.SizeNameSubHeadingText
	}
	return ""
}
