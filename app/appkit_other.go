//go:build !darwin

package app

import "github.com/godbus/dbus/v5"

// BecomeAccessory takes Pond out of a Mac's Dock; elsewhere there is nothing to do.
func BecomeAccessory() {}

// Activate brings Pond's windows before those of other apps on a Mac; elsewhere the window manager does.
func Activate() {}

// IconHidden reports whether nobody shows Pond's icon: on a Linux desktop a tray says that it is there by owning a name on the session's bus.
func IconHidden() bool {
	bus, err := dbus.ConnectSessionBus()
	if err != nil {
		return true // without a bus there is no icon
	}
	defer bus.Close()
	var there bool
	err = bus.BusObject().Call("org.freedesktop.DBus.NameHasOwner", 0, "org.kde.StatusNotifierWatcher").Store(&there)
	return err != nil || !there
}
