package memgate

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func tree(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

const meminfo = `MemTotal:       24000000 kB
MemFree:         1000000 kB
MemAvailable:   20000000 kB
Active(anon):       1000 kB
Inactive(anon):     2000 kB
Active(file):    4000000 kB
Inactive(file):  9000000 kB
SwapTotal:       2000000 kB
SwapFree:        1500000 kB
HugePages_Total:       0

odd
`

func TestProc(t *testing.T) {
	status := func(name, parent, anon string) string {
		return "Name:\t" + name + "\nPPid:\t" + parent + "\nVmRSS:\t  900000 kB\nRssAnon:\t" + anon + " kB\nRssFile:\t 800000 kB\nRssShmem:\t      10 kB\nVmSwap:\t      20 kB\n"
	}
	files := map[string]string{
		"proc/meminfo":     meminfo,
		"proc/self/status": status("pond", "40", "100000"),
		"proc/1/status":    status("init", "0", "9000000"),
		"proc/40/status":   status("terminal", "1", "900000"),
		"proc/50/status":   status("pond", "40", "100000"),
		"proc/60/status":   status("firefox", "1", "700000"),
		"proc/61/status":   status("firefox", "60", "500000"),
		"proc/62/status":   status("idea", "1", "1100000"),
		"proc/63/status":   status("small", "1", "60"),
		"proc/2/status":    "Name:\tkthreadd\nPPid:\t0\n",
		"proc/uptime":      "1 2",
	}
	r := proc{tree(files), 50}.reading()
	for name, c := range map[string][2]Amount{
		"total":     {r.Total, Of(24000000 << 10)},
		"available": {r.Available, Of(20000000 << 10)},
		"free":      {r.Free, Of(1000000 << 10)},
		"files":     {r.FileBacked, Of(13000000 << 10)},
		"inactive":  {r.Inactive, Of(9002000 << 10)},
		"swap":      {r.SwapUsed, Of(500000 << 10)},
		"own":       {r.Own, Of(100030 << 10)}, // mapped files are not counted
	} {
		if c[0] != c[1] {
			t.Errorf("%s: got %v, want %v", name, c[0], c[1])
		}
	}
	want := []User{{"firefox", 1200000 << 10}, {"idea", 1100000 << 10}}
	if len(r.Users) != 2 || r.Users[0] != want[0] || r.Users[1] != want[1] {
		t.Errorf("got %v, want %v", r.Users, want)
	}
	if r := (proc{fstest.MapFS{}, 1}).reading(); r.Total.Known || r.Available.Known || r.Own.Known || r.Users != nil {
		t.Errorf("without /proc: got %+v", r)
	}
	if r := (proc{tree(map[string]string{"proc/meminfo": "MemTotal: many kB\nMemAvailable: 7 MB\n"}), 1}).reading(); r.Total.Known || r.Available.Known {
		t.Errorf("nonsense: got %+v", r)
	}
}

func TestCgroups(t *testing.T) {
	const mib = 1 << 20
	cases := []struct {
		name             string
		files            map[string]string
		total, available uint64
	}{
		{"v2, a limit two levels up, its cache available", map[string]string{
			"proc/self/cgroup":                 "0::/a/b/c\n",
			"sys/fs/cgroup/a/b/c/memory.max":   "max\n",
			"sys/fs/cgroup/a/b/memory.max":     "4294967296\n",
			"sys/fs/cgroup/a/b/memory.current": "3221225472\n",
			"sys/fs/cgroup/a/b/memory.stat":    "anon 1\ninactive_file 1073741824\nactive_file 104857600\n",
			"sys/fs/cgroup/a/memory.max":       "8589934592\n",
			"sys/fs/cgroup/a/memory.current":   "3221225472\n",
		}, 4096 * mib, (1024 + 1024 + 100) * mib},
		{"v2, memory.high is lower", map[string]string{
			"proc/self/cgroup":               "0::/x\n",
			"sys/fs/cgroup/x/memory.max":     "4294967296\n",
			"sys/fs/cgroup/x/memory.high":    "2147483648\n",
			"sys/fs/cgroup/x/memory.current": "1073741824\n",
		}, 2048 * mib, 1024 * mib},
		{"v2 in a container: the mount is the group", map[string]string{
			"proc/self/cgroup":             "0::/\n",
			"sys/fs/cgroup/memory.max":     "1073741824\n",
			"sys/fs/cgroup/memory.current": "536870912\n",
		}, 1024 * mib, 512 * mib},
		{"v1", map[string]string{
			"proc/self/cgroup": "5:cpu,cpuacct:/y\n4:memory:/y\n0::/\n",
			"sys/fs/cgroup/memory/y/memory.limit_in_bytes": "1073741824\n",
			"sys/fs/cgroup/memory/y/memory.usage_in_bytes": "1073741824\n",
			"sys/fs/cgroup/memory/y/memory.stat":           "total_inactive_file 10485760\ntotal_active_file 0\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":   "9223372036854771712\n",
		}, 1024 * mib, 10 * mib},
		{"v1 in a container whose path is the host's", map[string]string{
			"proc/self/cgroup":                           "4:memory:/docker/0123\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "2147483648\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes": "1073741824\n",
		}, 2048 * mib, 1024 * mib},
		{"no limit", map[string]string{"proc/self/cgroup": "0::/../..\n", "sys/fs/cgroup/memory.max": "max\n"}, 24000000 << 10, 20000000 << 10},
		{"nonsense", map[string]string{"proc/self/cgroup": "::\n0\n0::\n7:memory\n"}, 24000000 << 10, 20000000 << 10},
	}
	for _, c := range cases {
		c.files["proc/meminfo"] = meminfo
		r := proc{tree(c.files), 1}.reading()
		if r.Total != Of(c.total) || r.Available != Of(c.available) {
			t.Errorf("%s: got %v available of %v, want %d of %d", c.name, r.Available, r.Total, c.available, c.total)
		}
	}
}

func TestStalls(t *testing.T) {
	for text, want := range map[string]Pressure{
		"": Normal,
		"some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n":   Normal,
		"some avg10=35.10 avg60=0.00 avg300=0.00 total=0\nfull avg10=2.00 avg60=0.00 avg300=0.00 total=0\n":  Warning,
		"some avg10=80.10 avg60=0.00 avg300=0.00 total=0\nfull avg10=41.00 avg60=0.00 avg300=0.00 total=0\n": Critical,
		"some avg10=lots\nfull\n": Normal,
	} {
		if got := (proc{tree(map[string]string{"proc/pressure/memory": text}), 1}).pressure(); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

// TestThisMachine reads the machine that runs the test.
func TestThisMachine(t *testing.T) {
	began := time.Now()
	r := Read()
	t.Logf("read in %v: %s available of %s, own %s, swap %s, biggest %v", time.Since(began), Bytes(r.Available.Bytes), Bytes(r.Total.Bytes), Bytes(r.Own.Bytes), Bytes(r.SwapUsed.Bytes), r.Users)
	if !r.Total.Known || !r.Own.Known {
		t.Fatalf("got %+v, want at least the total and this process", r)
	}
	if r.Own.Bytes == 0 || r.Own.Bytes > r.Total.Bytes {
		t.Errorf("own: got %d of %d bytes", r.Own.Bytes, r.Total.Bytes)
	}
	have := r.have().all
	if !have.Known || have.Bytes == 0 || have.Bytes > r.Total.Bytes {
		t.Errorf("available: got %v of %d bytes", have, r.Total.Bytes)
	}
	if (r.System == MacOS) != (runtime.GOOS == "darwin") {
		t.Errorf("got system %s", r.System)
	}
	// The footprint follows what this process holds.
	held := make([]byte, 256<<20)
	for i := 0; i < len(held); i += 4096 {
		held[i] = 1
	}
	after := Read()
	if grown := sub(after.Own.Bytes, r.Own.Bytes); grown < 200<<20 || grown > 2<<30 { // the race detector takes as much again
		t.Errorf("after touching 256 MiB the footprint grew by %s", Bytes(grown))
	}
	if after.Own.Bytes > 0 && held[4096] == 1 {
		for _, u := range after.Users {
			if strings.Contains(u.Name, "memgate.test") {
				t.Errorf("this test is among the programs to quit: %v", after.Users)
			}
		}
	}
}

func TestWatch(t *testing.T) {
	levels := []Pressure{Normal, Normal, Warning, Warning, Critical, Normal}
	ctx, cancel := context.WithCancel(context.Background())
	var told []Pressure
	i := 0
	Watch(ctx, time.Millisecond, func() Pressure {
		if i == len(levels) {
			cancel()
			return Normal
		}
		i++
		return levels[i-1]
	}, func(p Pressure) { told = append(told, p) })
	if len(told) != 3 || told[0] != Warning || told[1] != Critical || told[2] != Normal {
		t.Errorf("got %v, want each change once", told)
	}
}
