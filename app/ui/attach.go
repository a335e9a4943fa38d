package ui

import (
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/storage"

	"pond/app/chats"
)

// openURI reads what was dropped on the window.
func openURI(uri fyne.URI) (io.ReadCloser, error) {
	if uri.Scheme() == "file" {
		return os.Open(uri.Path())
	}
	return storage.Reader(uri)
}

// attachFrom reads a file, elsewhere, and puts it beside the next question.
func (c *chatWindow) attachFrom(name string, r io.ReadCloser) {
	var f chats.File
	c.u.elsewhere(func() (err error) {
		defer r.Close()
		f, err = chats.ReadFile(name, r)
		return err
	}, func(err error) {
		switch {
		case err != nil:
			c.fail(err)
		case len(c.files) == chats.MaxFiles:
			c.fail(&chats.AttachError{Name: name, Reason: "a question takes no more files."})
		default:
			c.files = append(c.files, f)
			c.drawChips()
		}
	})
}

// pasteBytes is the longest text that is pasted into the box; a longer one becomes a file beside the question, because a box with very much
// text is slow.
const pasteBytes = 16 << 10

// pasted takes a long text as a file.
func (c *chatWindow) pasted(text string) bool {
	if len(text) <= pasteBytes {
		return false
	}
	c.attachFrom("pasted.txt", io.NopCloser(strings.NewReader(text)))
	return true
}

// sentences is an error that may be several, one a line.
func sentences(err error) string {
	var out []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		out = append(out, sentence(line))
	}
	return strings.Join(out, "\n")
}

// sentenceCase begins with a capital letter.
func sentenceCase(text string) string {
	r, n := utf8.DecodeRuneInString(text)
	if n == 0 {
		return ""
	}
	return string(unicode.ToUpper(r)) + text[n:]
}

// sentence begins with a capital letter and ends with a stop.
func sentence(text string) string {
	text = sentenceCase(text)
	if last, n := utf8.DecodeLastRuneInString(text); n > 0 && (unicode.IsLetter(last) || unicode.IsDigit(last) || last == ')' || last == '"') {
		text += "."
	}
	return text
}
