package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long the tests of the app wait for anything: a machine under load is slow, and what does not come does not come later either.
const patience = 2 * time.Minute

// screen is a private X server and a private session bus.
type screen struct {
	env []string
	bus string // address
}

// needsScreen builds the app with its window and opens a private screen; where the machine cannot, the test is skipped with the reason.
func needsScreen(t *testing.T) (binary string, s screen) {
	t.Helper()
	if os.Getenv("POND_TEST_APP") == "" {
		t.Skip("POND_TEST_APP names no app with its window; make test and make test-app build one where a C compiler, the headers of X11 and OpenGL, and Xvfb are there")
	}
	if runtime.GOOS != "linux" {
		t.Skip("it needs Xvfb and a D-Bus; this is " + runtime.GOOS)
	}
	for _, tool := range []string{"Xvfb", "dbus-daemon"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is not installed")
		}
	}
	binary = os.Getenv("POND_TEST_APP")
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("POND_TEST_APP: got %s, want the app with its window: %v", binary, err)
	}
	display := announced(t, exec.Command("Xvfb", "-displayfd", "1", "-screen", "0", "1280x800x24", "+extension", "GLX", "-nolisten", "tcp"))
	home := t.TempDir()
	s.bus = announced(t, exec.Command("dbus-daemon", "--session", "--nofork", "--print-address=1", "--address=unix:dir="+home))
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "XDG_") && name != "POND_API_KEY" && name != "HF_ENDPOINT" && name != "WAYLAND_DISPLAY" {
			s.env = append(s.env, pair)
		}
	}
	for name, dir := range map[string]string{"XDG_CONFIG_HOME": "config", "XDG_DATA_HOME": "data", "XDG_STATE_HOME": "state", "XDG_CACHE_HOME": "cache", "XDG_RUNTIME_DIR": "run", "HOME": "home"} {
		path := filepath.Join(home, dir)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		s.env = append(s.env, name+"="+path)
	}
	s.env = append(s.env, "DISPLAY=:"+display, "DBUS_SESSION_BUS_ADDRESS="+s.bus, "LIBGL_ALWAYS_SOFTWARE=1", "NO_AT_BRIDGE=1")
	return binary, s
}

// dir is one of the app's folders.
func (s screen) dir(variable string) string {
	for _, pair := range s.env {
		if value, ok := strings.CutPrefix(pair, variable+"="); ok {
			last := value
			if !strings.HasPrefix(variable, "XDG") {
				continue
			}
			return last
		}
	}
	return ""
}

// announced starts a server that ends with the test, and returns the first line that it writes.
func announced(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%s said nothing: %v", cmd.Path, err)
	}
	return strings.TrimSpace(line)
}

// launched is a running app.
type launched struct {
	cmd   *exec.Cmd
	out   *bytes.Buffer
	ended chan struct{}
	err   error // once ended
}

// launch starts the app in a process group of its own, so that what it leaves behind can be found.
func launch(t *testing.T, binary string, s screen) *launched {
	t.Helper()
	l := &launched{cmd: exec.Command(binary), out: &bytes.Buffer{}, ended: make(chan struct{})}
	l.cmd.Env, l.cmd.Stdout, l.cmd.Stderr = s.env, l.out, l.out
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		l.err = l.cmd.Wait()
		close(l.ended)
	}()
	t.Cleanup(func() {
		syscall.Kill(-l.cmd.Process.Pid, syscall.SIGKILL)
		<-l.ended
		if t.Failed() {
			t.Logf("the app said:\n%s", l.out)
		}
	})
	return l
}

// wait waits for the app's end.
func (l *launched) wait(t *testing.T) {
	t.Helper()
	select {
	case <-l.ended:
	case <-time.After(patience):
		t.Fatal("the app did not end")
	}
	if l.err != nil {
		t.Fatalf("the app ended with %v", l.err)
	}
}

// runs tells whether the app has not ended.
func (l *launched) runs(*testing.T) bool {
	select {
	case <-l.ended:
		return false
	default:
		return true
	}
}

// gone wants no process of the app left, five seconds after its end at the latest.
func (l *launched) gone(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for {
		err := syscall.Kill(-l.cmd.Process.Pid, 0)
		if errors.Is(err, syscall.ESRCH) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("five seconds after its end a process of the app is left: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// TestApp drives the real app as a user does: the menu in the bar, one click on its first item, a question through the endpoint, a second launch, a
// click on Stop, Quit.
func TestApp(t *testing.T) {
	binary, s := needsScreen(t)
	port := freePort(t)
	settings := filepath.Join(s.dir("XDG_CONFIG_HOME"), "pond", "settings.json")
	if err := os.MkdirAll(filepath.Dir(settings), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(settings, fmt.Appendf(nil, `{"model":"pond-demo","port":%d}`, port), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWatcher(t, s.bus)
	began := time.Now()
	app := launch(t, binary, s)
	item := w.item(t)
	t.Logf("the icon came after %v", time.Since(began).Round(time.Millisecond))

	menu := item.menu(t, func(m trayMenu) bool { return m.first() == "Start" })
	if menu[1].label != "Ready" || menu[1].enabled {
		t.Errorf("got %v second, want the state alone", menu[1])
	}
	for _, want := range []string{"Copy endpoint URL", "Copy snippet", "Chat", "Model", "Settings", "Logs", "Unload now", "Pause until", "Quit"} {
		if _, ok := menu.find(want); !ok {
			t.Errorf("the menu has no %s: %v", want, menu)
		}
	}
	if e, _ := menu.find("Copy endpoint URL"); e.enabled {
		t.Error("a stopped app offers to copy its endpoint")
	}
	stopped := item.icon(t)

	item.click(t, "Start", item.offers("Start"))
	running := fmt.Sprintf("Running · 127.0.0.1:%d", port)
	// The submenus come with the second reading after a rebuild: systray spares panels that would drop them.
	menu = item.menu(t, func(m trayMenu) bool {
		_, state := m.find(running)
		_, snippet := m.find("Python")
		return state && snippet
	})
	if menu.first() != "Stop" {
		t.Errorf("got %s first, want Stop", menu.first())
	}
	if e, ok := menu.find("Python"); !ok || !e.enabled {
		t.Errorf("the snippets are not offered: %v", menu)
	}
	if bytes.Equal(item.icon(t), stopped) {
		t.Error("the icon looks the same running as stopped")
	}
	base := fmt.Sprintf("http://127.0.0.1:%d", port)
	ask(t, base)

	second := launch(t, binary, s)
	second.wait(t)
	if !strings.Contains(second.out.String(), "open already") {
		t.Errorf("the second launch said %q", second.out)
	}

	item.click(t, "Stop", item.offers("Stop"))
	menu = item.menu(t, func(m trayMenu) bool { return m.first() == "Start" })
	if _, err := http.Get(base + "/health"); err == nil {
		t.Error("a stopped app answers")
	}
	item.click(t, "Quit", app.runs)
	app.wait(t)
	app.gone(t)
	second.gone(t)
	if text, err := os.ReadFile(filepath.Join(s.dir("XDG_STATE_HOME"), "pond", "pond.log")); err != nil || !bytes.Contains(text, []byte("model open")) {
		t.Errorf("the log: got %q, %v", text, err)
	} else if bytes.Contains(text, []byte("What is a pond")) {
		t.Error("the log holds what was asked")
	}
}

// windows are the names of the windows that can be seen.
func (s screen) windows(t *testing.T) []string {
	t.Helper()
	if _, err := exec.LookPath("xdotool"); err != nil {
		t.Skip("xdotool is not installed")
	}
	cmd := exec.Command("xdotool", "search", "--onlyvisible", "--name", "Pond", "getwindowname", "%@")
	cmd.Env = s.env
	out, err := cmd.Output()
	if err != nil {
		return nil // none is found
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// TestAppWindows: the first run opens a window by itself, later ones do not; where nothing shows the icon a window is the way in, and so is a
// second launch.
func TestAppWindows(t *testing.T) {
	binary, s := needsScreen(t)
	seen := func(t *testing.T, what string) {
		t.Helper()
		for deadline := time.Now().Add(patience); len(s.windows(t)) == 0; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("no window came: " + what)
			}
		}
	}
	quit := func(t *testing.T, app *launched) {
		t.Helper()
		if err := app.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		app.wait(t)
		app.gone(t)
	}
	// No tray: nobody owns the watcher's name.
	app := launch(t, binary, s)
	seen(t, "the first run")
	quit(t, app)
	app = launch(t, binary, s)
	seen(t, "there is no tray")
	quit(t, app)

	w := newWatcher(t, s.bus)
	if err := os.WriteFile(filepath.Join(s.dir("XDG_CONFIG_HOME"), "pond", "settings.json"), []byte(`{"model":"pond-demo"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	app = launch(t, binary, s)
	w.item(t).menu(t, func(m trayMenu) bool { return m.first() == "Start" })
	time.Sleep(5 * time.Second) // longer than the app waits for its icon
	if got := s.windows(t); len(got) > 0 {
		t.Errorf("an app with an icon opened %v by itself", got)
	}
	second := launch(t, binary, s)
	second.wait(t)
	seen(t, "a second launch")
	quit(t, app)
}

// ask asks the endpoint one question.
func ask(t *testing.T, base string) {
	t.Helper()
	body := `{"model":"pond-demo","max_tokens":8,"messages":[{"role":"user","content":"What is a pond?"}]}`
	r, err := http.Post(base+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	var answer struct {
		Choices []struct{ Message struct{ Role string } }
		Usage   struct {
			CompletionTokens int `json:"completion_tokens"`
		}
	}
	if err != nil || r.StatusCode != http.StatusOK || json.Unmarshal(text, &answer) != nil || len(answer.Choices) != 1 || answer.Usage.CompletionTokens == 0 {
		t.Errorf("got %s %s, %v", r.Status, text, err)
	}
}
