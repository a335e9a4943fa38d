package console

import (
	"os"

	"golang.org/x/sys/unix"
)

// hush stops the echo of a terminal that edits its own lines, so that what is typed ahead does not stand in the answer, and returns
// what brings it back. Keys stay signals. It does nothing where In is no terminal, or one that keyboard reads.
func (s *Session) hush() (restore func()) {
	none := func() {}
	if !s.Typed || s.Keyboard != nil || !s.echoing || !foreground(s.fd) {
		return none
	}
	saved, err := unix.IoctlGetTermios(s.fd, getTermios)
	if err != nil {
		return none
	}
	mode := *saved
	mode.Lflag &^= unix.ECHO | unix.ECHONL
	if unix.IoctlSetTermios(s.fd, setTermios, &mode) != nil {
		return none
	}
	return func() {
		if foreground(s.fd) {
			unix.IoctlSetTermios(s.fd, setTermios, saved) // an error leaves nothing to try
		}
	}
}

// foreground reports whether the terminal is this program's to set: one in the background would be stopped for it (SIGTTOU), as in
// pond chat --once "question" > file &.
func foreground(fd int) bool {
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp() // an error: not the controlling terminal, which stops nobody
}

// find looks up the descriptor of In, before anything reads it: asking later would meet the reading.
func (s *Session) find() {
	if f, ok := s.In.(*os.File); ok && s.Typed {
		s.fd, s.echoing = int(f.Fd()), true
	}
}
