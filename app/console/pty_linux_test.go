package console

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pond/inference/chat"
)

// screen is a pseudo-terminal: what a person types and sees.
type screen struct {
	t      *testing.T
	person *os.File // the end where a person sits
	tty    *os.File // the end of the program

	mu   sync.Mutex
	seen strings.Builder
}

func newScreen(t *testing.T) *screen {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal: %v", err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Skipf("no pseudo-terminal: %v", err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal: %v", err)
	}
	s := &screen{t: t, person: person, tty: tty}
	t.Cleanup(func() { tty.Close(); person.Close() })
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := person.Read(buf)
			s.mu.Lock()
			s.seen.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return s
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.String()
}

func (s *screen) typed(text string) {
	s.t.Helper()
	if _, err := s.person.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// shows waits until text has been seen so many times.
func (s *screen) shows(text string, times int) {
	s.t.Helper()
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		if strings.Count(s.text(), text) >= times {
			return
		}
	}
	s.t.Fatalf("got %q, want %q in it %d times", s.text(), text, times)
}

// mode is what matters of the terminal's mode.
func (s *screen) mode() [3]uint32 {
	s.t.Helper()
	m, err := unix.IoctlGetTermios(int(s.tty.Fd()), unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	return [3]uint32{m.Iflag, m.Oflag, m.Lflag}
}

// talk is a session on a screen. The answer to "slow" goes on until it is stopped; every other question is answered at once.
type talk struct {
	*screen
	asked chan string
	done  chan error
	stop  context.CancelFunc
}

func newTalk(t *testing.T) *talk {
	t.Helper()
	k := &talk{screen: newScreen(t), asked: make(chan string, 16), done: make(chan error, 1)}
	s := &Session{In: k.tty, Keyboard: k.tty, Out: k.tty, Notes: k.tty, Typed: true, Terminal: true, Drawing: true, Greeting: "tiny on host",
		Ask: func(ctx context.Context, c chat.Conversation, emit func([]chat.Event), _ func(int, int)) (Figures, error) {
			question := c.Messages[len(c.Messages)-1].Content.String()
			k.asked <- question
			switch question {
			case "panic":
				panic("a broken invariant")
			case "slow":
				emit([]chat.Event{{Kind: chat.Text, Text: "once upon "}})
				<-ctx.Done()
				return Figures{}, ctx.Err()
			}
			emit([]chat.Event{{Kind: chat.Text, Text: "well"}})
			return Figures{}, nil
		}}
	var ctx context.Context
	ctx, k.stop = context.WithCancel(context.Background())
	over := make(chan struct{})
	t.Cleanup(func() {
		// The session must have given the terminal back before its file is closed: the number of the file may then be the next test's terminal.
		k.stop()
		<-over
	})
	go func() {
		defer close(over)
		defer func() {
			if broken := recover(); broken != nil {
				k.done <- fmt.Errorf("panic: %v", broken)
			}
		}()
		k.done <- s.Run(ctx)
	}()
	k.shows("> ", 1)
	return k
}

func (k *talk) question() string {
	k.t.Helper()
	select {
	case q := <-k.asked:
		return q
	case <-time.After(10 * time.Second):
		k.t.Fatalf("nothing was asked; the screen shows %q", k.text())
		return ""
	}
}

func (k *talk) ends() error {
	k.t.Helper()
	select {
	case err := <-k.done:
		return err
	case <-time.After(10 * time.Second):
		k.t.Fatalf("the session did not end; the screen shows %q", k.text())
		return nil
	}
}

// TestALongLineIsNotCut: a question of more than 4,095 bytes lost its end in a terminal.
func TestALongLineIsNotCut(t *testing.T) {
	k := newTalk(t)
	want := strings.Repeat("0123456789", 1000)
	for rest := want; rest != ""; rest = rest[1000:] {
		k.typed(rest[:1000])
	}
	k.typed("\r")
	if got := k.question(); got != want {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
}

// TestAPasteIsOneQuestion: a pasted text of three lines became three questions.
func TestAPasteIsOneQuestion(t *testing.T) {
	k := newTalk(t)
	k.typed("see: \x1b[200~one\r\ttwo\nthr\x1b[31mee\x1b[201~")
	k.shows("ee", 1)
	k.typed(" ok\r")
	if got, want := k.question(), "see: one\n\ttwo\nthree ok"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !strings.Contains(k.text(), "\x1b[?2004h") {
		t.Error("the terminal was not asked to mark pastes")
	}
}

// TestArrowsEdit: arrow keys went to the model as escape sequences, and there was no history.
func TestArrowsEdit(t *testing.T) {
	k := newTalk(t)
	k.typed("wrld\x1b[D\x1b[D\x1b[Do\x1bOF!\x1b[1~hello \x1b[15~\r")
	if got := k.question(); got != "hello world!" {
		t.Errorf("got %q", got)
	}
	k.shows("> ", 2)
	k.typed("\x1b[A?\r")
	if got := k.question(); got != "hello world!?" {
		t.Errorf("from the history: got %q", got)
	}
}

// TestTypingAheadIsNotShown: what was typed while an answer was written stood in the middle of the answer.
func TestTypingAheadIsNotShown(t *testing.T) {
	k := newTalk(t)
	k.typed("slow\r")
	k.question()
	k.shows("once upon", 1)
	k.typed("ahead")
	time.Sleep(50 * time.Millisecond)
	if strings.Contains(k.text(), "ahead") {
		t.Errorf("got %q", k.text())
	}
	k.typed("\x03")
	k.shows("(stopped)", 1)
	k.shows("> ", 2)
	k.typed("next\r")
	if got := k.question(); got != "next" {
		t.Errorf("got %q, want what was typed after Ctrl-C", got)
	}
	k.shows("> ", 3)
}

// TestTypedAheadIsKept: a question typed before the answer ends is the next one.
func TestTypedAheadIsKept(t *testing.T) {
	k := newTalk(t)
	k.typed("first\rsecond\r")
	if a, b := k.question(), k.question(); a != "first" || b != "second" {
		t.Errorf("got %q and %q", a, b)
	}
}

// TestCtrlCClearsTheLine: with text on the line it left the program.
func TestCtrlCClearsTheLine(t *testing.T) {
	k := newTalk(t)
	before := k.mode()
	k.typed("wrong")
	k.shows("wrong", 1)
	k.typed("\x03right\r")
	if got := k.question(); got != "right" {
		t.Errorf("got %q", got)
	}
	k.shows("> ", 2)
	k.typed("\x03")
	k.shows(leaveHint, 1)
	k.typed("more\r")
	k.question()
	k.shows("> ", 4) // before the prompt, Ctrl-C would stop the answer
	k.typed("text\x03\x03")
	if err := k.ends(); err != nil {
		t.Error(err)
	}
	k.shows("\x1b[?2004l", 1)
	if text := k.text(); !strings.HasSuffix(text, "\x1b[?2004l") || !strings.Contains(text[strings.LastIndex(text, "> "):], "\n") {
		t.Errorf("the line of the prompt was not left: got %q", text)
	}
	if after := k.mode(); after == before {
		t.Error("the terminal kept the mode of the session")
	}
}

// TestTheTerminalIsGivenBack: with echo, line editing and signals, however the session ends.
func TestTheTerminalIsGivenBack(t *testing.T) {
	for name, end := range map[string]func(*talk){
		"Ctrl-D":  func(k *talk) { k.typed("\x04") },
		"quit":    func(k *talk) { k.typed("/quit\r") },
		"SIGTERM": func(k *talk) { k.stop() },
		"SIGTERM in an answer": func(k *talk) {
			k.typed("slow\r")
			k.shows("once upon", 1)
			k.stop()
		},
		"panic": func(k *talk) { k.typed("panic\r") },
	} {
		t.Run(name, func(t *testing.T) {
			k := newTalk(t)
			if m := k.mode(); m[2]&(unix.ECHO|unix.ICANON|unix.ISIG) != 0 || m[1]&unix.OPOST == 0 {
				t.Errorf("in the session: got mode %x", m)
			}
			end(k)
			if err := k.ends(); err != nil && name != "panic" {
				t.Error(err)
			}
			if m := k.mode(); m[2]&(unix.ECHO|unix.ICANON|unix.ISIG) != unix.ECHO|unix.ICANON|unix.ISIG || m[0]&unix.ICRNL == 0 {
				t.Errorf("afterwards: got mode %x", m)
			}
			k.shows("\x1b[?2004l", 1)
			if n := strings.Count(k.text(), "> "); n > 1 {
				t.Errorf("got %d prompts, want none after the end: %q", n, k.text())
			}
		})
	}
}

// TestGoingOnTakesTheTerminalAgain: after Ctrl-Z and fg the shell had given the terminal its own mode, in which the line cannot be edited.
func TestGoingOnTakesTheTerminalAgain(t *testing.T) {
	k := newTalk(t)
	k.typed("half")
	k.shows("half", 1)
	m, err := unix.IoctlGetTermios(int(k.tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	inSession := k.mode()
	m.Lflag |= unix.ECHO | unix.ICANON | unix.ISIG
	if err := unix.IoctlSetTermios(int(k.tty.Fd()), unix.TCSETS, m); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(10 * time.Second); k.mode() != inSession; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("got mode %x, want %x", k.mode(), inSession)
		}
		if err := unix.Kill(os.Getpid(), unix.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	k.shows("> half", 2)
	k.typed(" done\r")
	if got := k.question(); got != "half done" {
		t.Errorf("got %q", got)
	}
}

// TestAnAnswerIsNotTypedInto: with --once, or where the terminal knows no escape sequences, what was typed stood in the answer.
func TestAnAnswerIsNotTypedInto(t *testing.T) {
	for name, ask := range map[string]func(*Session, context.Context) error{
		"once":  func(s *Session, ctx context.Context) error { return s.Once(ctx, "slow") },
		"plain": func(s *Session, ctx context.Context) error { return s.Run(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			k := newScreen(t)
			before := k.mode()
			interrupts, done := make(chan os.Signal), make(chan error, 1)
			s := &Session{In: k.tty, Out: k.tty, Notes: k.tty, Typed: true, Terminal: true, Interrupts: interrupts,
				Ask: func(ctx context.Context, _ chat.Conversation, emit func([]chat.Event), _ func(int, int)) (Figures, error) {
					emit([]chat.Event{{Kind: chat.Text, Text: "once upon\n"}})
					<-ctx.Done()
					return Figures{}, ctx.Err()
				}}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			go func() { done <- ask(s, ctx) }()
			if name == "plain" {
				k.typed("slow\n")
			}
			k.shows("once upon", 1)
			k.typed("ahead")
			time.Sleep(50 * time.Millisecond)
			if strings.Contains(k.text(), "ahead") || k.mode()[2]&unix.ISIG == 0 {
				t.Errorf("got %q, mode %x", k.text(), k.mode())
			}
			interrupts <- os.Interrupt
			if name == "plain" {
				k.shows("(stopped)\r\n> ", 1)
				cancel()
			}
			<-done
			if k.mode() != before {
				t.Errorf("afterwards: got mode %x, want %x", k.mode(), before)
			}
			if strings.Contains(k.text(), "\x1b") {
				t.Errorf("got escape sequences in %q", k.text())
			}
		})
	}
}
