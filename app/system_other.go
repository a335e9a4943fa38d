//go:build !darwin

package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"pond/app/settings"
)

// ThisSystem is what a Linux desktop does around Pond: systemd's login manager over D-Bus, the XDG autostart folder, the power supplies that the
// kernel knows. What is missing here answers with errors; nothing is pretended.
func ThisSystem(paths settings.Paths) (System, error) {
	entry := autostart{filepath.Join(paths.Autostart, "pond.desktop")}
	return System{
		KeepAwake: keepAwake, OnBattery: func() (on, known bool) { return onBattery("/sys/class/power_supply") }, WatchSleep: watchSleep,
		LoginItem: entry.status, SetLoginItem: entry.set,
		Reveal: func(path string) error { return exec.Command("xdg-open", filepath.Dir(path)).Run() },
	}, nil
}

// The login manager: https://www.freedesktop.org/software/systemd/man/latest/org.freedesktop.login1.html
const (
	loginService = "org.freedesktop.login1"
	loginPath    = dbus.ObjectPath("/org/freedesktop/login1")
	loginManager = loginService + ".Manager"
)

// keepAwake takes an inhibitor lock against falling asleep when idle; closing its file gives it back. Whoever asks for sleep gets it.
func keepAwake(reason string) (func(), error) {
	bus, err := dbus.ConnectSystemBus()
	if err != nil {
		return nil, fmt.Errorf("power: %w", err)
	}
	var fd dbus.UnixFD
	err = bus.Object(loginService, loginPath).Call(loginManager+".Inhibit", 0, "idle", "Pond", reason, "block").Store(&fd)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("power: %w", err), bus.Close())
	}
	return func() {
		unix.Close(int(fd))
		bus.Close()
	}, nil
}

// watchSleep tells when the machine is about to sleep and when it woke, until ctx is done.
func watchSleep(ctx context.Context, told func(awake bool)) error {
	bus, err := dbus.ConnectSystemBus(dbus.WithContext(ctx)) // which closes it
	if err != nil {
		return fmt.Errorf("sleep and wake: %w", err)
	}
	if err := bus.AddMatchSignal(dbus.WithMatchInterface(loginManager), dbus.WithMatchMember("PrepareForSleep")); err != nil {
		return errors.Join(fmt.Errorf("sleep and wake: %w", err), bus.Close())
	}
	signals := make(chan *dbus.Signal, 4)
	bus.Signal(signals)
	go func() {
		for s := range signals { // closed with the bus
			if len(s.Body) == 1 {
				if begins, ok := s.Body[0].(bool); ok {
					told(!begins)
				}
			}
		}
	}()
	return nil
}

// onBattery reads the power supplies: a machine with a battery that is connected to nothing.
func onBattery(dir string) (on, known bool) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, false
	}
	read := func(name, file string) string {
		text, err := os.ReadFile(filepath.Join(dir, name, file))
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(text))
	}
	battery := false
	for _, e := range entries {
		switch read(e.Name(), "type") {
		case "Mains", "USB":
			if read(e.Name(), "online") == "1" {
				return false, true
			}
		case "Battery":
			if read(e.Name(), "scope") != "Device" { // not a mouse's
				battery = battery || read(e.Name(), "status") == "Discharging"
				known = true
			}
		}
	}
	return battery, known
}

// autostart is the entry that a desktop opens at login: https://specifications.freedesktop.org/autostart-spec/latest/
type autostart struct{ file string }

func (a autostart) status() (LoginStatus, error) {
	text, err := os.ReadFile(a.file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return LoginOff, nil
	case err != nil:
		return LoginOff, err
	}
	for line := range strings.Lines(string(text)) {
		switch strings.TrimSpace(line) {
		case "Hidden=true", "X-GNOME-Autostart-enabled=false": // turned off in the desktop's own settings
			return LoginOff, nil
		}
	}
	return LoginOn, nil
}

func (a autostart) set(on bool) error {
	if !on {
		if err := os.Remove(a.file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("autostart: %w", err)
		}
		return nil
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("autostart: %w", err)
	}
	// Of an argument in quotes these characters are escaped, and a percent sign is doubled: desktop entry specification, the Exec key.
	program = strings.NewReplacer(`\`, `\\\\`, `"`, `\\"`, "`", "\\\\`", "$", `\\$`, "%", "%%").Replace(program)
	entry := "[Desktop Entry]\nType=Application\nName=Pond\nComment=One language model on your own machine\nExec=\"" + program + "\"\nTerminal=false\n"
	if err := os.MkdirAll(filepath.Dir(a.file), 0o755); err != nil {
		return fmt.Errorf("autostart: %w", err)
	}
	if err := os.WriteFile(a.file, []byte(entry), 0o644); err != nil {
		return fmt.Errorf("autostart: %w", err)
	}
	return nil
}
