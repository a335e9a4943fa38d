//go:build !darwin

package mtl

import "errors"

// Load loads the one library at path, which plays the Objective-C runtime, Foundation and Metal.
func Load(path string) (*Runtime, error) {
	if path == "" {
		return nil, errors.New("metal: got no library, want the path of the stand-in: this machine has no Metal")
	}
	return load([]string{path})
}
