package app

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// listening is the state of a socket that listens, in /proc/net/tcp: proc_net_tcp(5).
const listening = "0A"

// portHolder names the program that listens at an address of this machine; empty where that cannot be known, as for another user's.
func portHolder(address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return ""
	}
	inodes := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		listeners(text, n, inodes)
	}
	if len(inodes) == 0 {
		return ""
	}
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return ""
	}
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil || !inodes[target] {
			continue // gone, or another user's
		}
		dir := filepath.Dir(filepath.Dir(link))
		name, err := os.ReadFile(filepath.Join(dir, "comm"))
		if err != nil {
			continue
		}
		return fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(name)), filepath.Base(dir))
	}
	return ""
}

// listeners adds the sockets of a table that listen at a port, as links in /proc name them.
func listeners(table []byte, port int, into map[string]bool) {
	want := fmt.Sprintf(":%04X", port)
	for s := bufio.NewScanner(bytes.NewReader(table)); s.Scan(); {
		f := strings.Fields(s.Text()) // sl local remote state queues timer retransmits uid timeout inode
		if len(f) > 9 && f[3] == listening && strings.HasSuffix(f[1], want) {
			into["socket:["+f[9]+"]"] = true
		}
	}
}
