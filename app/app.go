// Package app is the product without a toolkit: finding models, what this machine can run, opening the engine and the
// endpoint, and the State and menu that any user interface draws from. It builds without cgo and serves `pond serve` as
// well as the window.
//
// It draws nothing (package app/ui does) and computes nothing (package inference does). Start with State, then Pond.
package app
