package app

import (
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"pond/app/settings"
	"pond/app/update"
	"pond/inference"
	"pond/inference/checkpoint/adopt"
	"pond/inference/checkpoint/manifest"
	"pond/inference/checkpoint/store"
	"pond/inference/memgate"
)

// Home is what a Pond with a window looks after besides its run: the user's settings, the models on the disk, and what the system does around
// it. `pond serve` has none: its flags say everything, and nothing is remembered.
type Home struct {
	Paths    settings.Paths
	Demo     fs.FS               // files of the built-in model
	Known    []manifest.Manifest // models whose files are known
	Tools    adopt.Environment   // where other tools keep models, and the environment of downloads
	Executor inference.Executor
	System   System
	Logger   *slog.Logger
	Log      *LogFile // nil: nothing is kept
	Memory   func() memgate.Reading
	Updates  *update.Updater  // nil: this Pond is not updated by itself
	Now      func() time.Time // nil: time.Now

	every time.Duration // between looks at a running engine and at the memory; 0: attendEvery and pressureInterval. Tests are impatient
}

// pick finds the model that Start would load. The manifest's ID is empty for a folder of the user's own.
func (h Home) pick(s settings.Settings) (Model, manifest.Manifest, error) {
	c := h.catalog(s)
	name := s.Model
	if name == "" {
		name = h.best(s, c)
	}
	known := manifest.Manifest{}
	for _, m := range h.Known {
		if m.ID == name {
			known = m
		}
	}
	m, err := c.Find(name)
	if err != nil {
		m = Model{ID: name, Dir: h.store(s).Dir(name)}
	}
	return m, known, err
}

// best is the model for a user who chose none: the full one where it is on the disk, or could run; else the built-in one.
func (h Home) best(s settings.Settings, c Catalog) string {
	if _, err := c.Find(FullModel); err == nil {
		return FullModel
	}
	for _, m := range h.Known {
		if m.ID == FullModel && h.verdict(m.ID, Model{}, s).possible() {
			return FullModel
		}
	}
	return DemoModel
}

// possible reports whether no quitting of programs would be in vain.
func (v Verdict) possible() bool { return v.Lacks == "" && !v.Forever }

func (h Home) catalog(s settings.Settings) Catalog {
	return Catalog{ModelsDir: h.store(s).Root, Demo: h.Demo, Known: h.Known}
}

// store is where models are kept; a folder that the user chose is never created.
func (h Home) store(s settings.Settings) store.Store {
	if s.ModelsDir != "" {
		return store.Store{Root: s.ModelsDir}
	}
	return store.Store{Root: h.Paths.Models, Create: true}
}

// config is what a start with these settings runs.
func (h Home) config(s settings.Settings, m Model) Config {
	c := ConfigOf(s, m, h.Executor)
	c.Logger, c.Memory = h.Logger, h.Memory
	c.Disk, c.Quiet = DiskOf(s, h.Paths), s.Quiet
	return c
}

// ConfigOf is what the user's settings run. Where other machines may connect, the names and addresses of this one are allowed.
func ConfigOf(s settings.Settings, m Model, x inference.Executor) Config {
	c := Config{Model: m, Executor: x, ContextTokens: s.ContextTokens, Address: s.ListenAddress(), APIKey: s.Key, AllowedHosts: s.Hosts, AllowedOrigins: s.Origins}
	if s.LAN && s.Address == "" {
		c.AllowedHosts = append(ownNames(), c.AllowedHosts...)
	}
	return c
}

// DiskOf is where the user's settings keep conversations.
func DiskOf(s settings.Settings, at settings.Paths) inference.Disk {
	return inference.Disk{Dir: at.Sessions, LimitBytes: int64(s.DiskGB) * 1e9, Build: Release()}
}

// ownNames are the names and addresses by which other machines of the network call this one.
func ownNames() []string {
	var names []string
	if name, err := os.Hostname(); err == nil && name != "" {
		short, _, _ := strings.Cut(name, ".")
		names = append(names, name, short, short+".local")
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return names
	}
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok || n.IP.IsLoopback() {
			continue
		}
		if n.IP.To4() != nil {
			names = append(names, n.IP.String())
		} else if n.IP.IsGlobalUnicast() {
			names = append(names, "["+n.IP.String()+"]")
		}
	}
	return names
}

// disk looks at a model's folder.
func (h Home) disk(s settings.Settings, m manifest.Manifest) DiskState {
	if len(m.Sources) == 0 {
		return DiskState{}
	}
	at := h.store(s)
	st, err := at.Status(m)
	d := DiskState{Dir: st.Dir, Line: st.Line(), DoneBytes: st.DoneBytes, TotalBytes: st.TotalBytes, UsedBytes: st.DiskBytes, FreeBytes: -1, Headroom: store.Headroom, Changed: st.Changed}
	if err != nil {
		d.Trouble = err.Error()
	}
	if free, err := at.FreeBytes(); err == nil {
		d.FreeBytes = free
	}
	return d
}

// verdict asks the memory gate about a model; one that is not on the disk yet is judged by its shape.
func (h Home) verdict(id string, m Model, s settings.Settings) Verdict {
	machine := ThisMachine()
	if h.Memory != nil {
		machine.Memory = h.Memory()
	}
	lacks := ""
	var need memgate.Need
	var err error
	switch {
	case m.Files != nil:
		need, err = inference.MemoryNeed(inference.Options{Model: inference.FromFS(m.Files), Executor: h.Executor, ContextTokens: s.ContextTokens})
	case m.Dir != "" && complete(os.DirFS(m.Dir)) == nil:
		need, err = inference.MemoryNeed(inference.Options{Model: inference.FromDir(m.Dir), Executor: h.Executor, ContextTokens: s.ContextTokens})
	case id == FullModel:
		need, err = inference.FullNeed(h.Executor)
		need.Tokens = s.ContextTokens
	default:
		return Verdict{}
	}
	if err != nil {
		return Verdict{Sentence: err.Error()}
	}
	if id == FullModel {
		lacks = machine.lacks()
	}
	need.MaxTokens = modest(need, need.MaxTokens)
	r := memgate.Check(machine.Memory, need)
	v := Verdict{
		Known: true, Allowed: r.Allows() && lacks == "", Sentence: r.Sentence(), CeilingTokens: r.Ceiling, NeedBytes: int64(r.NeedBytes), Lacks: lacks,
		Forever: r.Verdict == memgate.Refuse && r.Limit == memgate.FloorLimit, Anyway: r.Verdict == memgate.Refuse && r.Override == memgate.Slow,
	}
	if lacks != "" {
		v.Sentence = "needs " + lacks
	}
	if r.HaveBytes.Known {
		v.HaveBytes = int64(r.HaveBytes.Bytes)
	}
	if v.Anyway {
		v.AnywayText = r.OverrideSentence()
	}
	for _, l := range r.Arithmetic() {
		v.Sums = append(v.Sums, Sum{l.Label, int64(l.Bytes)})
	}
	return v
}

// facts tells of the machine in words.
func facts(m Machine) MachineFacts {
	return MachineFacts{System: known(m.OSVersion) + ", " + m.Arch, Processor: known(m.CPU), Memory: memoryLine(m.Memory)}
}
