package mtl

import "unsafe"

// Alignment is how far into m the first address is that is a multiple of n.
func Alignment(m []byte, n int) int {
	return int(-uintptr(unsafe.Pointer(unsafe.SliceData(m))) & uintptr(n-1))
}
