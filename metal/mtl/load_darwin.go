package mtl

import "errors"

// Load loads Apple's frameworks; path must be empty.
func Load(path string) (*Runtime, error) {
	if path != "" {
		return nil, errors.New("metal: got the library " + path + ", want none: a Mac has its own")
	}
	return load([]string{
		"/usr/lib/libobjc.A.dylib",
		"/usr/lib/libSystem.B.dylib",
		"/System/Library/Frameworks/Foundation.framework/Foundation",
		"/System/Library/Frameworks/Metal.framework/Metal",
	})
}
