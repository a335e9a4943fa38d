package app

import (
	"context"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"pond/app/settings"
	"pond/inference/checkpoint/adopt"
	"pond/inference/checkpoint/badhub"
	"pond/inference/checkpoint/manifest"
)

// published is a small model on a hub of the test's own, and a Pond that chose it.
type published struct {
	pond  *Pond
	hub   *badhub.Hub
	model manifest.Manifest
	src   string // folder with the files
	stall atomic.Bool
}

const weightsFile = "model.safetensors"

func publish(t *testing.T) *published {
	t.Helper()
	w := &published{src: tiny(t).Dir}
	names := []string{"config.json", "generation_config.json", "chat_template.jinja", "tokenizer_config.json", "tokenizer.json", weightsFile}
	files := map[string]badhub.Content{}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(w.src, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = badhub.Bytes(data)
	}
	w.hub = badhub.Of(files)
	w.hub.Misbehave(func(a badhub.Ask) badhub.Act {
		if w.stall.Load() && a.File == weightsFile {
			return badhub.Act{Kind: badhub.Stall}
		}
		return badhub.Act{}
	})
	w.model = w.hub.Manifest("tiny", names, "owner/tiny")
	server := httptest.NewUnstartedServer(w.hub)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	w.pond, _ = homeOf(t, func(h *Home, s *settings.Settings) {
		h.Known = []manifest.Manifest{w.model}
		h.Tools = adopt.Environment{Getenv: func(name string) string { return map[string]string{"HF_ENDPOINT": server.URL}[name] }}
		s.Model = "tiny"
	})
	return w
}

// TestDownloadStartStop is the life of the menu's first item: Download, Start, Stop; and on the way pause and going on, as a user would.
func TestDownloadStartStop(t *testing.T) {
	w := publish(t)
	p := w.pond
	s := p.State()
	if s.Phase != NeedModel || s.Next().Action != Download || s.Disk.TotalBytes != w.model.Bytes() || s.Disk.FreeBytes <= 0 {
		t.Fatalf("got %+v", s)
	}
	w.stall.Store(true)
	p.Do(context.Background(), s.Next().Action)
	s = until(t, p, "downloading", func(s State) bool {
		n := 0
		for _, f := range s.Job.Files {
			if f.Verified {
				n++
			}
		}
		return s.Phase == Downloading && n == len(w.model.Files)-1
	})
	if err := p.Verify(); err == nil {
		t.Error("two jobs at once")
	}
	p.PauseDownload()
	if s = p.State(); !s.Job.Paused || s.Phase != Downloading || !strings.HasPrefix(s.Line(), "Download paused at ") || s.Next().Action != Download {
		t.Errorf("paused: got %s, %+v", s.Line(), s.Job)
	}
	before := w.hub.Sent("tokenizer.json")
	w.stall.Store(false)
	if err := p.ResumeDownload(); err != nil {
		t.Fatal(err)
	}
	s = until(t, p, "ready", func(s State) bool { return s.Ready && s.Job.Kind == NoJob })
	if s.Phase != Stopped || s.Next().Action != Start {
		t.Errorf("got %+v", s)
	}
	if got := w.hub.Sent("tokenizer.json"); got != before {
		t.Errorf("a file that was there was sent again: got %d bytes, want %d", got, before)
	}
	p.Do(context.Background(), Start)
	s = until(t, p, "running", phase(Running))
	if code, err := answerOf(s.Endpoint()); err != nil || code != 200 {
		t.Errorf("got %d, %v", code, err)
	}
	p.Do(context.Background(), s.Next().Action)
	until(t, p, "stopped", phase(Stopped))
}

// TestVerifyRepairRemove: damage is found and named, a repair fetches only what is wrong, and removing leaves the first page again.
func TestVerifyRepairRemove(t *testing.T) {
	w := publish(t)
	p := w.pond
	if err := p.Download(); err != nil {
		t.Fatal(err)
	}
	s := until(t, p, "ready", func(s State) bool { return s.Ready })
	weights := filepath.Join(s.Disk.Dir, weightsFile)
	data, err := os.ReadFile(weights)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2]++
	if err := os.WriteFile(weights, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := p.Verify(); err != nil {
		t.Fatal(err)
	}
	s = until(t, p, "failed", phase(Failed))
	if !strings.Contains(s.Failure, weightsFile) || !strings.Contains(s.Failure, "Repair") {
		t.Errorf("got %q, want the file and what to do", s.Failure)
	}
	until(t, p, "to be repaired", func(s State) bool { return s.Next().Action == Repair })
	sent := w.hub.Sent("tokenizer.json")
	if err := p.Repair(); err != nil {
		t.Fatal(err)
	}
	until(t, p, "ready again", func(s State) bool { return s.Ready && s.Phase == Stopped })
	if got := w.hub.Sent("tokenizer.json"); got != sent {
		t.Error("a file that was right was fetched again")
	}
	if err := p.Remove(); err != nil {
		t.Fatal(err)
	}
	s = until(t, p, "gone", func(s State) bool { return s.Phase == NeedModel && s.Disk.DoneBytes == 0 })
	if _, err := os.Stat(weights); !os.IsNotExist(err) {
		t.Errorf("the weights are left: %v", err)
	}
	w.stall.Store(true)
	if err := p.Download(); err != nil {
		t.Fatal(err)
	}
	until(t, p, "on the way", func(s State) bool { return s.Job.DoneBytes > 0 })
	if err := p.CancelDownload(); err != nil {
		t.Fatal(err)
	}
	until(t, p, "cancelled", func(s State) bool { return s.Phase == NeedModel && s.Disk.UsedBytes == 0 })
	if _, err := os.Stat(s.Disk.Dir); !os.IsNotExist(err) {
		t.Errorf("a cancelled download left its folder: %v", err)
	}
}

// TestAdoptFound: a copy in a folder is verified and used where it is; nothing is downloaded.
func TestAdoptFound(t *testing.T) {
	w := publish(t)
	p := w.pond
	found := p.CopiesIn(w.src)
	if len(found) != 1 || found[0].MissingBytes != 0 {
		t.Fatalf("got %+v", found)
	}
	if err := p.Adopt(found[0], AdoptInPlace); err != nil {
		t.Fatal(err)
	}
	until(t, p, "ready", func(s State) bool { return s.Ready && s.Job.Kind == NoJob })
	if n := w.hub.Requests(); n != 0 {
		t.Errorf("got %d requests, want none", n)
	}
}

// TestEjectedDrive: a folder of models whose drive is away is said to be away; nothing is downloaded, created or forgotten, whatever is
// clicked, and when the drive is back the model is ready by itself.
func TestEjectedDrive(t *testing.T) {
	w := publish(t)
	p := w.pond
	drive := filepath.Join(t.TempDir(), "drive")
	if err := os.Mkdir(drive, 0o755); err != nil {
		t.Fatal(err)
	}
	s := p.Settings()
	s.ModelsDir = drive
	if err := p.SaveSettings(s); err != nil {
		t.Fatal(err)
	}
	if err := p.Download(); err != nil {
		t.Fatal(err)
	}
	until(t, p, "ready", func(s State) bool { return s.Ready && s.Job.Kind == NoJob })
	away := drive + " away"
	if err := os.Rename(drive, away); err != nil {
		t.Fatal(err)
	}
	sent := w.hub.Requests()
	p.Look()
	if s := p.State(); s.Phase != NeedModel || !strings.Contains(s.Line(), "is not there") || s.Next().Action == Download {
		t.Errorf("away: got %s %q, next %v", s.Phase, s.Line(), s.Next())
	}
	p.Do(context.Background(), Start)
	if s := until(t, p, "failed", phase(Failed)); !strings.Contains(s.Failure, drive) {
		t.Errorf("Start: got %q, want the folder named", s.Failure)
	}
	p.Do(context.Background(), Download)
	until(t, p, "at rest again", func(s State) bool {
		return s.Phase == Failed && s.Job.Kind == NoJob && strings.Contains(s.Failure, "is not there")
	})
	if _, err := os.Stat(drive); !os.IsNotExist(err) {
		t.Errorf("the folder was created: %v", err)
	}
	if got := p.Settings().ModelsDir; got != drive {
		t.Errorf("the setting became %q", got)
	}
	if err := os.Rename(away, drive); err != nil {
		t.Fatal(err)
	}
	p.Look() // as Attend does every few seconds
	if s := p.State(); s.Phase != Stopped || !s.Ready {
		t.Errorf("back: got %s %q", s.Phase, s.Line())
	}
	if got := w.hub.Requests(); got != sent {
		t.Errorf("got %d requests, want none", got-sent)
	}
}

// TestJobsOfNoModel: what Pond does not download cannot be downloaded, verified or removed, and says so.
func TestJobsOfNoModel(t *testing.T) {
	p, _ := homeOf(t, nil) // a folder of the user's own
	for name, do := range map[string]func() error{"download": p.Download, "verify": p.Verify, "repair": p.Repair, "remove": p.Remove} {
		if err := do(); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	p.Do(context.Background(), Download)
	until(t, p, "failed", phase(Failed))
}
