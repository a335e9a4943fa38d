package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pond/app/settings"
)

// TestLoginItem: off by default; on and off as asked; what the user turned off in the desktop's settings stays off and is never turned on again
// by itself.
func TestLoginItem(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "autostart")
	s, err := ThisSystem(settings.Paths{Autostart: dir})
	if err != nil {
		t.Fatal(err)
	}
	want := func(what string, want LoginStatus) {
		t.Helper()
		if got, err := s.LoginItem(); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", what, got, err, want)
		}
	}
	want("at first", LoginOff)
	if err := s.SetLoginItem(true); err != nil {
		t.Fatal(err)
	}
	want("turned on", LoginOn)
	entry := filepath.Join(dir, "pond.desktop")
	text, err := os.ReadFile(entry)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `Exec="`+program+`"`) || !strings.HasPrefix(string(text), "[Desktop Entry]\nType=Application\n") {
		t.Errorf("got %s", text)
	}
	// The desktop's own switch writes into the entry.
	if err := os.WriteFile(entry, append(text, "X-GNOME-Autostart-enabled=false\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	want("turned off by the desktop", LoginOff)
	p, _ := homeOf(t, func(h *Home, _ *settings.Settings) {
		h.System.LoginItem, h.System.SetLoginItem = s.LoginItem, s.SetLoginItem
	})
	if err := p.SaveSettings(p.Settings()); err != nil {
		t.Fatal(err)
	}
	if got, err := p.StartAtLogin(); err != nil || got != LoginOff {
		t.Errorf("after a launch and a save: got %v, %v, want it off still", got, err)
	}
	if err := s.SetLoginItem(true); err != nil {
		t.Fatal(err)
	}
	want("turned on again", LoginOn)
	for range 2 { // the second time there is nothing
		if err := s.SetLoginItem(false); err != nil {
			t.Fatal(err)
		}
		want("turned off", LoginOff)
	}
}

// TestPowerSupplies reads made-up power supplies in the form that the kernel tells them.
func TestPowerSupplies(t *testing.T) {
	for _, c := range []struct {
		name      string
		supplies  map[string]string // name -> files
		on, known bool
	}{
		{"a desktop", nil, false, false},
		{"plugged in", map[string]string{"AC": "type=Mains online=1", "BAT0": "type=Battery status=Charging"}, false, true},
		{"unplugged", map[string]string{"AC": "type=Mains online=0", "BAT0": "type=Battery status=Discharging"}, true, true},
		{"full and plugged in", map[string]string{"BAT0": "type=Battery status=Full"}, false, true},
		{"a mouse's battery", map[string]string{"hid": "type=Battery status=Discharging scope=Device"}, false, false},
		{"a charger over USB", map[string]string{"ucsi": "type=USB online=1", "BAT0": "type=Battery status=Discharging"}, false, true},
	} {
		dir := t.TempDir()
		for name, files := range c.supplies {
			for _, pair := range strings.Fields(files) {
				file, value, _ := strings.Cut(pair, "=")
				if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name, file), []byte(value+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		if on, known := onBattery(dir); on != c.on || known != c.known {
			t.Errorf("%s: got %v, %v, want %v, %v", c.name, on, known, c.on, c.known)
		}
	}
	if _, known := onBattery(filepath.Join(t.TempDir(), "none")); known {
		t.Error("no power supplies at all: got known")
	}
}

// TestListeners reads a table of sockets as /proc/net/tcp shows it.
func TestListeners(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2D0F 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 424242 1 0 100 0 0 10 0
   1: 0100007F:2D0F 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 777 1 0 20 4 30 10 -1
   2: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 888 1 0 100 0 0 10 0
`
	got := map[string]bool{}
	listeners([]byte(table), 11535, got)
	if len(got) != 1 || !got["socket:[424242]"] {
		t.Errorf("got %v, want the one that listens at 11535", got)
	}
	for _, address := range []string{"nowhere", "127.0.0.1:http", ""} {
		if h := portHolder(address); h != "" {
			t.Errorf("%q: got %q", address, h)
		}
	}
}
