package app

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pond/app/settings"
	"pond/app/update"
)

const infoText = `<plist version="1.0"><dict><key>CFBundleIdentifier</key><string>` + ID + `</string><key>CFBundleExecutable</key><string>pond</string>
<key>CFBundleShortVersionString</key><string>%s</string><key>PondUpdateFeed</key><string>%s</string><key>PondUpdateKey</key><string>%s</string></dict></plist>`

// updatable is a Pond in an app of version 1.0.0, and a server that offers 2.0.0; asked counts what the server was asked for.
func updatable(t *testing.T, on bool) (p *Pond, app string, asked *atomic.Int32) {
	t.Helper()
	return offered(t, on, update.Version{2}, func(*http.Request) {})
}

// offered is updatable with another version on offer; archiveAsked is called with each request for the archive, before it is answered.
func offered(t *testing.T, on bool, version update.Version, archiveAsked func(*http.Request)) (p *Pond, app string, asked *atomic.Int32) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	for name, text := range map[string]string{"Pond.app/Contents/Info.plist": fmt.Sprintf(infoText, "2.0.0", "", ""), "Pond.app/Contents/MacOS/pond": "new"} {
		h := &zip.FileHeader{Name: name}
		h.SetMode(0o755)
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	asked = new(atomic.Int32)
	var feed []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if strings.HasSuffix(r.URL.Path, ".zip") {
			archiveAsked(r)
			w.Write(archive.Bytes())
		} else {
			w.Write(feed)
		}
	}))
	t.Cleanup(server.Close)
	feed = update.WriteFeed("Pond", []update.Release{{Version: version, Published: time.Unix(0, 0), MinimumSystem: update.Version{15}, URL: server.URL + "/Pond.zip",
		LengthBytes: int64(archive.Len()), Signature: ed25519.Sign(private, archive.Bytes())}}, private)

	app = filepath.Join(t.TempDir(), "Pond.app")
	program := filepath.Join(app, "Contents", "MacOS", "pond")
	info := fmt.Sprintf(infoText, "1.0.0", server.URL, base64.StdEncoding.EncodeToString(public))
	if err := errors.Join(os.MkdirAll(filepath.Dir(program), 0o755), os.WriteFile(program, []byte("old"), 0o755), os.WriteFile(filepath.Join(app, "Contents", "Info.plist"), []byte(info), 0o644)); err != nil {
		t.Fatal(err)
	}
	u, err := update.Of(program, "1.0.0", "macOS 15.5", filepath.Join(t.TempDir(), "checked"))
	if err != nil {
		t.Fatal(err)
	}
	u.Verify = nil
	p, _ = homeOf(t, func(h *Home, s *settings.Settings) {
		h.Updates = u
		s.LookForUpdates = on
	})
	return p, app, asked
}

func program(t *testing.T, app string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(app, "Contents", "MacOS", "pond"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// watchUpdates runs WatchUpdates until the test ends it.
func watchUpdates(t *testing.T, p *Pond) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.WatchUpdates(ctx)
	}()
	end = func() {
		cancel()
		<-done
	}
	t.Cleanup(end)
	return end
}

// TestUpdateWaitsForTheEnd: a newer release is fetched while nobody works, the menu says so, and it is installed when Pond quits, not before.
func TestUpdateWaitsForTheEnd(t *testing.T) {
	p, app, asked := updatable(t, true)
	p.tell(Worked{Work{Active: 1}}) // somebody is answered
	end := watchUpdates(t, p)
	time.Sleep(50 * time.Millisecond) // ten of its looks; more time would find no more
	if n := asked.Load(); n != 0 {
		t.Errorf("the server was asked %d times during work, want 0", n)
	}
	p.tell(Worked{Work{}})
	s := until(t, p, "ready to be updated", func(s State) bool { return s.Update.Ready })
	found := false
	for _, item := range Menu(s) {
		found = found || item.Label == "Pond 2.0.0 is ready: it is installed when you quit" && !item.Available
	}
	if !found {
		t.Errorf("the menu does not tell of it: %+v", Menu(s))
	}
	if got := program(t, app); got != "old" {
		t.Errorf("got the %s program before the end", got)
	}
	end()
	p.Close()
	p.InstallUpdate()
	if got := program(t, app); got != "new" {
		t.Errorf("got the %s program after the end", got)
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("the server was asked %d times, want 2: the feed and the archive", n)
	}
}

// TestWorkEndsADownload: a client that asks while an update is fetched has the machine to itself; the update comes later.
func TestWorkEndsADownload(t *testing.T) {
	var p *Pond
	first, gaveUp := true, make(chan struct{})
	p, app, asked := offered(t, true, update.Version{2}, func(r *http.Request) {
		if first {
			first = false
			p.tell(Worked{Work{Active: 1}})
			<-r.Context().Done()
			close(gaveUp)
		}
	})
	end := watchUpdates(t, p)
	<-gaveUp
	s := until(t, p, "told of the update", func(s State) bool { return s.Update.Version == "2.0.0" })
	if got := s.Update.Line(); got != "Pond 2.0.0 is fetched while nobody works" || s.Update.Ready {
		t.Errorf("during work: got %q, ready %v", got, s.Update.Ready)
	}
	p.tell(Worked{Work{}})
	until(t, p, "ready to be updated", func(s State) bool { return s.Update.Ready })
	end()
	p.Close()
	p.InstallUpdate()
	if got := program(t, app); got != "new" {
		t.Errorf("got the %s program after the end", got)
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("the server was asked %d times, want 3: the feed, the archive, and the archive again", n)
	}
}

// TestCheckForUpdatesNow: who asks is told what came of it, whatever the setting says and whenever the feed was asked last.
func TestCheckForUpdatesNow(t *testing.T) {
	check := func(p *Pond) {
		for _, item := range Menu(p.State()) {
			if item.Label == "Check for updates now" && item.Available {
				p.Do(context.Background(), item.Action)
				return
			}
		}
		t.Errorf("the menu does not offer it: %+v", Menu(p.State()))
	}
	t.Run("there is one", func(t *testing.T) {
		p, app, _ := updatable(t, false)
		p.tell(Worked{Work{Active: 1}})
		end := watchUpdates(t, p)
		check(p)
		until(t, p, "told during work", func(s State) bool { return s.Update.Version == "2.0.0" })
		p.tell(Worked{Work{}})
		s := until(t, p, "ready", func(s State) bool { return s.Update.Ready })
		for _, item := range Menu(s) {
			if item.Action == CheckUpdates && item.Available {
				t.Error("it is still offered when an update waits for the end")
			}
		}
		end()
		p.Close()
		p.InstallUpdate()
		if got := program(t, app); got != "new" {
			t.Errorf("got the %s program after the end", got)
		}
	})
	t.Run("there is none", func(t *testing.T) {
		p, _, asked := offered(t, false, update.Version{1}, func(*http.Request) {})
		watchUpdates(t, p)
		for range 2 {
			check(p)
			s := until(t, p, "told", func(s State) bool { return s.Update.Newest })
			if got := s.Update.Line(); got != "Pond "+Version+" is the newest release" {
				t.Errorf("got %q", got)
			}
			p.tell(UpdateKnown{Update{Own: true}})
		}
		if n := asked.Load(); n != 2 {
			t.Errorf("the server was asked %d times, want 2", n)
		}
	})
	t.Run("nobody answers", func(t *testing.T) {
		p, _, _ := updatable(t, false)
		p.home.Updates.Feed = "http://127.0.0.1:1/appcast.xml"
		watchUpdates(t, p)
		check(p)
		s := until(t, p, "told", func(s State) bool { return s.Update.Trouble != "" })
		if got := s.Update.Line(); !strings.HasPrefix(got, "Looking for updates failed: ") {
			t.Errorf("got %q", got)
		}
	})
	t.Run("a build that is not updated by itself", func(t *testing.T) {
		p, _ := homeOf(t, nil)
		for _, item := range Menu(p.State()) {
			if item.Action == CheckUpdates {
				t.Error("the menu offers what nothing answers")
			}
		}
	})
}

// TestUpdatesOff: who does not want Pond to look is not looked for, and nothing is installed.
func TestUpdatesOff(t *testing.T) {
	p, app, asked := updatable(t, false)
	end := watchUpdates(t, p)
	time.Sleep(50 * time.Millisecond)
	end()
	p.Close()
	p.InstallUpdate()
	if n := asked.Load(); n != 0 || program(t, app) != "old" {
		t.Errorf("the server was asked %d times and the %s program stands there, want 0 and the old one", n, program(t, app))
	}
}

// TestUpdateLine: trouble is told with its reason, and without news there is nothing to tell.
func TestUpdateLine(t *testing.T) {
	if got := (Update{Own: true}).Line(); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
	if got := (Update{Version: "2.0.0", Trouble: "got 10 MB free, want 300 MB"}).Line(); got != "Pond 2.0.0 could not be fetched: got 10 MB free, want 300 MB" {
		t.Errorf("got %q", got)
	}
}
