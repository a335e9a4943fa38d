//go:build !linux

package app

// portHolder names the program that listens at an address. macOS tells it only to programs that walk all processes' files with undocumented
// structures, so there it stays unknown, and the message names the next free port alone.
func portHolder(string) string { return "" }
