package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"pond/app"
	"pond/app/settings"
	"pond/inference/tinymodel"
)

// TestMain lets the scripts run this test binary as pond.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"pond": func() { os.Exit(run(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})) },
	})
}

// TestCommands plays the transcripts of testdata/script: what a user types and sees. Each runs in a folder and a home of its own.
func TestCommands(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			for name, folder := range map[string]string{"XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "config", "XDG_STATE_HOME": "state", "HOME": "home"} {
				e.Setenv(name, e.WorkDir+"/"+folder)
			}
			e.Setenv("HOST_PORT", "127.0.0.1:0")
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name == "demo" {
				_, err := catalog().Find(app.DemoModel)
				return err == nil, nil
			}
			return false, fmt.Errorf("got condition %s, want demo", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"settings": scriptSettings, "exits": scriptExits, "tinymodel": scriptTinyModel, "truncate": scriptTruncate,
			"sigterm": scriptSIGTERM, "taken": scriptTaken, "freeport": scriptFreePort, "ask": scriptAsk,
		},
	})
}

// scriptExits: exits CODE COMMAND... runs a command that must end with this very exit code.
func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("got exit code %d, want %d", got, want)
	}
}

// scriptSettings: settings ADDRESS MODEL writes the user's settings.
func scriptSettings(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(settings.Settings{Address: args[0], Model: args[1]}.Save(ts.MkAbs("config/pond/settings.json")))
}

// scriptTinyModel: tinymodel DIR writes the golden tiny model.
func scriptTinyModel(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(tinymodel.Write(ts.MkAbs(args[0]), tinymodel.Tiny))
}

// scriptTruncate: truncate FILE BYTES cuts a file.
func scriptTruncate(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), n))
}

// scriptSIGTERM: sigterm asks every program in the background to end, as a system does that shuts down.
func scriptSIGTERM(ts *testscript.TestScript, _ bool, _ []string) {
	for _, c := range ts.BackgroundCmds() {
		ts.Check(c.Process.Signal(syscall.SIGTERM))
	}
}

// scriptTaken: taken NAME listens on a port for the length of the script and puts its address into $NAME.
func scriptTaken(ts *testscript.TestScript, _ bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	ts.Setenv(args[0], l.Addr().String())
}

// scriptFreePort: freeport NAME puts an address that was free a moment ago into $NAME.
func scriptFreePort(ts *testscript.TestScript, _ bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv(args[0], l.Addr().String())
	ts.Check(l.Close())
}

// scriptAsk: ask URL [FILE] gets a URL, or posts a JSON file to it, once something listens there, and prints the body. With ! the
// answer's status must be an error.
func scriptAsk(ts *testscript.TestScript, neg bool, args []string) {
	request := func() (*http.Response, error) {
		if len(args) == 1 {
			return http.Get(args[0])
		}
		return http.Post(args[0], "application/json", bytes.NewReader([]byte(ts.ReadFile(args[1]))))
	}
	var answer *http.Response
	var err error
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if answer, err = request(); err == nil {
			break
		}
	}
	ts.Check(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	ts.Check(err)
	fmt.Fprintln(ts.Stdout(), strings.TrimSpace(string(body)))
	if bad := answer.StatusCode >= 400; bad != neg {
		ts.Fatalf("got status %s", answer.Status)
	}
}
