// Package update keeps a Pond.app current: it reads a signed feed, downloads a newer release, verifies it, and puts it in the app's place when Pond
// ends. An app without a feed in its property list is never updated, and a binary outside an app neither: what installed it looks after that.
//
// It decides nothing about when: package app asks it while nobody works, at most daily, unless the user switched it off. Start with Updater.
package update

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Rules:
//
//   - Nothing is sent but the request itself, with Pond's version as its user agent.
//   - The feed and the archive are signed with one key, whose public half is in the running app's property list, under that app's own signature.
//   - Only a newer version counts, whatever the feed says.
//   - Until the last step the app is not touched, and the last step is one exchange of two folders: after any failure the old app stands there whole.

const (
	// Interval is the time between two looks at the feed.
	Interval = 24 * time.Hour
	// maxArchiveBytes and maxAppBytes bound a release, packed and unpacked.
	maxArchiveBytes = 200 << 20
	maxAppBytes     = 400 << 20
	// spareBytes is the room that is left on the disk.
	spareBytes = 256 << 20
	// stageName is the folder beside the app that a release is made ready in: the exchange needs one file system.
	stageName = ".Pond-update"
)

// Updater updates one app. It is used from one goroutine at a time.
type Updater struct {
	Feed    string // URL
	Key     ed25519.PublicKey
	App     string  // path of the running app
	ID      string  // the bundle's
	Version Version // of the running app
	System  Version // macOS as it runs
	Record  string  // file that keeps when the feed was last asked for

	Client   *http.Client
	Free     func(dir string) (int64, error) // bytes free on a folder's disk
	Exchange func(a, b string) error         // two folders of one disk, in one step
	Now      func() time.Time
	Verify   func(app string) error // the system's own look at a new app; nil: it has none

	ready bool // a new app stands in the stage
}

// ErrNone says why this Pond is never updated by itself.
var ErrNone = errors.New("this build does not update itself")

// Of reads what a running executable's app says of its updates. The error is ErrNone where there is no app, or the app names no feed.
func Of(executable, version, system, record string) (*Updater, error) {
	path, err := filepath.EvalSymlinks(executable) // the command line's link points into the app
	if err != nil {
		return nil, fmt.Errorf("update: %w", err)
	}
	contents := filepath.Dir(filepath.Dir(path))
	app := filepath.Dir(contents)
	if filepath.Base(contents) != "Contents" || filepath.Ext(app) != ".app" {
		return nil, ErrNone
	}
	info, err := readInfo(app)
	if err != nil {
		return nil, fmt.Errorf("update: %w", err)
	}
	if info["PondUpdateFeed"] == "" {
		return nil, ErrNone
	}
	u := &Updater{Feed: info["PondUpdateFeed"], App: app, ID: info["CFBundleIdentifier"], Record: record, Free: freeBytes, Exchange: exchange, Now: time.Now, Verify: verifyCode}
	u.Client = &http.Client{Timeout: 30 * time.Minute, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > 5 {
			return errors.New("got more than five redirects")
		}
		return safe(r.URL)
	}}
	if u.Key, err = ParseKey(info["PondUpdateKey"]); err != nil {
		return nil, err
	}
	if u.Version, err = ParseVersion(version); err != nil {
		return nil, fmt.Errorf("update: this app: %w", err)
	}
	if u.System, err = ParseVersion(strings.TrimPrefix(system, "macOS ")); err != nil {
		return nil, fmt.Errorf("update: this system: %w", err)
	}
	return u, nil
}

// ParseKey reads a public key in base64.
func ParseKey(text string) (ed25519.PublicKey, error) {
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("update: key: got %q, want %d bytes in base64", text, ed25519.PublicKeySize)
	}
	return key, nil
}

// Due reports whether a day has passed since the feed was last asked for. A time in the future, of a clock that was wrong, does not count.
func (u *Updater) Due() bool {
	text, err := os.ReadFile(u.Record)
	if err != nil {
		return true
	}
	last, err := time.Parse(time.RFC3339, strings.TrimSpace(string(text)))
	since := u.Now().Sub(last)
	return err != nil || since >= Interval || since < 0
}

// Check asks for the feed, and notes that it did. It returns the newest release that is newer than this one and runs on this system; nil: none.
func (u *Updater) Check(ctx context.Context) (*Release, error) {
	if err := os.MkdirAll(filepath.Dir(u.Record), 0o755); err != nil {
		return nil, fmt.Errorf("update: %w", err)
	}
	if err := os.WriteFile(u.Record, []byte(u.Now().UTC().Format(time.RFC3339)+"\n"), 0o644); err != nil {
		return nil, fmt.Errorf("update: %w", err)
	}
	body, err := u.get(ctx, u.Feed)
	if err != nil {
		return nil, fmt.Errorf("update: feed: %w", err)
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, maxFeedBytes+1))
	if err != nil {
		return nil, fmt.Errorf("update: feed: %w", err)
	}
	if len(text) > maxFeedBytes {
		return nil, fmt.Errorf("update: feed: got more than %d bytes", maxFeedBytes)
	}
	releases, err := ReadFeed(text, u.Key)
	if err != nil {
		return nil, fmt.Errorf("update: %w", err)
	}
	var best *Release
	for _, r := range releases {
		if r.Version.Compare(u.Version) > 0 && r.MinimumSystem.Compare(u.System) <= 0 && (best == nil || r.Version.Compare(best.Version) > 0) {
			best = &r
		}
	}
	return best, nil
}

// get asks for something.
func (u *Updater) get(ctx context.Context, address string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	if err := safe(r.URL); err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", "Pond/"+u.Version.String())
	answer, err := u.Client.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, fmt.Errorf("%s: got %s", r.URL.Host, answer.Status)
	}
	return answer.Body, nil
}

// safe allows https, and this machine: nobody learns what is asked for. What is received is verified anyway.
func safe(u *url.URL) error {
	if ip := net.ParseIP(u.Hostname()); u.Scheme == "https" || u.Scheme == "http" && ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("%s: got %s, want https", u.Host, u.Scheme)
}

// Ready reports whether a new app waits for Pond's end.
func (u *Updater) Ready() bool { return u.ready }

// Install puts the new app in the place of the old one, if one is ready. It is Pond's last act.
func (u *Updater) Install() error {
	if !u.ready {
		return nil
	}
	u.ready = false
	stage := u.stage()
	if err := u.Exchange(filepath.Join(stage, filepath.Base(u.App)), u.App); err != nil {
		return errors.Join(fmt.Errorf("update: %w", err), os.RemoveAll(stage))
	}
	if err := os.RemoveAll(stage); err != nil { // the old app; the next start removes what is left
		return fmt.Errorf("update: the old app: %w", err)
	}
	return nil
}

// Clean removes what an update left behind that did not come to its end.
func (u *Updater) Clean() error {
	if u.ready {
		return nil
	}
	if err := os.RemoveAll(u.stage()); err != nil {
		return fmt.Errorf("update: %w", err)
	}
	return nil
}

func (u *Updater) stage() string { return filepath.Join(filepath.Dir(u.App), stageName) }

// readInfo reads the texts of an app's property list.
func readInfo(app string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(app, "Contents", "Info.plist"))
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	d := xml.NewDecoder(bytes.NewReader(text))
	key := ""
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return values, nil
		}
		if err != nil {
			return nil, fmt.Errorf("Info.plist: %w", err)
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "key" && start.Name.Local != "string" {
			continue
		}
		var value string
		if err := d.DecodeElement(&value, &start); err != nil {
			return nil, fmt.Errorf("Info.plist: %w", err)
		}
		if start.Name.Local == "key" {
			key = value
		} else if key != "" {
			values[key], key = value, ""
		}
	}
}
