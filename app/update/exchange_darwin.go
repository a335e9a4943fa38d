package update

import (
	"fmt"
	"os/exec"

	"golang.org/x/sys/unix"
)

// exchange is renamex_np(2) with RENAME_SWAP.
func exchange(a, b string) error { return unix.RenamexNp(a, b, unix.RENAME_SWAP) }

// verifyCode has macOS check an app's signature and seal.
func verifyCode(app string) error {
	if said, err := exec.Command("/usr/bin/codesign", "--verify", "--deep", "--strict", app).CombinedOutput(); err != nil {
		return fmt.Errorf("codesign: %w: %s", err, said)
	}
	return nil
}
