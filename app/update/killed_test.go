package update

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// killedEnv makes this test's own binary the Pond that is killed while it installs: it names the program in the app.
const killedEnv = "POND_TEST_INSTALL"

// TestKilledWhileInstalling kills a Pond in the middle of its last act, again and again: the old app stands there whole or the new one, never none and never
// half of one, and the next start removes what lies beside it.
func TestKilledWhileInstalling(t *testing.T) {
	if program := os.Getenv(killedEnv); program != "" {
		installUntilKilled(program)
		return
	}
	f := newFake(t)
	program := filepath.Join(f.updater.App, "Contents", "MacOS", "pond")
	seen := map[string]int{}
	const rounds = 40
	for round := range rounds {
		f.write(program, "old program", 0o755)
		f.write(filepath.Join(f.updater.App, "Contents", "Info.plist"), fmt.Sprintf(info, "1.0.0", f.updater.Feed, f.key()), 0o644)
		for i := range 50 { // makes the removal of the old one longer than a system call
			f.write(filepath.Join(f.updater.App, "Contents", "Resources", fmt.Sprint(i)), "old", 0o644)
		}
		cmd := exec.Command(os.Args[0], "-test.run", "^TestKilledWhileInstalling$")
		cmd.Env = append(os.Environ(), killedEnv+"="+program)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if line != "ready\n" {
			t.Fatalf("the Pond that installs: got %q, %v, want ready", line, err)
		}
		time.Sleep(time.Duration(rand.IntN(1500*(round+1)/rounds)) * time.Microsecond) // where the kill falls is chance; what it leaves is not
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed

		version := map[string]string{"old program": "1.0.0", "new program": "1.1.0"}[f.program()]
		found, err := readInfo(f.updater.App)
		if err != nil || version == "" || found["CFBundleShortVersionString"] != version {
			t.Fatalf("round %d: got %q of version %q, %v, want the old app or the new one", round, f.program(), found["CFBundleShortVersionString"], err)
		}
		seen[f.program()]++
		next := *f.updater
		if err := next.Clean(); err != nil || exists(next.stage()) {
			t.Fatalf("round %d: the next start: %v, something left: %v", round, err, exists(next.stage()))
		}
	}
	t.Logf("%d kills left %v", rounds, seen)
}

// installUntilKilled is the Pond: a new app is ready, it installs it, and then waits for its end.
func installUntilKilled(program string) {
	u, err := Of(program, "1.0.0", "macOS 15.5", "")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	app := filepath.Join(u.stage(), filepath.Base(u.App))
	for name, text := range appFiles("1.1.0") {
		path := filepath.Join(filepath.Dir(app), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			err = os.WriteFile(path, []byte(text), 0o755)
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	u.ready = true
	fmt.Println("ready")
	if err := u.Install(); err != nil {
		fmt.Println(err)
	}
	time.Sleep(time.Minute)
}

// TestTheDiskFillsUp: another program took the room that was there when the download began. The old app stays, and nothing lies beside it.
func TestTheDiskFillsUp(t *testing.T) {
	for name, c := range map[string]struct {
		diskBytes int
		want      string
	}{
		"in the download":      {96 << 10, "archive: "},
		"while it is unpacked": {400 << 10, "archive: "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := smallDisk(t, c.diskBytes)
			f := newFakeIn(t, dir)
			f.updater.Free = func(string) (int64, error) { return 1 << 40, nil }
			files := appFiles("1.1.0")
			files["Pond.app/Contents/Resources/noise"] = noise(200 << 10)
			files["Pond.app/Contents/Resources/zeros"] = strings.Repeat("\x00", 4<<20) // hardly anything in the archive
			f.archive = f.pack(files)
			err := f.updater.Fetch(context.Background(), f.announce("1.1.0"))
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "no space left") {
				t.Errorf("got %v, want no space left", err)
			}
			f.untouched(name)
		})
	}
}

// noise is text that does not get shorter when it is packed.
func noise(n int) string {
	r := rand.NewChaCha8([32]byte{1})
	b := make([]byte, n)
	_, _ = r.Read(b) // it does not fail
	return string(b)
}
