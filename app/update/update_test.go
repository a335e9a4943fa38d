package update

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fake is a release server of the test's own, and an installed app of version 1.0.0 that looks there.
type fake struct {
	t       *testing.T
	private ed25519.PrivateKey
	feed    []byte
	archive []byte
	asked   []string // paths with user agents
	server  *httptest.Server
	updater *Updater
	now     time.Time
}

const info = `<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0"><dict>
<key>CFBundleIdentifier</key><string>app.pond.Pond</string>
<key>CFBundleExecutable</key><string>pond</string>
<key>CFBundleShortVersionString</key><string>%s</string>
<key>LSUIElement</key><true/>
<key>PondUpdateFeed</key><string>%s</string>
<key>PondUpdateKey</key><string>%s</string>
</dict></plist>`

func newFake(t *testing.T) *fake { return newFakeIn(t, t.TempDir()) }

// newFakeIn has the app in a folder.
func newFakeIn(t *testing.T, dir string) *fake {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{t: t, private: private, now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.asked = append(f.asked, r.URL.Path+" "+r.UserAgent())
		switch r.URL.Path {
		case "/appcast.xml":
			w.Write(f.feed)
		case "/Pond.zip":
			w.Write(f.archive)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(f.server.Close)
	executable := filepath.Join(dir, "Applications", "Pond.app", "Contents", "MacOS", "pond")
	f.write(executable, "old program", 0o755)
	f.write(filepath.Join(dir, "Applications", "Pond.app", "Contents", "Info.plist"),
		fmt.Sprintf(info, "1.0.0", f.server.URL+"/appcast.xml", base64.StdEncoding.EncodeToString(public)), 0o644)
	link := filepath.Join(dir, "pond")
	if err := os.Symlink(executable, link); err != nil {
		t.Fatal(err)
	}
	if f.updater, err = Of(link, "1.0.0", "macOS 15.5", filepath.Join(dir, "state", "update-checked")); err != nil {
		t.Fatal(err)
	}
	f.updater.Verify = nil // Apple's tool knows that this app is none
	f.updater.Now = func() time.Time { return f.now }
	f.offer("1.1.0")
	return f
}

func (f *fake) write(path, text string, mode os.FileMode) {
	f.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
		f.t.Fatal(err)
	}
}

// pack makes an archive of an app.
func (f *fake) pack(files map[string]string) []byte {
	f.t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range files {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		h.SetMode(0o644)
		if strings.HasSuffix(name, "/pond") {
			h.SetMode(0o755)
		}
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		f.t.Fatal(err)
	}
	return b.Bytes()
}

func appFiles(version string) map[string]string {
	return map[string]string{"Pond.app/Contents/Info.plist": fmt.Sprintf(info, version, "", ""), "Pond.app/Contents/MacOS/pond": "new program"}
}

// offer puts a release on the server, signed.
func (f *fake) offer(version string) Release {
	f.t.Helper()
	f.archive = f.pack(appFiles(version))
	return f.announce(version)
}

// announce signs what the archive is now.
func (f *fake) announce(version string) Release {
	f.t.Helper()
	v, err := ParseVersion(version)
	if err != nil {
		f.t.Fatal(err)
	}
	r := Release{Version: v, Published: f.now, MinimumSystem: Version{15}, URL: f.server.URL + "/Pond.zip", LengthBytes: int64(len(f.archive)), Signature: ed25519.Sign(f.private, f.archive)}
	f.feed = WriteFeed("Pond", []Release{r}, f.private)
	return r
}

// key is the public key as a property list has it.
func (f *fake) key() string { return base64.StdEncoding.EncodeToString(f.updater.Key) }

// program is what stands in the app's place.
func (f *fake) program() string {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(f.updater.App, "Contents", "MacOS", "pond"))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(text)
}

// untouched: the old app stands, and nothing lies beside it.
func (f *fake) untouched(what string) {
	f.t.Helper()
	if err := f.updater.Install(); err != nil {
		f.t.Errorf("%s: %v", what, err)
	}
	if got := f.program(); got != "old program" {
		f.t.Errorf("%s: got %q in the app's place, want the old program", what, got)
	}
	if exists(f.updater.stage()) || f.updater.Ready() {
		f.t.Errorf("%s: something was left beside the app", what)
	}
}

// TestUpdate goes the whole way: looks, fetches, waits for the end, exchanges.
func TestUpdate(t *testing.T) {
	f := newFake(t)
	if !f.updater.Due() {
		t.Error("a Pond that never looked is not due")
	}
	r, err := f.updater.Check(context.Background())
	if err != nil || r == nil || r.Version != (Version{1, 1, 0}) {
		t.Fatalf("got %v, %v, want 1.1.0", r, err)
	}
	if f.updater.Due() {
		t.Error("it is due again at once")
	}
	f.now = f.now.Add(Interval)
	if !f.updater.Due() {
		t.Error("it is not due after a day")
	}
	if err := f.updater.Fetch(context.Background(), *r); err != nil {
		t.Fatal(err)
	}
	if got := f.program(); got != "old program" || !f.updater.Ready() {
		t.Errorf("before the end: got %q, ready %v, want the old program and ready", got, f.updater.Ready())
	}
	if err := f.updater.Install(); err != nil {
		t.Fatal(err)
	}
	if got := f.program(); got != "new program" || exists(f.updater.stage()) {
		t.Errorf("after the end: got %q, want the new program and nothing beside it", got)
	}
	st, err := os.Stat(filepath.Join(f.updater.App, "Contents", "MacOS", "pond"))
	if err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("got %v, %v, want a program", st.Mode(), err)
	}
	want := []string{"/appcast.xml Pond/1.0.0", "/Pond.zip Pond/1.0.0"}
	if fmt.Sprint(f.asked) != fmt.Sprint(want) {
		t.Errorf("the server saw %v, want %v", f.asked, want)
	}
}

// TestFeedIsRefused: what the feed says counts only when it is signed, newer, and for this system.
func TestFeedIsRefused(t *testing.T) {
	_, stranger, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(f *fake)
		want   string // empty: no error, and nothing is offered
	}{
		"another key":     {func(f *fake) { f.feed = WriteFeed("Pond", nil, stranger) }, "not signed"},
		"changed":         {func(f *fake) { f.feed = bytes.Replace(f.feed, []byte("1.1.0"), []byte("9.1.0"), 1) }, "not signed"},
		"no signature":    {func(f *fake) { f.feed = f.feed[:bytes.Index(f.feed, []byte("<!--"))] }, "no signature"},
		"something after": {func(f *fake) { f.feed = append(f.feed, "<item/>\n"...) }, "no signature"},
		"not there":       {func(f *fake) { f.updater.Feed += "x" }, "404"},
		"a log-in page":   {func(f *fake) { f.feed = []byte("<html>please log in</html>") }, "no signature"},
		"without TLS":     {func(f *fake) { f.updater.Feed = "http://example.org/appcast.xml" }, "want https"},
		"endless":         {func(f *fake) { f.feed = make([]byte, maxFeedBytes+5) }, "more than"},
		"downgrade":       {func(f *fake) { f.offer("0.9.0") }, ""},
		"the same":        {func(f *fake) { f.offer("1.0.0") }, ""},
		"a newer system": {func(f *fake) {
			r := f.offer("1.1.0")
			r.MinimumSystem = Version{27}
			f.feed = WriteFeed("Pond", []Release{r}, f.private)
		}, ""},
	} {
		f := newFake(t)
		c.change(f)
		r, err := f.updater.Check(context.Background())
		if r != nil || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v, want %q", name, r, err, c.want)
		}
		f.untouched(name)
	}
}

// TestArchiveIsRefused: whatever is wrong with a release, the old app stays and nothing lies beside it.
func TestArchiveIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *fake, r *Release)
		want   string
	}{
		"bad signature": {func(f *fake, r *Release) { f.archive[len(f.archive)/2] ^= 1 }, "not signed"},
		"truncated":     {func(f *fake, r *Release) { f.archive = f.archive[:len(f.archive)-7] }, "got"},
		"longer":        {func(f *fake, r *Release) { f.archive = append(f.archive, "more"...) }, "got"},
		"gone":          {func(f *fake, r *Release) { r.URL += "x" }, "404"},
		"downgrade":     {func(f *fake, r *Release) { *r = f.offer("0.9.0") }, "want one newer"},
		"an old app under a new number": {func(f *fake, r *Release) {
			f.archive = f.pack(appFiles("0.9.0"))
			*r = f.announce("1.1.0")
		}, "got app.pond.Pond 0.9.0, want app.pond.Pond 1.1.0"},
		"another app": {func(f *fake, r *Release) {
			files := appFiles("1.1.0")
			files["Pond.app/Contents/Info.plist"] = strings.Replace(files["Pond.app/Contents/Info.plist"], "app.pond.Pond", "org.other", 1)
			f.archive = f.pack(files)
			*r = f.announce("1.1.0")
		}, "got org.other"},
		"no program": {func(f *fake, r *Release) {
			files := appFiles("1.1.0")
			delete(files, "Pond.app/Contents/MacOS/pond")
			f.archive = f.pack(files)
			*r = f.announce("1.1.0")
		}, "pond"},
		"a way out": {func(f *fake, r *Release) {
			files := appFiles("1.1.0")
			files["Pond.app/../../evil"] = "x"
			f.archive = f.pack(files)
			*r = f.announce("1.1.0")
		}, "want one app"},
		"not a zip": {func(f *fake, r *Release) {
			f.archive = []byte("hello")
			*r = f.announce("1.1.0")
		}, "zip"},
		"no disk space": {func(f *fake, r *Release) {
			f.updater.Free = func(string) (int64, error) { return 10e6, nil }
		}, "got 10 MB free"},
		"no disk space to unpack": {func(f *fake, r *Release) {
			calls := 0
			f.updater.Free = func(string) (int64, error) {
				calls++
				return spareBytes + int64(map[bool]int{true: 1 << 20, false: 10}[calls == 1]), nil
			}
		}, "MB free"},
		"a disk that cannot exchange folders": {func(f *fake, r *Release) {
			f.updater.Exchange = func(a, b string) error { return unix.ENOTSUP }
		}, "cannot exchange two folders in one step"},
		"the system does not trust it": {func(f *fake, r *Release) {
			f.updater.Verify = func(string) error { return errors.New("code object is not signed at all") }
		}, "not signed at all"},
	} {
		f := newFake(t)
		r := f.announce("1.1.0")
		c.change(f, &r)
		err := f.updater.Fetch(context.Background(), r)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q in it", name, err, c.want)
		}
		f.untouched(name)
	}
}

// TestInterrupted: a download that the user's work ends leaves nothing, and the next start clears what a crash left.
func TestInterrupted(t *testing.T) {
	f := newFake(t)
	r := f.announce("1.1.0")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := f.updater.Fetch(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
	f.untouched("cancelled")
	f.write(filepath.Join(f.updater.stage(), "archive.zip"), "half", 0o600)
	if err := f.updater.Clean(); err != nil {
		t.Fatal(err)
	}
	f.untouched("cleaned")
}

// TestFolderCannotBeWritten: an app on a disk image, or in a folder of others, says so.
func TestFolderCannotBeWritten(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	f := newFake(t)
	dir := filepath.Dir(f.updater.App)
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o755) })
	if err := f.updater.Fetch(context.Background(), f.announce("1.1.0")); err == nil || !strings.Contains(err.Error(), "move Pond to the Applications folder") {
		t.Errorf("got %v", err)
	}
	f.untouched("read only")
}

// TestNoUpdates: a binary outside an app, and an app without a feed, are never updated.
func TestNoUpdates(t *testing.T) {
	dir := t.TempDir()
	f := &fake{t: t}
	for name, files := range map[string]map[string]string{
		"bare":    {"pond": "x"},
		"no feed": {"Pond.app/Contents/MacOS/pond": "x", "Pond.app/Contents/Info.plist": `<plist><dict><key>CFBundleIdentifier</key><string>app.pond.Pond</string></dict></plist>`},
	} {
		executable := ""
		for file, text := range files {
			path := filepath.Join(dir, name, file)
			f.write(path, text, 0o755)
			if strings.HasSuffix(file, "pond") {
				executable = path
			}
		}
		if _, err := Of(executable, "1.0.0", "macOS 15.0", ""); !errors.Is(err, ErrNone) {
			t.Errorf("%s: got %v, want %v", name, err, ErrNone)
		}
	}
}

// exists reports whether something stands at a path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func TestVersions(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"0.1.0", "0.1.0", 0}, {"0.10.0", "0.9.9", 1}, {"1", "0.9", 1}, {"15.5", "15.5.0", 0}, {"0.1.1", "0.2.0", -1}} {
		a, errA := ParseVersion(c.a)
		b, errB := ParseVersion(c.b)
		if got := a.Compare(b); errA != nil || errB != nil || got*c.want < 0 || (got == 0) != (c.want == 0) {
			t.Errorf("%s and %s: got %d, %v, %v, want %d", c.a, c.b, got, errA, errB, c.want)
		}
	}
	for _, bad := range []string{"", "1.0-beta", "1.2.3.4", "-1", "1..2", "99999"} {
		if v, err := ParseVersion(bad); err == nil {
			t.Errorf("%q: got %v, want an error", bad, v)
		}
	}
}
