package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// keyboard reads questions from a terminal, with a line that can be edited and a history.
//
//   - From open to close the terminal neither echoes nor edits nor turns keys into signals; the line editor does at the prompt. What is
//     typed while an answer is written is kept for the next prompt and not shown before.
//   - Ctrl-C is told on stop while an answer is written, and clears the line at the prompt; on an empty line the second one leaves.
//   - The terminal gets its mode back on close, when ctx is done, and before Ctrl-Z stops the program.
type keyboard struct {
	file  *os.File
	fd    int // of file: asking for it again would meet the reading of it
	notes io.Writer
	saved unix.Termios
	stop  chan struct{} // Ctrl-C during an answer; one is kept

	editor *term.Terminal
	done   chan struct{} // closed by close

	mu        sync.Mutex // protects all below
	arrived   *sync.Cond
	queue     []byte // for the editor
	err       error  // of reading the terminal
	prompting bool
	warned    bool // a Ctrl-C came to the prompt, and nothing after it
	left      bool // and then another
	restored  bool
}

// openKeyboard sets the terminal up and begins to read it. The reading of a terminal cannot be cancelled: it is left behind by close.
func openKeyboard(ctx context.Context, file *os.File, notes io.Writer) (*keyboard, error) {
	fd := int(file.Fd())
	saved, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	k := &keyboard{file: file, fd: fd, notes: notes, saved: *saved, stop: make(chan struct{}, 1), done: make(chan struct{})}
	k.arrived = sync.NewCond(&k.mu)
	k.editor = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{k, notes}, prompt)
	k.editor.History = &history{}
	k.editor.AutoCompleteCallback = k.pressed
	k.mu.Lock()
	err = k.take()
	k.mu.Unlock()
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, k.restore)
	go k.pump()
	go k.follow()
	return k, nil
}

// take puts the terminal into the mode of the session. Output processing stays on, so that what others write looks as always. The caller
// holds mu.
func (k *keyboard) take() error {
	mode := k.saved
	mode.Iflag &^= unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL
	mode.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	mode.Cc[unix.VMIN], mode.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(k.fd, setTermios, &mode); err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	k.restored = false
	io.WriteString(k.notes, "\x1b[?2004h") // bracketed paste
	return nil
}

// restore gives the terminal its mode back.
func (k *keyboard) restore() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.restored {
		return
	}
	k.restored = true
	io.WriteString(k.notes, "\x1b[?2004l")
	unix.IoctlSetTermios(k.fd, setTermios, &k.saved) // an error leaves nothing to try
}

func (k *keyboard) close() {
	k.restore()
	close(k.done)
	k.mu.Lock()
	k.err = io.EOF
	k.arrived.Broadcast()
	k.mu.Unlock()
}

// pump reads the terminal all the time, because Ctrl-C must be seen while an answer is written.
func (k *keyboard) pump() {
	var decode keys
	buf := make([]byte, 4096)
	for {
		n, err := k.file.Read(buf)
		out := decode.push(buf[:n])
		k.mu.Lock()
		for _, c := range out {
			switch {
			case c == ctrlZ:
				k.suspend()
			case c == interruptKey && !k.prompting:
				k.queue = nil // what was typed before it goes with it, as a terminal does
				select {
				case k.stop <- struct{}{}:
				default:
				}
			default:
				k.queue = append(k.queue, c)
			}
		}
		if err != nil && k.err == nil {
			k.err = err
		}
		k.arrived.Broadcast()
		ended := k.err != nil
		k.mu.Unlock()
		if ended {
			return
		}
	}
}

// suspend stops the program as Ctrl-Z does, and takes the terminal again when it goes on. The caller holds mu.
func (k *keyboard) suspend() {
	if k.restored {
		return
	}
	io.WriteString(k.notes, "\x1b[?2004l")
	unix.IoctlSetTermios(k.fd, setTermios, &k.saved)
	if err := syscall.Kill(0, syscall.SIGTSTP); err != nil { // the process group, as the terminal does it
		fmt.Fprintln(k.notes, "pond: cannot stop:", err)
	}
	// Every thread may be the one that is stopped. That has happened when the pause is over, or else the program could not be stopped.
	time.Sleep(suspendPause)
	if err := k.take(); err != nil {
		k.err = err
	}
}

const suspendPause = 100 * time.Millisecond

// resume takes the terminal again and shows the prompt's line, which the shell has written over.
func (k *keyboard) resume() {
	k.mu.Lock()
	if !k.restored && k.take() != nil {
		k.restored = true // the terminal is gone, and reading it says so
	}
	again := k.prompting && !k.restored
	k.mu.Unlock()
	if again {
		io.WriteString(k.editor, "")
	}
}

// follow keeps the editor's width that of the terminal, and takes the terminal again when the program goes on after it was stopped.
func (k *keyboard) follow() {
	resized, continued := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	for {
		k.measure()
		select {
		case <-resized:
		case <-continued:
			k.resume()
		case <-k.done:
			return
		}
	}
}

func (k *keyboard) measure() {
	if columns, rows, err := term.GetSize(k.fd); err == nil && columns > 0 {
		k.editor.SetSize(columns, rows)
	}
}

// Read gives the editor its keys.
func (k *keyboard) Read(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for {
		switch {
		case k.left:
			return 0, errQuit
		case len(k.queue) > 0:
			n := copy(p, k.queue)
			k.queue = k.queue[n:]
			if strings.Trim(string(p[:n]), string(rune(interruptKey))) != "" {
				k.warned = false
			}
			return n, nil
		case k.err != nil:
			return 0, k.err
		}
		k.arrived.Wait()
	}
}

// pressed is told by the editor of keys that it does not know.
func (k *keyboard) pressed(line string, _ int, key rune) (string, int, bool) {
	if key != interruptKey {
		return "", 0, false
	}
	k.mu.Lock()
	first := !k.warned
	k.warned = true
	k.left = !first && line == ""
	k.mu.Unlock()
	if line == "" && first {
		io.WriteString(k.editor, leaveHint+"\n")
	}
	return "", 0, true
}

// next shows the prompt and returns the next message, its lines apart. io.EOF is Ctrl-D, errQuit the second Ctrl-C.
func (k *keyboard) next(ctx context.Context, interrupts <-chan os.Signal) (string, error) {
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	k.mu.Lock()
	k.prompting, k.warned = true, false
	select {
	case <-k.stop: // it came too late for the answer
	default:
	}
	k.mu.Unlock()
	k.measure()
	type message struct {
		text string
		err  error
	}
	got := make(chan message, 1)
	go func() {
		defer func() {
			if broken := recover(); broken != nil {
				k.restore()
				panic(broken)
			}
		}()
		text, err := k.editor.ReadLine()
		if errors.Is(err, term.ErrPasteIndicator) {
			err = nil
		}
		got <- message{strings.NewReplacer(string(newlineMark), "\n", string(tabMark), "\t").Replace(text), err}
	}()
	for {
		select {
		case m := <-got:
			k.mu.Lock()
			k.prompting = false
			k.mu.Unlock()
			if errors.Is(m.err, errQuit) {
				fmt.Fprintln(k.notes) // what comes next is not the prompt's line
			}
			return m.text, m.err
		case <-interrupts: // kill -INT is as good as the key
			k.mu.Lock()
			k.queue = append(k.queue, interruptKey)
			k.arrived.Broadcast()
			k.mu.Unlock()
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// history is what was typed, newest last, without empty lines and repetitions.
type history struct{ lines []string }

const historyLines = 200

func (h *history) Add(line string) {
	if strings.TrimSpace(line) == "" || len(h.lines) > 0 && h.lines[len(h.lines)-1] == line {
		return
	}
	h.lines = append(h.lines, line)
	h.lines = h.lines[max(0, len(h.lines)-historyLines):]
}

func (h *history) Len() int        { return len(h.lines) }
func (h *history) At(i int) string { return h.lines[len(h.lines)-1-i] }
