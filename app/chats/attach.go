package chats

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode/utf8"
)

// MaxFileBytes is the largest file that can be attached: about 64,000 tokens of English, which a long context just takes.
const MaxFileBytes = 256 << 10

// MaxFiles is how many files one question may carry.
const MaxFiles = 8

// AttachError says why a file cannot be attached, as a sentence for the user.
type AttachError struct{ Name, Reason string }

func (e *AttachError) Error() string { return e.Name + " cannot be attached: " + e.Reason }

// ReadFile takes in a text file. What is not text, or too long, is an *AttachError.
func ReadFile(name string, from io.Reader) (File, error) {
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	data, err := io.ReadAll(io.LimitReader(from, MaxFileBytes+1))
	if err != nil {
		return File{}, &AttachError{name, err.Error()}
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	switch {
	case len(data) > MaxFileBytes:
		return File{}, &AttachError{name, fmt.Sprintf("it is larger than %d KB.", MaxFileBytes>>10)}
	case len(data) == 0:
		return File{}, &AttachError{name, "it is empty."}
	case bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data):
		return File{}, &AttachError{name, "it is not a text file in UTF-8."}
	}
	return File{Name: name, Text: string(data)}, nil
}

// prompt is a question as the model reads it: its files first, each fenced by more backticks than it holds itself.
func prompt(m Message) string {
	if len(m.Files) == 0 {
		return m.Text
	}
	var b strings.Builder
	for _, f := range m.Files {
		fence := "```"
		for strings.Contains(f.Text, fence) {
			fence += "`"
		}
		fmt.Fprintf(&b, "%s\n%s\n%s", f.Name, fence, f.Text)
		if !strings.HasSuffix(f.Text, "\n") {
			b.WriteByte('\n')
		}
		b.WriteString(fence + "\n\n")
	}
	b.WriteString(m.Text)
	return strings.TrimRight(b.String(), "\n")
}
