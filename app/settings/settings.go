// Package settings is what a user chooses and Pond remembers: a few typed values in one JSON file, checked on the way in and
// out and saved whole or not at all, and the places where Pond keeps its files.
//
// It knows no engine and no window. Start with Settings.
package settings

import (
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

// DefaultAddress is where the endpoint listens unless the user says otherwise: loopback only.
const DefaultAddress = "127.0.0.1:11535"

// Settings are the user's choices. The zero value of a field means that the user chose nothing.
type Settings struct {
	Address string // host:port of the endpoint; empty means DefaultAddress
	Model   string // model id or folder; empty means the built-in demo model

	unknown map[string]json.RawMessage // keys of a newer version, written back as they came
}

const (
	keyAddress = "address"
	keyModel   = "model"
)

// ListenAddress is Address, or the default.
func (s Settings) ListenAddress() string {
	if s.Address == "" {
		return DefaultAddress
	}
	return s.Address
}

// Validate checks every value; the error names the key.
func (s Settings) Validate() error {
	if s.Address == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		return fmt.Errorf("%s: got %q, want host:port such as %s", keyAddress, s.Address, DefaultAddress)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%s: got port %q, want 0 to 65535", keyAddress, port)
	}
	return nil
}

// Load reads a settings file. A file that does not exist is a user who chose nothing; a file that cannot be understood is an
// error that names it, and is left alone.
func Load(file string) (Settings, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Settings{}, nil
	}
	if err != nil {
		return Settings{}, fmt.Errorf("settings: %w", err)
	}
	keys := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &keys); err != nil {
		return Settings{}, fmt.Errorf("settings: %s: %w", file, err)
	}
	var s Settings
	for key, field := range map[string]*string{keyAddress: &s.Address, keyModel: &s.Model} {
		if raw, ok := keys[key]; ok {
			if err := json.Unmarshal(raw, field); err != nil {
				return Settings{}, fmt.Errorf("settings: %s: %s: got %s, want a string", file, key, raw)
			}
			delete(keys, key)
		}
	}
	s.unknown = keys
	if err := s.Validate(); err != nil {
		return Settings{}, fmt.Errorf("settings: %s: %w", file, err)
	}
	return s, nil
}

// Save writes the settings beside their place and renames: after a crash the file holds the old choices or the new ones.
func (s Settings) Save(file string) error {
	if err := s.Validate(); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	keys := maps.Clone(s.unknown)
	if keys == nil {
		keys = map[string]json.RawMessage{}
	}
	for key, value := range map[string]string{keyAddress: s.Address, keyModel: s.Model} {
		if value != "" {
			raw, err := json.Marshal(value)
			if err != nil {
				return fmt.Errorf("settings: %s: %w", key, err)
			}
			keys[key] = raw
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

// replace puts text in file's place in one step.
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
