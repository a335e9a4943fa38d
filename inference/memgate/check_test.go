package memgate

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
)

const gib = 1 << 30

// metal is the full model in buffers of the GPU (spec 2.8, 3.5): 19.51 GB of text weights, 64.4 MB of state a sequence, 20,480 B of
// keys and values a token, at most 0.6 GB of workspace.
func metal() Need {
	return Need{
		Placement: Wired, Weights: 19_508_787_456, SequenceState: 64_389_120, Sequences: 2, Snapshots: 4, KVBytesPerToken: 20_480,
		Workspace: 600_000_000, Program: 256 << 20, MinTokens: 4096, MaxTokens: 262_144, MacFloor: MacFloorBytes, AvailableFloor: AvailableFloorBytes,
	}
}

// host is the full model mapped by the host executor.
func host() Need {
	n := metal()
	n.Placement, n.SequenceState, n.KVBytesPerToken, n.Workspace = Mapped, 66_846_720, 40_960, 172_000_000
	return n
}

// mac is a Mac of so many GiB that does ordinary things: 3.5 GiB wired, 1 GiB free, the rest open programs and cached files.
func mac(gibs, cached uint64) Reading {
	total := gibs * gib
	return Reading{
		System: MacOS, Total: Of(total), Free: Of(gib), FileBacked: Of(cached * gib), Purgeable: Of(gib / 4), Inactive: Of(cached * gib / 2),
		Wired: Of(7 * gib / 2), Compressed: Of(0), SwapUsed: Of(0), GPULimit: Of(total / 3 * 2), Own: Of(30 << 20),
	}
}

func TestVerdicts(t *testing.T) {
	docker := []User{{"Docker Desktop", 6_200_000_000}, {"Xcode", 3_100_000_000}, {"Safari", 2_000_000_000}}
	with := func(r Reading, change func(*Reading)) Reading { change(&r); return r }
	cases := []struct {
		name    string
		reading Reading
		need    Need
		verdict Verdict
		tokens  int // 0: not looked at
		want    string
	}{
		// Case 49.
		{"32 GB, 20 GB of file cache", mac(32, 20), metal(), FitsWithTokens, 17 * 1024, "up to 17K tokens on this Mac now: needs 22.3 GB, 22.8 GB available"},
		{"32 GB, 19 GB of file cache", mac(32, 19), metal(), Tight, 5120, "up to 5120 tokens on this Mac now: needs 21.8 GB, 21.8 GB available; little is left"},
		{"32 GB, 23 GB of file cache", mac(32, 23), metal(), FitsWithTokens, 51 * 1024, "up to 51K tokens on this Mac now: needs 22.9 GB of the GPU's 22.9 GB"},
		{"32 GB, 14 GB wired by a virtual machine", with(mac(32, 10), func(r *Reading) {
			r.Wired, r.Users = Of(35*gib/2), []User{{"a virtual machine", 14 * gib}}
		}), metal(), Refuse, 0, "would fit if you quit a virtual machine, 15.0 GB"},
		{"32 GB, 14 GB wired, the cache claims the impossible", with(mac(32, 28), func(r *Reading) { r.Wired = Of(14 * gib) }), metal(), Refuse, 0, "19.4 GB available"},
		{"32 GB, 9 GB held by the compressor, the cache claims the impossible", with(mac(32, 28), func(r *Reading) { r.Compressed = Of(9 * gib) }), metal(), Refuse, 0, "21.0 GB available"},
		{"64 GB, 2 GB free, 30 GB inactive", with(mac(64, 14), func(r *Reading) {
			r.Free, r.Inactive = Of(2*gib), Of(30*gib)
		}), metal(), Tight, 0, "idle memory of other programs, which macOS has to compress first"},
		{"64 GB, 2 GB free, 30 GB inactive, mostly files", with(mac(64, 27), func(r *Reading) {
			r.Free, r.Inactive = Of(2*gib), Of(30*gib)
		}), metal(), FitsWithTokens, 0, "on this Mac now"},
		{"64 GB, 2 GB free, 30 GB inactive, the rest unknown", Reading{System: MacOS, Total: Of(64 * gib), Free: Of(2 * gib), Inactive: Of(30 * gib)}, metal(), Tight, 0, ""},
		{"nothing can be read", Reading{}, metal(), Unknown, 0, "cannot be read, so nothing is promised; needs 21.7 GB"},
		{"nothing but the size can be read", Reading{System: MacOS, Total: Of(64 * gib)}, metal(), Unknown, 0, ""},
		{"24 GB, for ever", mac(24, 20), metal(), Refuse, 0, "needs a Mac with 32 GB of memory, and this Mac has 24 GB: it takes 21.6 GB at least"},
		{"24 GB, the limit raised", with(mac(24, 20), func(r *Reading) { r.GPURaised = Of(23 * gib) }), metal(), Refuse, 0, "needs a Mac with 32 GB"},
		{"24 GB, nothing else can be read", Reading{System: MacOS, Total: Of(24 * gib)}, metal(), Refuse, 0, "needs a Mac with 32 GB"},
		{"24 GB, the host executor", mac(24, 20), host(), Refuse, 0, "needs a Mac with 32 GB"},
		{"8 GB", mac(8, 2), metal(), Refuse, 0, "this Mac has 8 GB: it takes"},
		{"the raised limit lets more in", with(mac(48, 40), func(r *Reading) {
			r.GPULimit, r.GPURaised = Of(24*gib), Of(40*gib)
		}), metal(), Fits, 262_144, "256K tokens"},
		{"without raising", with(mac(48, 40), func(r *Reading) { r.GPULimit = Of(24 * gib) }), metal(), FitsWithTokens, 119 * 1024, "of the GPU's 25.8 GB"},
		{"a lowered limit", with(mac(48, 40), func(r *Reading) { r.GPURaised = Of(16 * gib) }), metal(), Refuse, 0,
			"for the GPU, and macOS lets it hold 17.2 GB (iogpu.wired_limit_mb is set)"},
		{"a limit that is just enough", with(mac(48, 40), func(r *Reading) { r.GPURaised = Of(metal().Bytes(4096) - metal().Program) }), metal(), FitsWithTokens, 4096, ""},
		{"a limit a byte short", with(mac(48, 40), func(r *Reading) { r.GPURaised = Of(metal().Bytes(4096) - metal().Program - 1) }), metal(), Refuse, 0, "for the GPU"},
		{"a limit beyond the machine", with(mac(32, 23), func(r *Reading) { r.GPURaised = Of(1 << 62) }), metal(), FitsWithTokens, 0, ""},
		{"a limit that nobody tells", with(mac(48, 40), func(r *Reading) { r.GPULimit = Amount{} }), metal(), Fits, 262_144, ""},
		{"second start while loaded", with(mac(32, 3), func(r *Reading) {
			r.Wired, r.Own = Of(25*gib), Of(43*gib/2)
		}), metal(), FitsWithTokens, 0, "on this Mac now"},
		{"the same, the memory being someone else's", with(mac(32, 3), func(r *Reading) { r.Wired = Of(25 * gib) }), metal(), Refuse, 0, ""},

		// One sentence with numbers.
		{"Docker", with(mac(32, 14), func(r *Reading) { r.Users = docker }), metal(), Refuse, 0,
			"needs 21.7 GB, 16.4 GB available; would fit if you quit Docker Desktop, 6.2 GB"},
		{"the smallest that is enough", with(mac(32, 18), func(r *Reading) { r.Users = docker }), metal(), Refuse, 0, "would fit if you quit Safari, 2.0 GB"},
		{"two together", with(mac(32, 11), func(r *Reading) { r.Users = docker }), metal(), Refuse, 0, "quit Docker Desktop, 6.2 GB, and Xcode, 3.1 GB"},
		{"none is enough", with(mac(32, 2), func(r *Reading) { r.Users = docker }), metal(), Refuse, 0, "the biggest programs are Docker Desktop"},
		{"pressure", with(mac(128, 90), func(r *Reading) { r.Pressure = Warning }), metal(), Tight, 0, "memory is short (warning)"},

		// Linux.
		{"20.5 GiB", Reading{System: Linux, Total: Of(24 * gib), Available: Of(AvailableFloorBytes)}, host(), FitsWithTokens, 0, "needs 22.0 GB, 22.0 GB available"},
		{"a byte short of it", Reading{System: Linux, Total: Of(24 * gib), Available: Of(AvailableFloorBytes - 1)}, host(), Refuse, 0, "needs 22.0 GB, 22.0 GB available"},
		{"no floor on the total", Reading{System: Linux, Total: Of(AvailableFloorBytes + gib/2), Available: Of(AvailableFloorBytes)}, host(), FitsWithTokens, 0, ""},
		{"much", Reading{System: Linux, Total: Of(64 * gib), Available: Of(60 * gib)}, host(), Fits, 262_144, "256K tokens"},
		{"a program's own memory comes back", Reading{System: Linux, Total: Of(24 * gib), Available: Of(19 * gib), Own: Of(2 * gib)}, host(), FitsWithTokens, 0, ""},
		{"available beyond the total", Reading{System: Linux, Total: Of(8 * gib), Available: Of(1 << 63)}, host(), Refuse, 0, "8.6 GB available"},

		// Case 50: what was asked for.
		{"8K on 32 GB", mac(32, 23), asking(metal(), 8192), Fits, 8192, ""},
		{"32K on 32 GB", mac(32, 23), asking(metal(), 32_768), Fits, 32_768, ""},
		{"64K on 32 GB", mac(32, 23), asking(metal(), 65_536), FitsWithTokens, 0, "up to 51K tokens"},
		{"100K on 32 GB", mac(32, 23), asking(metal(), 102_400), FitsWithTokens, 0, "up to 51K tokens"},
		{"100K on 64 GB", mac(64, 40), asking(metal(), 102_400), Fits, 102_400, ""},
		{"one token", mac(32, 23), asking(metal(), 1), Fits, 1, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := Check(c.reading, c.need)
			if r.Verdict != c.verdict || (c.tokens != 0 && r.Tokens != c.tokens) || !strings.Contains(r.Sentence(), c.want) {
				t.Errorf("got %s, %d tokens: %s\nwant %s, %d tokens: %s", r.Verdict, r.Tokens, r.Sentence(), c.verdict, c.tokens, c.want)
			}
			var sum uint64
			for _, l := range r.Arithmetic() {
				sum += l.Bytes
			}
			if sum != r.NeedBytes {
				t.Errorf("the arithmetic adds up to %d, the need is %d: %v", sum, r.NeedBytes, r.Arithmetic())
			}
		})
	}
}

func asking(n Need, tokens int) Need {
	n.Tokens = tokens
	return n
}

// TestDemoRunsEverywhere: the demo model (31 MB) on small machines.
func TestDemoRunsEverywhere(t *testing.T) {
	demo := Need{
		Placement: Held, Weights: 31_401_312, SequenceState: 1_671_168, Sequences: 2, Snapshots: 4, KVBytesPerToken: 8192,
		Workspace: 33_000_000, Program: 96 << 20, MinTokens: 4096, MaxTokens: 32_768,
	}
	for name, r := range map[string]Reading{
		"8 GB Mac":          mac(8, 2),
		"24 GB Mac":         mac(24, 10),
		"2 GiB of Linux":    {System: Linux, Total: Of(2 * gib), Available: Of(gib)},
		"unreadable":        {},
		"512 MiB container": {System: Linux, Total: Of(512 << 20), Available: Of(400 << 20)},
	} {
		if got := Check(r, demo); !got.Allows() {
			t.Errorf("%s: %s: %s", name, got.Verdict, got.Sentence())
		}
	}
}

// TestUsualGPULimit: 22.9 GB on a Mac of 32 GB, 29.0 GB on one of 36, as their GPUs report.
func TestUsualGPULimit(t *testing.T) {
	for gibs, want := range map[uint64]string{32: "22.9 GB", 36: "29.0 GB", 64: "51.5 GB"} {
		if got := Bytes(usualGPULimit(gibs * gib)); got != want {
			t.Errorf("%d GB: got %s, want %s", gibs, got, want)
		}
	}
}

func TestOverride(t *testing.T) {
	// A Mac of 64 GB full of programs, none of it wired: loading pages them out.
	full := mac(64, 8)
	full.Inactive = Of(4 * gib)
	// The same with so much wired that the rest would not have a quarter of the machine.
	pinned := full
	pinned.Wired = Of(30 * gib)
	raised := mac(32, 10)
	raised.GPURaised, raised.Wired = Of(30*gib), Of(9*gib) // more would be wired than three quarters of the machine
	linux := Reading{System: Linux, Total: Of(16 * gib), Available: Of(12 * gib)}
	crowded := Reading{System: Linux, Total: Of(16 * gib), Available: Of(gib)}
	for _, c := range []struct {
		name    string
		reading Reading
		need    Need
		want    Override
	}{
		{"24 GB Mac", mac(24, 20), metal(), Never},
		{"24 GB Mac, mapped", mac(24, 20), host(), Never},
		{"64 GB Mac, full", full, metal(), Slow},
		{"64 GB Mac, wired", pinned, metal(), Never},
		{"raised limit", raised, metal(), Never},
		{"lowered limit", func() Reading { r := mac(64, 50); r.GPURaised = Of(10 * gib); return r }(), metal(), Never},
		{"more than Apple's own limit", func() Reading { r := mac(32, 10); r.GPURaised, r.Wired = Of(30*gib), Of(gib); return r }(),
			func() Need { n := metal(); n.Weights = 22e9; return n }(), Never},
		{"16 GB of Linux, mapped", linux, host(), Slow},
		{"no room for what cannot be mapped", crowded, host(), Never},
		{"in ordinary memory", linux, func() Need { n := host(); n.Placement = Held; return n }(), Never},
	} {
		r := Check(c.reading, c.need)
		if r.Verdict != Refuse || r.Override != c.want {
			t.Errorf("%s: got %s, override %d; want a refusal and %d (%s)", c.name, r.Verdict, r.Override, c.want, r.Sentence())
		}
		if (r.Override == Slow) != (r.OverrideTokens >= 4096) {
			t.Errorf("%s: override %d with %d tokens", c.name, r.Override, r.OverrideTokens)
		}
		if r.OverrideSentence() == "" {
			t.Errorf("%s: no sentence", c.name)
		}
	}
}

// TestBudgetFacts holds the arithmetic to what was measured elsewhere (case 50): peaks of the same checkpoint in mlx-lm at five
// contexts. One conversation of ours must need less at each, because its workspace does not grow with the prompt.
func TestBudgetFacts(t *testing.T) {
	n := metal()
	n.Sequences, n.Snapshots = 1, 1
	for tokens, peak := range map[int]float64{8192: 21.7, 32_768: 23.8, 65_536: 26.7, 100_000: 29.8, 192_000: 38.0} {
		if got := float64(n.Bytes(tokens)) / 1e9; got > peak || got < 19.5 {
			t.Errorf("%d tokens: got %.2f GB, want at most the %.1f GB measured elsewhere", tokens, got, peak)
		}
	}
	// Architecture 7: weights, 0.67 GB of keys and values at 32K, one state, the workspace.
	n.Snapshots, n.Program = 0, 0
	if got := fmt.Sprintf("%.2f", float64(n.Bytes(32_768))/1e9); got != "20.84" {
		t.Errorf("got %s GB, want 20.84", got)
	}
	n.SequenceAhead = 62_914_560 // gdn states beside those that a token ahead of its time has written
	if got := fmt.Sprintf("%.2f", float64(n.Bytes(32_768))/1e9); got != "20.91" {
		t.Errorf("got %s GB with room for a token ahead, want 20.91", got)
	}
}

// FuzzCheck: no reading makes the gate panic, or allow what cannot fit by plain arithmetic in unbounded integers.
func FuzzCheck(f *testing.F) {
	f.Add(uint8(1), uint8(2), uint16(0x7fff), uint64(32*gib), uint64(gib), uint64(20*gib), uint64(10*gib), uint64(4*gib), uint64(0), uint64(21*gib), uint64(30<<20), uint64(0), 0, int64(19_508_787_456))
	f.Add(uint8(2), uint8(0), uint16(0x7fff), uint64(24*gib), uint64(20*gib), uint64(0), uint64(0), uint64(0), uint64(0), uint64(0), uint64(gib), uint64(0), 70_000, int64(19_508_787_456))
	f.Add(uint8(1), uint8(2), uint16(0x7fff), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), 1<<40, int64(-1))
	f.Fuzz(func(t *testing.T, system, placement uint8, known uint16, total, free, cached, inactive, wired, compressed, gpu, own, available uint64, tokens int, weights int64) {
		amount := func(bit int, v uint64) Amount { return Amount{v, known>>bit&1 == 1} }
		r := Reading{
			System: System(system % 3), Total: amount(0, total), Free: amount(1, free), FileBacked: amount(2, cached), Inactive: amount(3, inactive),
			Wired: amount(4, wired), Compressed: amount(5, compressed), GPULimit: amount(6, gpu), Own: amount(7, own), Available: amount(8, available),
			GPURaised: amount(9, gpu/2), Users: []User{{"a", free}, {"b", wired}},
		}
		n := metal()
		n.Placement, n.Tokens, n.Weights, n.SequenceAhead = Placement(placement%3), tokens, uint64(weights), free%(1<<40)
		got := Check(r, n)
		if got.Sentence() == "" || got.OverrideSentence() == "" || len(got.Arithmetic()) == 0 {
			t.Error("a result without words")
		}
		if got.Verdict == Refuse {
			if got.Tokens != 0 || got.Ceiling != 0 {
				t.Errorf("refused with %d tokens, ceiling %d", got.Tokens, got.Ceiling)
			}
			return
		}
		if max(total, free, cached, inactive, wired, compressed, gpu, own, available) > 1<<60 {
			return // beyond all machines amounts are cut, and the plain arithmetic below does not cut
		}
		need := plainBytes(n, max(got.Tokens, 1))
		if r.Total.Known && need.Cmp(plain(total)) > 0 {
			t.Errorf("%s: needs %s of a machine of %d", got.Verdict, need, total)
		}
		if r.System == MacOS && r.Total.Known && total < MacFloorBytes {
			t.Errorf("%s on a Mac of %d", got.Verdict, total)
		}
		if got.Verdict == Unknown {
			return
		}
		if got.Tokens < 1 || got.Tokens > got.Ceiling {
			t.Errorf("%s: %d tokens, ceiling %d", got.Verdict, got.Tokens, got.Ceiling)
		}
		if r.Total.Known && r.Wired.Known { // what others wired does not give way
			others := new(big.Int).Sub(plain(wired), plain(r.Own.or(0)))
			if others.Sign() > 0 && new(big.Int).Add(need, others).Cmp(plain(total)) > 0 {
				t.Errorf("%s: needs %s beside %s wired, of %d", got.Verdict, need, others, total)
			}
		}
		if r.System == MacOS && n.Placement == Wired && r.GPURaised.Known && gpu/2 > 0 {
			if pinned := new(big.Int).Sub(need, plain(n.Program)); pinned.Cmp(plain(gpu/2)) > 0 {
				t.Errorf("%s: wires %s within a limit of %d", got.Verdict, pinned, gpu/2)
			}
		}
		if r.Available.Known {
			if have := new(big.Int).Add(plain(available), plain(r.Own.or(0))); need.Cmp(have) > 0 {
				t.Errorf("%s: needs %s of %s available", got.Verdict, need, have)
			}
			if n.Placement == Mapped && r.Own.or(0) == 0 && available < AvailableFloorBytes {
				t.Errorf("%s: %d available, want the floor", got.Verdict, available)
			}
		}
	})
}

func plain(n uint64) *big.Int { return new(big.Int).SetUint64(n) }

// plainBytes is what a context takes, written again.
func plainBytes(n Need, tokens int) *big.Int {
	sum := plain(n.Weights)
	sum.Add(sum, plain(n.Workspace)).Add(sum, plain(n.Program))
	each := plain(n.SequenceState)
	sum.Add(sum, each.Mul(each, big.NewInt(int64(n.Sequences*(1+n.Snapshots)))))
	ahead := plain(n.SequenceAhead)
	sum.Add(sum, ahead.Mul(ahead, big.NewInt(int64(n.Sequences))))
	kv := plain(n.KVBytesPerToken)
	return sum.Add(sum, kv.Mul(kv, big.NewInt(int64(n.Sequences))).Mul(kv, big.NewInt(int64(tokens))))
}

func TestRecheck(t *testing.T) {
	before := mac(32, 23)
	after := before
	after.Wired, after.Own, after.Free, after.FileBacked, after.SwapUsed = Of(24*gib), Of(21*gib), Of(gib), Of(3*gib), Of(648<<20)
	l := Recheck(before, after, asking(metal(), 32_768))
	if !l.Allows() {
		t.Errorf("the loaded model is counted twice: %s", l.Sentence())
	}
	if !l.Swapped() || l.SwapGrowth != Of(648<<20) {
		t.Errorf("got a growth of swap of %v, want 648 MiB", l.SwapGrowth)
	}
	if want := uint64(21*gib - 30<<20); l.OwnGrowth != want {
		t.Errorf("got a growth of %d, want %d", l.OwnGrowth, want)
	}
	after.SwapUsed = Of(4 << 20)
	if l := Recheck(before, after, metal()); l.Swapped() {
		t.Error("4 MB of swap is noise")
	}
	if l := Recheck(Reading{}, after, metal()); l.Swapped() || l.SwapGrowth.Known {
		t.Error("a growth from the unknown")
	}
	// Another program took 6 GB meanwhile.
	after.FileBacked, after.Free, after.Purgeable, after.Inactive = Of(gib/2), Of(0), Of(0), Of(0)
	after.Own = Of(20 * gib)
	if l := Recheck(before, after, asking(metal(), 32_768)); l.Verdict == Fits {
		t.Errorf("got %s, want it noticed: %s", l.Verdict, l.Sentence())
	}
}
