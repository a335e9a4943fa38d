package app

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Instance is the claim to be the one Pond with a window of this user. Its rules:
//
//   - The lock of a file decides, and the system gives it back when its holder dies, however it does: nothing has to be cleaned up.
//   - The file names the socket at which the holder can be asked to show its window. The folder is the user's alone.
type Instance struct {
	lock     *os.File
	listener net.Listener
	readers  sync.WaitGroup
}

// ErrShown says that another Pond runs, and shows its window now.
var ErrShown = errors.New("pond is open already; its window is shown")

const (
	lockName   = "pond.lock"
	socketName = "pond.sock"
	showWord   = "show"
	shownWord  = "shown"

	// socketPathLimit is what fits into sockaddr_un of macOS, which is the shorter one.
	socketPathLimit = 103
	// showPatience is how long another Pond may take to answer: it may have only just begun.
	showPatience = 10 * time.Second
)

// Claim makes this process the one Pond, whose show is called whenever another is started. Where there is one already it is asked to show its
// window, and the error is ErrShown, or says that it does not answer.
func Claim(dir string, show func()) (*Instance, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("single instance: %w", err)
	}
	deadline := time.Now().Add(showPatience)
	for {
		lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, fmt.Errorf("single instance: %w", err)
		}
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return claimed(lock, dir, show)
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("single instance: %w", err), lock.Close())
		}
		err = askToShow(lock)
		lock.Close()
		if err == nil {
			return nil, ErrShown
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("pond is open already and does not answer: %w", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// claimed opens the socket of the holder and says in the lock's file where it is.
func claimed(lock *os.File, dir string, show func()) (_ *Instance, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("single instance: %w", err), lock.Close())
		}
	}()
	path := filepath.Join(dir, socketName)
	if len(path) > socketPathLimit {
		private, err := os.MkdirTemp("", "pond-")
		if err != nil {
			return nil, err
		}
		path = filepath.Join(private, socketName)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // of a Pond that died
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err = lock.Truncate(0); err == nil {
		_, err = lock.WriteAt([]byte(path+"\n"), 0)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	i := &Instance{lock: lock, listener: l}
	i.readers.Go(func() { i.serve(show) })
	return i, nil
}

func (i *Instance) serve(show func()) {
	for {
		c, err := i.listener.Accept()
		if err != nil {
			return
		}
		i.readers.Go(func() {
			defer c.Close()
			c.SetDeadline(time.Now().Add(showPatience))
			if word, err := bufio.NewReader(c).ReadString('\n'); err == nil && strings.TrimSpace(word) == showWord {
				show()
				fmt.Fprintln(c, shownWord)
			}
		})
	}
}

// askToShow asks the holder of a lock to show its window.
func askToShow(lock *os.File) error {
	var text [1024]byte
	n, err := lock.ReadAt(text[:], 0)
	path := strings.TrimSpace(string(text[:n]))
	if path == "" {
		return fmt.Errorf("it has not said yet where it listens: %w", err)
	}
	c, err := net.DialTimeout("unix", path, showPatience)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(showPatience))
	if _, err := fmt.Fprintln(c, showWord); err != nil {
		return err
	}
	word, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return err
	}
	if strings.TrimSpace(word) != shownWord {
		return fmt.Errorf("got %q, want %q", word, shownWord)
	}
	return nil
}

// Close gives the claim back. The socket goes first: who finds the lock free finds no old socket in use.
func (i *Instance) Close() error {
	err := i.listener.Close()
	i.readers.Wait()
	return errors.Join(err, i.lock.Close())
}
