package mtl

import "errors"

// Load loads Apple's frameworks; path must be empty. Without Core Graphics the system has no default device for a program.
// https://developer.apple.com/documentation/metal/mtlcreatesystemdefaultdevice()
func Load(path string) (*Runtime, error) {
	if path != "" {
		return nil, errors.New("metal: got the library " + path + ", want none: a Mac has its own")
	}
	return load([]string{
		"/usr/lib/libobjc.A.dylib",
		"/usr/lib/libSystem.B.dylib",
		"/System/Library/Frameworks/Foundation.framework/Foundation",
		"/System/Library/Frameworks/CoreGraphics.framework/CoreGraphics",
		"/System/Library/Frameworks/Metal.framework/Metal",
	})
}
