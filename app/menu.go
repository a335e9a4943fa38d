package app

import "pond/inference/memgate"

// Action is what choosing a menu entry or a button asks for. Pond.Do carries out those that need no toolkit; the rest (the windows, the
// clipboard, the end) are the composition's.
type Action int

// The actions; NoAction entries only inform.
const (
	NoAction Action = iota

	Download // or go on with one that was paused
	PauseDownload
	CancelDownload
	Verify
	Repair
	CancelJob // of a verification, a repair or an adoption

	Start
	StartAnyway // against the memory gate, where that can only be slow
	Stop
	Unload
	UseNextPort // serve at State.NextAddress, and remember it
	UseDemo     // choose the built-in model, and start it
	PauseQuarter
	PauseHour
	PauseTomorrow // until eight in the morning
	Resume
	ToggleQuiet // let other programs go first, or no longer

	CheckUpdates // ask the release page now

	CopyEndpoint
	CopyCurl
	CopyPython
	CopyJavaScript
	CopyEnvironment
	CopyDiagnostics

	OpenWindow // the window that fits the state: welcome or model before there is one, else the chat
	OpenWelcome
	OpenChat
	OpenModel
	OpenSettings
	OpenLogs
	Quit
)

// Item is one menu entry.
type Item struct {
	Label     string // empty: a separator
	Action    Action
	Available bool
	Checked   bool
	Children  []Item // a menu of its own
}

// Separator reports whether the item is a line between groups.
func (i Item) Separator() bool { return i.Label == "" }

// Next is the one sensible next thing: the first item of the menu, and the main button of every window.
func (s State) Next() Item {
	switch s.Phase {
	case NeedModel:
		switch {
		case s.Disk.Unknown:
			return Item{Label: "Choose another model", Action: OpenSettings, Available: true}
		case s.Disk.Trouble != "":
			return Item{Label: "Open the model's window", Action: OpenModel, Available: true}
		case len(s.Found) > 0 && s.Disk.DoneBytes == 0:
			return Item{Label: "Use the copy found in " + s.Found[0].Tool + "…", Action: OpenModel, Available: true}
		case s.Disk.DoneBytes > 0 && s.Disk.DoneBytes < s.Disk.TotalBytes:
			return Item{Label: "Go on with the download", Action: Download, Available: true}
		case s.Disk.DoneBytes > 0:
			return Item{Label: "Verify", Action: Verify, Available: true}
		}
		return Item{Label: "Download", Action: Download, Available: s.Disk.LacksBytes() == 0}
	case Downloading:
		if s.Job.Paused {
			return Item{Label: "Go on with the download", Action: Download, Available: true}
		}
		return Item{Label: "Pause the download", Action: PauseDownload, Available: true}
	case Verifying:
		return Item{Label: "Cancel", Action: CancelJob, Available: s.Job.Kind != RemoveJob}
	case Running, Busy:
		return Item{Label: "Stop", Action: Stop, Available: true}
	case Paused:
		return Item{Label: "Go on", Action: Resume, Available: true}
	case Loading:
		return Item{Label: "Cancel loading", Action: Stop, Available: true}
	case Failed:
		switch {
		case s.NextAddress != "":
			return Item{Label: "Serve at " + s.NextAddress, Action: UseNextPort, Available: true}
		case !s.Ready && s.Disk.TotalBytes > 0 && s.Disk.DoneBytes >= s.Disk.TotalBytes: // all there, and some of it wrong
			return Item{Label: "Repair", Action: Repair, Available: true}
		case !s.Ready:
			return Item{Label: "Try again", Action: Download, Available: true}
		}
		return Item{Label: "Try again", Action: Start, Available: true}
	}
	return Item{Label: "Start", Action: Start, Available: true}
}

// Menu is the tray menu of a state, rebuilt whole on every change: the next step, the state, then what is always there. The next step stands first, so that a click
// on the icon and one below it are enough.
func Menu(s State) []Item {
	items := []Item{s.Next(), {Label: s.Line()}}
	if s.Job.Kind != NoJob && s.Phase != Downloading && s.Phase != Verifying {
		items = append(items, Item{Label: s.Job.Line()})
	}
	if line := s.ContextLine(); line != "" {
		items = append(items, Item{Label: line})
	}
	if line := s.Update.Line(); line != "" {
		items = append(items, Item{Label: line})
	}
	if note := s.MemoryNote(); note != "" && s.Phase.Serving() {
		items = append(items, Item{Label: note})
	}
	if v := s.Verdict; v.Anyway && !v.Allowed && s.Ready && (s.Phase == Stopped || s.Phase == Failed) {
		items = append(items, Item{Label: "Start anyway, and slowly", Action: StartAnyway, Available: true})
	}
	if s.Phase == Failed && s.Ready && s.NextAddress != "" {
		items = append(items, Item{Label: "Try again", Action: Start, Available: true})
	}
	if s.Phase == Paused {
		items = append(items, Item{Label: "Stop", Action: Stop, Available: true})
	}
	serving := s.Phase.Serving()
	items = append(items, Item{},
		Item{Label: "Copy endpoint URL", Action: CopyEndpoint, Available: serving},
		Item{Label: "Copy snippet", Available: serving, Children: []Item{
			{Label: "curl", Action: CopyCurl, Available: serving},
			{Label: "Python", Action: CopyPython, Available: serving},
			{Label: "JavaScript", Action: CopyJavaScript, Available: serving},
			{Label: "Environment variables", Action: CopyEnvironment, Available: serving},
		}},
		Item{},
		Item{Label: "Chat", Action: OpenChat, Available: true},
		Item{Label: "Model", Action: OpenModel, Available: true},
		Item{Label: "Settings", Action: OpenSettings, Available: true},
		Item{Label: "Logs", Action: OpenLogs, Available: true})
	if u := s.Update; u.Own {
		items = append(items, Item{Label: "Check for updates now", Action: CheckUpdates, Available: !u.Looking && !u.Ready})
	}
	items = append(items, Item{})
	unload := Item{Label: "Unload now", Action: Unload, Available: serving && !s.Unloaded}
	if unload.Available && s.UnloadBytes > 0 {
		unload.Label += " (frees " + memgate.Bytes(uint64(s.UnloadBytes)) + ")"
	}
	pausable := s.Phase == Running || s.Phase == Busy
	return append(items, unload,
		Item{Label: "Pause until", Available: pausable, Children: []Item{
			{Label: "In 15 minutes", Action: PauseQuarter, Available: pausable},
			{Label: "In an hour", Action: PauseHour, Available: pausable},
			{Label: "Tomorrow morning", Action: PauseTomorrow, Available: pausable},
		}},
		Item{Label: "Let other apps go first", Action: ToggleQuiet, Available: true, Checked: s.Quiet},
		Item{},
		Item{Label: "Quit", Action: Quit, Available: true})
}
