package app

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"gopkg.in/natefinch/lumberjack.v2"
)

// LogFile is where the app's log is kept: a file that begins anew when it is full, with the last ones beside it. What is said in chats never
// comes there; Logger's users see to that.
type LogFile struct{ file *lumberjack.Logger }

// Sizes of the log: enough for weeks, and no burden.
const (
	logMegabytes = 4
	logKept      = 3
	logDays      = 30
)

// OpenLog opens the log in a folder; the file is made by its first line.
func OpenLog(dir string) *LogFile {
	return &LogFile{&lumberjack.Logger{Filename: filepath.Join(dir, "pond.log"), MaxSize: logMegabytes, MaxBackups: logKept, MaxAge: logDays}}
}

// Path is the file that is being written.
func (l *LogFile) Path() string {
	if l == nil {
		return ""
	}
	return l.file.Filename
}

// Logger writes to the file.
func (l *LogFile) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(l.file, nil)) }

// Close closes the file. A nil log is closed already.
func (l *LogFile) Close() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}

// tailBytes bounds what a viewer reads.
const tailBytes = 1 << 20

// Tail is the last lines of the log, the newest last; at most n, and of the present file alone.
func (l *LogFile) Tail(n int) ([]string, error) {
	if l == nil {
		return nil, nil
	}
	f, err := os.Open(l.file.Filename)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, info.Size()-tailBytes)
	text, err := io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
	if err != nil {
		return nil, err
	}
	if from > 0 { // the first line is a part of one
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	var lines []string
	for line := range bytes.Lines(text) {
		lines = append(lines, string(bytes.TrimRight(line, "\n")))
	}
	return lines[max(0, len(lines)-n):], nil
}

// LogTail is the last n lines of the app's log, and the file that they stand in.
func (p *Pond) LogTail(n int) (lines []string, file string, err error) {
	if p.home == nil {
		return nil, "", nil
	}
	lines, err = p.home.Log.Tail(n)
	return lines, p.home.Log.Path(), err
}
