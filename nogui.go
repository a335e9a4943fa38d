//go:build !cgo && !ci

package main

import "context"

// hasWindow says that this binary has no window: it was built without cgo.
const hasWindow = false

// runDefault is pond without a command in a build that has no window: it serves.
func runDefault(ctx context.Context, s streams) error {
	return serveHeadless(ctx, s, "this build has no window")
}
