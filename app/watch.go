package app

import (
	"time"

	"pond/app/settings"
	"pond/inference"
	"pond/inference/memgate"
)

// watch is what attend knows of a run. Its rules:
//
//   - The machine is kept awake only while there is work, and let sleep within a look after it.
//   - Idle time counts from the end of the last work; a model that had nothing to do for as long as the settings say is let go.
//   - While memory is short, snapshots go first; when it becomes critical, the keys and values of conversations that rest go too, and new
//     work waits; when it stays critical and nothing is computed, the model is let go.
type watch struct {
	pond   *Pond
	engine *inference.Engine
	letGo  func()

	awake    func() // lets the machine sleep again; nil while it may
	sleepy   bool   // the machine cannot be held awake
	level    memgate.Pressure
	critical time.Time // since when the pressure is critical

	onBattery bool // as of the last look, with the rule that was followed
	rule      settings.Battery
}

// criticalRest is how long critical pressure may last, after snapshots are gone and new work waits, until an idle model is let go.
const criticalRest = 10 * time.Second

// look reads the engine and draws the conclusions.
func (w *watch) look() {
	p, now := w.pond, w.pond.now()
	stats := w.engine.Stats()
	work := Work{
		Active: stats.Active, Queued: stats.Queued, TokensPerSecond: stats.TokensPerSecond, Tokens: stats.Tokens,
		PrefillDone: stats.PrefillDone, PrefillTotal: stats.PrefillTotal, Reuse: stats.Reuse,
		Disk: stats.Disk, KeptBytes: (stats.SnapshotBytes + stats.ContextBytes) >> 20 << 20,
	}
	busy := work.Active+work.Queued > 0
	w.keepAwake(busy)
	w.giveBack(stats) // also what an answer leaves behind while memory is short
	p.mu.Lock()
	if busy {
		p.worked = now
	}
	idle, chosen := now.Sub(p.worked), p.settings
	if p.state.Work != work {
		p.happen(Worked{work})
	}
	p.mu.Unlock()
	if p.home == nil {
		return
	}
	if limit := time.Duration(chosen.IdleMinutes) * time.Minute; limit > 0 && !busy && idle >= limit {
		p.log("the model is let go after idle time", "idle", idle.String())
		w.letGo()
	}
	if w.level == memgate.Critical && !busy && now.Sub(w.critical) >= criticalRest {
		p.log("the model is let go because memory is short")
		w.letGo()
	}
	w.battery(chosen)
}

// pressed answers a change of the memory's pressure.
func (w *watch) pressed(level memgate.Pressure) {
	w.level = level
	w.pond.log("memory pressure", "level", level.String())
	w.pond.tell(Pressed{level})
	w.giveBack(w.engine.Stats())
	if level == memgate.Critical {
		w.critical = w.pond.now()
		w.pond.hold(time.Time{}, reasonMemory)
		return
	}
	w.pond.unhold(reasonMemory)
}

// giveBack lets go of what can be computed again, as far as the memory asks for it: snapshots first, then what conversations that rest hold.
func (w *watch) giveBack(s inference.Stats) {
	if w.level != memgate.Normal && s.SnapshotBytes > 0 {
		w.pond.log("snapshots dropped", "bytes", w.engine.GiveBack(inference.Snapshots))
	}
	if w.level == memgate.Critical && s.ContextBytes > 0 {
		w.pond.log("keys and values dropped", "bytes", w.engine.GiveBack(inference.Contexts))
	}
}

// keepAwake holds the machine awake while there is work.
func (w *watch) keepAwake(busy bool) {
	if w.pond.home == nil || w.pond.home.System.KeepAwake == nil {
		return
	}
	switch {
	case busy && w.awake == nil && !w.sleepy:
		release, err := w.pond.home.System.KeepAwake("Pond is answering")
		if err != nil {
			w.pond.log("the machine may fall asleep during the answer", "error", err)
			w.sleepy = true // told once
			return
		}
		w.awake = release
	case !busy && w.awake != nil:
		w.awake()
		w.awake = nil
	}
}

// battery does what the user wants done when the power goes, and undoes it when it is back. What the user asks for meanwhile stands.
func (w *watch) battery(s settings.Settings) {
	if w.pond.home.System.OnBattery == nil {
		return
	}
	on, known := w.pond.home.System.OnBattery()
	if !known || on == w.onBattery && s.OnBattery == w.rule {
		return
	}
	w.onBattery, w.rule = on, s.OnBattery
	w.pond.unhold(reasonBattery)
	switch {
	case !on:
	case s.OnBattery == settings.BatteryPause:
		w.pond.hold(time.Time{}, reasonBattery)
	case s.OnBattery == settings.BatteryStop:
		w.pond.log("stopped, because the machine runs on its battery")
		go w.pond.Stop() // it waits for this goroutine
	}
}

func (w *watch) end() { w.keepAwake(false) }
