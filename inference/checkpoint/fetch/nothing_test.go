package fetch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pond/inference/checkpoint/badhub"
	"pond/inference/checkpoint/disk"
)

// TestNoRoomBeforeTheFirstByte: a pull without a network, ended by Ctrl-C, left the first file's 5.3 GB allocated with nothing in it.
func TestNoRoomBeforeTheFirstByte(t *testing.T) {
	r := newRig(t, 8<<20, 4<<20)
	held := int64(0)
	ctx, cancel := context.WithCancel(t.Context())
	r.hub.Misbehave(func(a badhub.Ask) badhub.Act {
		if a.N > 8 {
			for _, name := range r.names {
				if info, err := os.Stat(filepath.Join(r.job.Dir, name+PartSuffix)); err == nil {
					held = max(held, disk.Allocated(info))
				}
			}
			cancel()
		}
		return badhub.Act{Kind: badhub.Status, Status: 503}
	})
	r.job.Connections, r.job.Backoff = 1, 10*time.Millisecond
	if err := r.run(t, ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want a pause", err)
	}
	if held != 0 {
		t.Errorf("got %d bytes of the disk taken before anything came, want none", held)
	}
	if left, err := os.ReadDir(r.job.Dir); err != nil || len(left) != 0 {
		t.Errorf("got %v, %v left over; want nothing", left, err)
	}
}

// TestRoomIsTakenWithTheFirstByte: from then on a full disk cannot end a download half-way.
func TestRoomIsTakenWithTheFirstByte(t *testing.T) {
	r := newRig(t, 8<<20)
	r.job.RateBytes = 4 << 20
	ctx, cancel := context.WithCancel(t.Context())
	report := r.job.Report
	r.job.Report = func(e Event) {
		if e.Progress.Done > 0 {
			cancel()
		}
		report(e)
	}
	if err := r.run(t, ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want a pause", err)
	}
	info, err := os.Stat(filepath.Join(r.job.Dir, r.names[0]+PartSuffix))
	if err != nil || disk.Allocated(info) < 8<<20 || PartialBytes(r.job.Dir, r.job.Files[0]) == 0 {
		t.Errorf("got %v, %v; want a part with all its room, and bytes to go on from", info, err)
	}
}
