package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pond/inference/checkpoint/badhub"
	"pond/inference/checkpoint/manifest"
)

// TestFaults plays one misbehaviour after the other on the first source alone, and checks what the user is told and that the right bytes come.
func TestFaults(t *testing.T) {
	first := func(n int64, act badhub.Act) func(badhub.Ask) badhub.Act {
		var seen atomic.Int64
		return func(a badhub.Ask) badhub.Act {
			if a.File != "file-0.bin" || a.Redirect != (act.Kind == badhub.BadRedirect) || seen.Add(1) > n {
				return badhub.Act{}
			}
			return act
		}
	}
	source := func(repo string, act badhub.Act) func(badhub.Ask) badhub.Act {
		return func(a badhub.Ask) badhub.Act {
			if a.Repo != repo || a.Redirect {
				return badhub.Act{}
			}
			return act
		}
	}
	for _, c := range []struct {
		name string
		act  func(badhub.Ask) badhub.Act
		told string // in the troubles; empty: none need be
	}{
		{"reset", first(5, badhub.Act{Kind: badhub.Reset, After: 1000}), ""},
		{"truncated", first(5, badhub.Act{Kind: badhub.Cut, After: 30_000}), "unexpected EOF"},
		{"ends early", first(5, badhub.Act{Kind: badhub.Short, After: 1}), "ended early"},
		{"stall", first(2, badhub.Act{Kind: badhub.Stall, After: 5000}), "nothing came for too long"},
		{"stall without a head", first(2, badhub.Act{Kind: badhub.Stall}), "nothing came for too long"},
		{"trickle", first(1, badhub.Act{Kind: badhub.Trickle, Wait: time.Millisecond}), "nothing came for too long"},
		{"200 for a range", source(repoA, badhub.Act{Kind: badhub.Whole}), "got the whole file, want bytes"},
		{"wrong range", source(repoA, badhub.Act{Kind: badhub.WrongRange}), "got bytes "},
		{"no content range", source(repoA, badhub.Act{Kind: badhub.NoRange}), `content range: got ""`},
		{"multipart", source(repoA, badhub.Act{Kind: badhub.Multipart}), "got multipart/byteranges"},
		{"other size", source(repoA, badhub.Act{Kind: badhub.OtherSize}), "it has another file"},
		{"lying length", first(3, badhub.Act{Kind: badhub.LongLength, After: 100}), ""},
		{"gzip", source(repoA, badhub.Act{Kind: badhub.Gzip}), "content encoding"},
		{"captive portal", first(4, badhub.Act{Kind: badhub.Login}), "ask for a login"},
		{"416", source(repoA, badhub.Act{Kind: badhub.Status, Status: 416}), "416"},
		{"404", source(repoA, badhub.Act{Kind: badhub.Status, Status: 404}), "404"},
		{"401", source(repoA, badhub.Act{Kind: badhub.Status, Status: 401}), "HF_TOKEN"},
		{"500", first(6, badhub.Act{Kind: badhub.Status, Status: 500}), "500"},
		{"503", first(3, badhub.Act{Kind: badhub.Status, Status: 503, RetryAfter: "0"}), "503"},
		{"bad redirect", first(3, badhub.Act{Kind: badhub.BadRedirect}), "redirect"},
		{"first source corrupts", source(repoA, badhub.Act{Kind: badhub.Corrupt}), ""},
		{"first source changes", source(repoA, badhub.Act{Kind: badhub.Twice}), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, 1<<20+12345, 777)
			r.hub.Misbehave(c.act)
			r.job.Stall = 300 * time.Millisecond
			if err := r.run(t, t.Context()); err != nil {
				t.Fatal(err)
			}
			if told := r.troubles(Trouble); !strings.Contains(told, c.told) {
				t.Errorf("got told\n%swant %q", told, c.told)
			}
		})
	}
}

// TestNobodyDelivers: every source misbehaves for ever; the job ends with an error that says what each did.
func TestNobodyDelivers(t *testing.T) {
	for _, c := range []struct {
		act  badhub.Act
		want string
	}{
		{badhub.Act{Kind: badhub.Reset}, "no source delivers it"},
		{badhub.Act{Kind: badhub.Stall}, "nothing came"},
		{badhub.Act{Kind: badhub.Login}, "login"},
		{badhub.Act{Kind: badhub.Status, Status: 503}, "503"},
		{badhub.Act{Kind: badhub.Status, Status: 429, RetryAfter: "3600"}, "429"},
		{badhub.Act{Kind: badhub.Status, Status: 403}, "403"},
		{badhub.Act{Kind: badhub.WrongRange}, "want"},
		{badhub.Act{Kind: badhub.OtherSize}, "another file"},
		{badhub.Act{Kind: badhub.Corrupt}, "SHA-256"},
	} {
		t.Run(fmt.Sprint(c.act.Kind, c.act.Status), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, 1<<20+5, 100)
			r.job.Stall, r.job.Patience = 300*time.Millisecond, 600*time.Millisecond
			r.hub.Misbehave(func(a badhub.Ask) badhub.Act {
				if a.Redirect && c.act.Kind != badhub.Status {
					return badhub.Act{}
				}
				return c.act
			})
			err := r.run(t, t.Context())
			var gone *SourceError
			var wrong *DigestError
			if !errors.As(err, &gone) && !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
			if wrong != nil && PartialBytes(r.job.Dir, r.job.Files[0]) > 0 {
				t.Error("bytes of a wrong file were kept")
			}
			if _, err := os.Stat(filepath.Join(r.job.Dir, r.names[0]+PartSuffix)); wrong != nil && err == nil && wrong.File == r.names[0] {
				t.Error("the part of a wrong file was kept")
			}
		})
	}
}

// TestFailoverAtTheSameOffset: the first source stalls half-way for ever; the second brings the rest and nothing again.
func TestFailoverAtTheSameOffset(t *testing.T) {
	r := newRig(t, 1<<20+1)
	r.job.Connections, r.job.ChunkBytes = 1, 4<<20 // one request for the whole file
	r.job.Stall = time.Second
	r.hub.Misbehave(func(a badhub.Ask) badhub.Act {
		if a.Repo == repoA && !a.Redirect {
			return badhub.Act{Kind: badhub.Stall, After: 300_000}
		}
		return badhub.Act{}
	})
	if err := r.run(t, t.Context()); err != nil {
		t.Fatal(err)
	}
	asked := r.hub.Asked(r.names[0])
	if len(asked) != 2 || asked[1] != [2]int64{300_000, 1<<20 + 1} {
		t.Errorf("got requests %v, want a second one from 300000 on", asked)
	}
	if sent := r.hub.Sent(r.names[0]); sent != 1<<20+1 {
		t.Errorf("got %d bytes sent, want each once", sent)
	}
}

// TestExpiredLink: the link behind the redirect turns 403 half-way; a new redirect is asked for and nothing is lost.
func TestExpiredLink(t *testing.T) {
	r := newRig(t, 2<<20)
	r.job.Sources = r.job.Sources[:1]
	var n atomic.Int64
	r.hub.Misbehave(func(a badhub.Ask) badhub.Act {
		if k := n.Add(1); k%10 == 0 {
			r.hub.Expire()
		}
		return badhub.Act{}
	})
	if err := r.run(t, t.Context()); err != nil {
		t.Fatal(err)
	}
	if sent := r.hub.Sent(r.names[0]); sent != 2<<20 {
		t.Errorf("got %d bytes sent, want each once", sent)
	}
}

// TestChangedBetweenSessions: the first session got part of one file, then the hub has another ETag: what was kept is not added to.
func TestChangedBetweenSessions(t *testing.T) {
	r := newRig(t, 4<<20)
	r.job.Sources = r.job.Sources[:1]
	old := badhub.Random(99, 4<<20)
	right := r.hub.File(r.names[0])
	r.hub.Put(r.names[0], old)
	r.job.RateBytes = 8 << 20
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := Run(ctx, r.job); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want a pause", err)
	}
	if PartialBytes(r.job.Dir, r.job.Files[0]) == 0 {
		t.Skip("nothing came within 200 ms on this machine")
	}
	r.job.RateBytes = 0
	r.hub.Put(r.names[0], right)
	r.hub.Misbehave(func(badhub.Ask) badhub.Act { return badhub.Act{Kind: badhub.OtherETag} })
	if err := r.run(t, t.Context()); err != nil {
		t.Fatal(err)
	}
	if told := r.troubles(Restarted); !strings.Contains(told, `got ETag "second", want "first"`) {
		t.Errorf("got told %q, want that the file changed", told)
	}
}

// TestAnotherFile: the hub says by digest that it has another file than the manifest; not a byte of it is fetched.
func TestAnotherFile(t *testing.T) {
	r := newRig(t, 2<<20)
	r.hub.TellDigests()
	r.hub.Put(r.names[0], badhub.Random(5, 2<<20))
	err := r.run(t, t.Context())
	var gone *SourceError
	if !errors.As(err, &gone) || !strings.Contains(err.Error(), "it has another file: got SHA-256") {
		t.Errorf("got %v", err)
	}
	if sent := r.hub.AllSent(); sent != 0 {
		t.Errorf("got %d bytes sent, want none", sent)
	}
}

// TestNoSourceKnowsRanges: the file comes whole, in one request, and even then nothing that is there is written twice.
func TestNoSourceKnowsRanges(t *testing.T) {
	r := newRig(t, 3<<20)
	r.hub.Misbehave(func(a badhub.Ask) badhub.Act { return badhub.Act{Kind: badhub.Whole} })
	if err := r.run(t, t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestSchedules fetches through random, seeded series of faults: the right bytes or a clear error, never wrong bytes under a name.
// POND_SCHEDULES and POND_SCHEDULE_BYTES make it the long form (make test-faults).
func TestSchedules(t *testing.T) {
	count, size := number(t, "POND_SCHEDULES", 32), number(t, "POND_SCHEDULE_BYTES", 2<<20)
	sizes := []int{size / 2, size / 4, size/4 - 5000, 4000, 1000}
	shared := newRig(t, sizes...)
	m := shared.job
	var whole, refused atomic.Int64
	t.Run("all", func(t *testing.T) {
		for seed := range uint64(count) {
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel()
				hub := badhub.Of(shared.files)
				rig := &rig{hub: hub, names: shared.names, job: m}
				url, cdn := serve(t, hub), serve(t, hub)
				hub.RedirectTo(cdn)
				if seed%2 == 0 {
					hub.TellDigests()
				}
				rate := []float64{0.1, 0.3, 0.6, 1}[seed%4]
				hub.Misbehave(badhub.Schedule(seed, rate, int64(10+seed%90), 100*time.Millisecond, seed%3 == 0))
				rig.job.Dir = t.TempDir()
				sources, err := Sources(hub.Manifest("test", nil, repoA, repoB), func(n string) string { return map[string]string{"HF_ENDPOINT": url}[n] })
				must(t, err)
				rig.job.Sources = sources[:1+seed%2]
				rig.job.ChunkBytes = int64(max(size/64, 64<<10))
				rig.job.Stall, rig.job.Report = 250*time.Millisecond, nil
				rig.job.Patience = 2 * time.Second
				for attempt := 1; ; attempt++ {
					err := rig.run(t, t.Context())
					if err == nil {
						whole.Add(1)
						break
					}
					var gone *SourceError
					var wrong *DigestError
					if !errors.As(err, &gone) && !errors.As(err, &wrong) {
						t.Fatalf("seed %d: got %v, want a SourceError or a DigestError", seed, err)
					}
					if attempt == 1 {
						refused.Add(1)
					}
					if attempt > 20 {
						t.Fatalf("seed %d: no end after 20 runs: %v", seed, err)
					}
					rig.job.Files = rig.missing()
				}
			})
		}
	})
	t.Logf("%d schedules over %d bytes: %d ended in the right bytes, %d of them after a run that ended in a clear error", count, size, whole.Load(), refused.Load())
}

// missing are the files that have not got their names.
func (r *rig) missing() (out []manifest.File) {
	for _, f := range r.job.Files {
		if _, err := os.Stat(filepath.Join(r.job.Dir, f.Name)); err != nil {
			out = append(out, f)
		}
	}
	return out
}

func number(t *testing.T, name string, short int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return short
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s: got %q, want a positive number", name, text)
	}
	return n
}
