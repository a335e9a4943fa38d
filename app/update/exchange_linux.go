package update

import "golang.org/x/sys/unix"

// exchange is renameat2(2) with RENAME_EXCHANGE.
func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// verifyCode has nobody to ask here.
func verifyCode(string) error { return nil }
