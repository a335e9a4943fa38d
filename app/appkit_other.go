//go:build !darwin

package app

// BecomeAccessory takes Pond out of a Mac's Dock; elsewhere there is nothing to do.
func BecomeAccessory() {}

// Activate brings Pond's windows before those of other apps on a Mac; elsewhere the window manager does.
func Activate() {}
