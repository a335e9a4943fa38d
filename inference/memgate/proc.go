package memgate

import (
	"bufio"
	"bytes"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// proc reads what Linux tells in /proc and /sys/fs/cgroup. Paths are those of the root folder without the first slash, so that
// tests can bring a tree of their own. Manual pages: proc(5), cgroups(7); kernel: Documentation/admin-guide/cgroup-v2.rst,
// cgroup-v1/memory.rst, accounting/psi.rst.
type proc struct {
	root fs.FS
	own  int // process id
}

// reading puts it all together. Wired and Compressed stay unknown: MemAvailable leaves such pages out already.
func (p proc) reading() Reading {
	r := Reading{System: Linux}
	m := p.fields("proc/meminfo")
	r.Total, r.Available, r.Free = m.kib("MemTotal"), m.kib("MemAvailable"), m.kib("MemFree")
	if a, i := m.kib("Active(file)"), m.kib("Inactive(file)"); a.Known && i.Known {
		r.FileBacked = Of(add(a.Bytes, i.Bytes))
	}
	if a, f := m.kib("Inactive(anon)"), m.kib("Inactive(file)"); a.Known && f.Known {
		r.Inactive = Of(add(a.Bytes, f.Bytes))
	}
	if t, f := m.kib("SwapTotal"), m.kib("SwapFree"); t.Known && f.Known {
		r.SwapUsed = Of(sub(t.Bytes, f.Bytes))
	}
	s := p.fields("proc/self/status")
	if a := s.kib("RssAnon"); a.Known { // mapped files are not our footprint: they are cache
		r.Own = Of(add(add(a.Bytes, s.kib("RssShmem").or(0)), s.kib("VmSwap").or(0)))
	}
	p.limit(&r)
	r.Users = p.users()
	r.Pressure = p.pressure()
	return r
}

// limit lowers total and available to what the cgroups of this process leave. Files that a group cached count as its own until they
// are given back, so they are available to it. A limit on swap does not matter here.
func (p proc) limit(r *Reading) {
	text, err := fs.ReadFile(p.root, "proc/self/cgroup")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(text)) {
		// "0::/user.slice" (v2) or "4:memory:/group" (v1)
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		switch {
		case part[0] == "0" && part[1] == "":
			p.groups(r, "sys/fs/cgroup", part[2], groupFiles{[]string{"memory.max", "memory.high"}, "memory.current", "inactive_file", "active_file"})
		case strings.Contains(","+part[1]+",", ",memory,"):
			p.groups(r, "sys/fs/cgroup/memory", part[2], groupFiles{[]string{"memory.limit_in_bytes"}, "memory.usage_in_bytes", "total_inactive_file", "total_active_file"})
		}
	}
}

// groups goes from a process's group up to the root: each group limits all groups below. In a container the path may not exist below the
// mount, whose root then is the container's group.
func (p proc) groups(r *Reading, mount, group string, f groupFiles) {
	dir := path.Join(mount, path.Join("/", group))
	for {
		for _, file := range f.limits {
			limit, ok := p.number(path.Join(dir, file))
			if !ok || limit >= 1<<60 { // v1 writes a huge number for no limit
				continue
			}
			if r.Total.Known {
				r.Total.Bytes = min(r.Total.Bytes, limit)
			}
			if usage, ok := p.number(path.Join(dir, f.usage)); ok && r.Available.Known {
				stat := p.fields(path.Join(dir, "memory.stat"))
				cached := add(stat.bytes(f.inactive).or(0), stat.bytes(f.active).or(0))
				r.Available.Bytes = min(r.Available.Bytes, limit, add(sub(limit, usage), min(cached, usage)))
			}
		}
		if dir == mount {
			return
		}
		dir = path.Dir(dir)
	}
}

// groupFiles are the names of a memory controller's files.
type groupFiles struct {
	limits           []string
	usage            string
	inactive, active string // lines of memory.stat: pages that files hold too, of the group and those below
}

// number reads a file of one number; "max" and anything else is none.
func (p proc) number(file string) (uint64, bool) {
	text, err := fs.ReadFile(p.root, file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// pressure follows the stall times of the last ten seconds: "some" process waited for memory, or "full": all did.
func (p proc) pressure() Pressure {
	text, err := fs.ReadFile(p.root, "proc/pressure/memory")
	if err != nil {
		return Normal
	}
	var some, full float64
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimPrefix(f[1], "avg10="), 64)
		if err != nil {
			continue
		}
		switch f[0] {
		case "some":
			some = v
		case "full":
			full = v
		}
	}
	switch {
	case full >= stalledFull:
		return Critical
	case some >= stalledSome:
		return Warning
	}
	return Normal
}

// Shares of the last ten seconds, percent: systemd-oomd acts at 60 % of "full" over half a minute; this is to act well before.
const (
	stalledSome = 10
	stalledFull = 10
)

// users adds up the anonymous memory of other processes by name; it is what their end gives back. Pond itself and the processes it
// was started from are left out: nobody quits the terminal he types in.
func (p proc) users() []User {
	entries, err := fs.ReadDir(p.root, "proc")
	if err != nil {
		return nil
	}
	spared := map[int]bool{1: true}
	for pid := p.own; pid > 1 && !spared[pid]; {
		spared[pid] = true
		parent := p.fields(path.Join("proc", strconv.Itoa(pid), "status"))["PPid"]
		var err error
		if pid, err = strconv.Atoi(parent); err != nil {
			break
		}
	}
	var ps []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || spared[pid] {
			continue
		}
		s := p.fields(path.Join("proc", e.Name(), "status"))
		bytes := s.kib("RssAnon")
		if !bytes.Known {
			bytes = s.kib("VmRSS")
		}
		if bytes.Bytes > 0 { // kernel threads have none
			ps = append(ps, process{s["Name"], bytes.Bytes})
		}
	}
	return biggest(ps)
}

// fields are the lines "key: value" or "key value" of a file.
type fields map[string]string

func (p proc) fields(file string) fields {
	text, err := fs.ReadFile(p.root, file)
	if err != nil {
		return nil
	}
	f := fields{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		key, value, ok := strings.Cut(lines.Text(), ":")
		if !ok {
			if key, value, ok = strings.Cut(lines.Text(), " "); !ok {
				continue
			}
		}
		f[key] = strings.TrimSpace(value)
	}
	return f
}

// kib reads "123 kB", which means KiB.
func (f fields) kib(key string) Amount {
	number, unit, _ := strings.Cut(f[key], " ")
	n, err := strconv.ParseUint(number, 10, 54)
	if err != nil || unit != "kB" {
		return Amount{}
	}
	return Of(n << 10)
}

// bytes reads a plain number.
func (f fields) bytes(key string) Amount {
	n, err := strconv.ParseUint(f[key], 10, 64)
	if err != nil {
		return Amount{}
	}
	return Of(n)
}
