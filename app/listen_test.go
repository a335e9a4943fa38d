package app

import (
	"errors"
	"testing"
)

func TestListenOffersTheNextFreePort(t *testing.T) {
	first, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	_, err = Listen(first.Addr().String())
	var taken *PortTakenError
	if !errors.As(err, &taken) || taken.Free == "" {
		t.Fatalf("got %v, want a PortTakenError with a free port", err)
	}
	second, err := Listen(taken.Free)
	if err != nil {
		t.Fatalf("the offered port: %v", err)
	}
	second.Close()
}

func TestLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:1": true, "localhost:1": true, "[::1]:1": true, "127.3.2.1:1": true,
		"0.0.0.0:1": false, ":1": false, "192.0.2.7:1": false, "pond.example:1": false, "nonsense": false,
	} {
		if got := Loopback(address); got != want {
			t.Errorf("%s: got %v", address, got)
		}
	}
}
