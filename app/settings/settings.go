// Package settings is what a user chooses and Pond remembers: a few typed values in one JSON file, checked on the way in and
// out and saved whole or not at all, and the places where Pond keeps its files.
//
// It knows no engine and no window. Start with Settings; fields.go says of each value what a person should know of it, and is what a
// settings window draws.
package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

// Rules of the file:
//
//   - A value that is the default is not written: a later version may have a better default.
//   - A key that this version does not know is written back as it came.
//   - A file that cannot be understood is an error that names it, and is left alone.

// DefaultPort is where the endpoint listens unless the user says otherwise, on loopback alone; DefaultAddress is both.
const (
	DefaultPort    = 11535
	DefaultAddress = "127.0.0.1:11535"
)

// Battery is what becomes of the work when the machine runs on its battery.
type Battery string

// The choices of Battery.
const (
	BatteryGoOn  Battery = "go-on"
	BatteryPause Battery = "pause" // new work waits until there is power
	BatteryStop  Battery = "stop"  // the model is let go
)

// Settings are the user's choices. Default has a value for each; copy it, or use Field.With, rather than make one of nothing.
type Settings struct {
	Model         string // model id or folder; empty: the best one that this machine can run
	ModelsDir     string // folder of installed models, absolute; empty: Pond's own
	ContextTokens int    // longest conversation; 0: what the memory allows
	IdleMinutes   int    // the model is let go after so long without work; 0: never
	DiskGB        int    // of kept conversations on the disk, in 10^9 bytes; 0: none are kept there

	Address string // host:port, instead of Port and LAN; for those who edit the file
	Port    int
	Key     string   // API key; empty: none is asked for
	LAN     bool     // other machines may connect; needs Key
	Hosts   []string // further names by which other machines call this one
	Origins []string // web pages beyond this machine that may call it, as scheme://host[:port]

	StartServing   bool // load the model and serve when Pond is opened
	OnBattery      Battery
	Quiet          bool // let other programs go first
	Notifications  bool
	LookForUpdates bool // of Pond itself, daily

	Temperature   *float64 // nil: the model card's, by thinking mode; likewise the next three
	TopP          *float64
	TopK          *int
	MaxTokens     int // longest answer; 0: what the context leaves
	HideThinking  bool
	NoThinking    bool // the chat window answers at once
	SystemPrompt  string
	CmdEnterSends bool // Return breaks the line, and Command-Return (Control-Return) sends

	unknown map[string]json.RawMessage // keys of a newer version, written back as they came
}

// Default is what holds until the user chooses.
func Default() Settings {
	return Settings{Port: DefaultPort, DiskGB: 8, OnBattery: BatteryGoOn, Notifications: true, LookForUpdates: true}
}

// ListenAddress is where the endpoint listens.
func (s Settings) ListenAddress() string {
	switch {
	case s.Address != "":
		return s.Address
	case s.LAN:
		return net.JoinHostPort("0.0.0.0", strconv.Itoa(s.Port))
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port))
}

// Validate checks every value; the error names the key.
func (s Settings) Validate() error {
	for _, f := range Fields() {
		if err := f.check(s); err != nil {
			return fmt.Errorf("%s: %w", f.Key, err)
		}
	}
	if s.LAN && s.Key == "" {
		return errors.New("lan: got no api_key, want one: without it anybody on the network could use the model")
	}
	return nil
}

// Load reads a settings file. A file that does not exist is a user who chose nothing.
func Load(file string) (Settings, error) {
	s := Default()
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return Default(), fmt.Errorf("settings: %w", err)
	}
	keys := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &keys); err != nil {
		return Default(), fmt.Errorf("settings: %s: %w", file, err)
	}
	for _, f := range Fields() {
		raw, ok := keys[f.Key]
		if !ok {
			continue
		}
		delete(keys, f.Key)
		if json.Unmarshal(raw, f.at(&s)) != nil {
			return Default(), fmt.Errorf("settings: %s: %s: got %s, want %s", file, f.Key, raw, f.wants())
		}
	}
	s.unknown = keys
	if err := s.Validate(); err != nil {
		return Default(), fmt.Errorf("settings: %s: %w", file, err)
	}
	return s, nil
}

// Save writes the settings beside their place and renames: after a crash the file holds the old choices or the new ones. The file is the
// user's alone to read, because it may hold a key.
func (s Settings) Save(file string) error {
	if err := s.Validate(); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	keys := maps.Clone(s.unknown)
	if keys == nil {
		keys = map[string]json.RawMessage{}
	}
	standard := Default()
	for _, f := range Fields() {
		raw, err := json.Marshal(f.at(&s))
		if err != nil {
			return fmt.Errorf("settings: %s: %w", f.Key, err)
		}
		usual, err := json.Marshal(f.at(&standard))
		if err != nil {
			return fmt.Errorf("settings: %s: %w", f.Key, err)
		}
		if !bytes.Equal(raw, usual) {
			keys[f.Key] = raw
		}
	}
	text, err := json.MarshalIndent(keys, "", "  ")
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	if err := replace(file, append(text, '\n')); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	return nil
}

// replace puts text in file's place in one step. os.CreateTemp makes files that are their owner's alone.
func replace(file string, text []byte) (err error) {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, filepath.Base(file)+".*.part")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	_, werr := tmp.Write(text)
	if err := errors.Join(werr, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), file)
}
