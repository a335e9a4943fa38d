package app

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// PortTakenError says that another program listens on an address, and which port near it is free (0: none was found).
type PortTakenError struct {
	Address string
	Free    string // host:port, empty when none was found
}

func (e *PortTakenError) Error() string {
	if e.Free == "" {
		return fmt.Sprintf("%s is taken by another program", e.Address)
	}
	return fmt.Sprintf("%s is taken by another program; %s is free", e.Address, e.Free)
}

// portsTried bounds the look for a free port beside a taken one.
const portsTried = 32

// Listen opens the endpoint's address. It never moves to another port by itself: clients are set up with the address, so a
// taken port is an error that offers the next free one.
func Listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err == nil {
		return l, nil
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return nil, &PortTakenError{Address: address, Free: nextFree(address)}
}

func nextFree(address string) string {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return ""
	}
	for p := port + 1; p <= min(port+portsTried, 65535); p++ {
		candidate := net.JoinHostPort(host, strconv.Itoa(p))
		if l, err := net.Listen("tcp", candidate); err == nil {
			if l.Close() == nil {
				return candidate
			}
		}
	}
	return ""
}

// Loopback reports whether an address can be reached from this machine alone.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
