package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"pond/app"
	"pond/app/settings"
	"pond/inference/checkpoint/badhub"
	"pond/inference/checkpoint/manifest"
	"pond/inference/tinymodel"
)

// TestMain lets the scripts run this test binary as pond.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"pond": func() { os.Exit(run(os.Args[1:], scriptStreams())) },
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
				_, err := catalog(streams{}).Find(app.DemoModel)
				return err == nil, nil
			}
			return false, fmt.Errorf("got condition %s, want demo", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"settings": scriptSettings, "exits": scriptExits, "tinymodel": scriptTinyModel, "truncate": scriptTruncate,
			"sigterm": scriptSIGTERM, "taken": scriptTaken, "freeport": scriptFreePort, "ask": scriptAsk, "hub": scriptHub, "awaitfile": scriptAwaitFile,
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
	s := settings.Default()
	s.Address, s.Model = args[0], args[1]
	ts.Check(s.Save(ts.MkAbs("config/pond/settings.json")))
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

// scriptModels is the variable by which a script tells the program under test of a model smaller than the real one: manifests as JSON.
const scriptModels = "POND_TEST_MODELS"

func scriptStreams() streams {
	s := streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}
	if text := os.Getenv(scriptModels); text != "" {
		if err := json.Unmarshal([]byte(text), &s.models); err != nil {
			panic(err)
		}
	}
	return s
}

// scriptHub: hub [corrupt] publishes the golden tiny model as the full one, for as long as the script runs, and points the program to it.
// With corrupt, the hub sends other bytes than it should.
func scriptHub(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs("published")
	ts.Check(tinymodel.Write(dir, tinymodel.Tiny))
	names := []string{"config.json", "generation_config.json", "chat_template.jinja", "tokenizer_config.json", "tokenizer.json", "model.safetensors"}
	files := map[string]badhub.Content{}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, name))
		ts.Check(err)
		files[name] = badhub.Bytes(data)
	}
	hub := badhub.Of(files)
	if len(args) > 0 && args[0] == "corrupt" {
		hub.Misbehave(func(badhub.Ask) badhub.Act { return badhub.Act{Kind: badhub.Corrupt} })
	}
	server := httptest.NewServer(hub)
	ts.Defer(server.Close)
	text, err := json.Marshal([]manifest.Manifest{manifest.Demo(), hub.Manifest(app.FullModel, names, "owner/model")})
	ts.Check(err)
	ts.Setenv(scriptModels, string(text))
	ts.Setenv("HF_ENDPOINT", server.URL)
}

// scriptAwaitFile: awaitfile FILE waits until a program in the background has made a file.
func scriptAwaitFile(ts *testscript.TestScript, _ bool, args []string) {
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
	}
	ts.Fatalf("%s was not made", args[0])
}
