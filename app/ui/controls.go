package ui

import (
	"pond/app"
	"pond/app/chats"
)

// ControlsOf leads what the windows ask for to a Pond. do is for all actions that open no window here; the store may be one of NewStore.
func ControlsOf(p *app.Pond, store *chats.Store, do func(app.Action)) Controls {
	return Controls{
		Do: do, Chats: store, Front: app.Activate, Version: app.Version, Built: app.BuiltFrom().Words(),
		CommandLine: app.CommandLine, SetCommand: app.SetCommandLine,
		Settings: p.Settings, SaveSettings: p.SaveSettings,
		LoginItem: p.StartAtLogin, SetLoginItem: p.SetStartAtLogin,
		Adopt: p.Adopt, CopiesIn: p.CopiesIn, Remove: p.Remove, Forget: p.ClearConversations, Reveal: p.Reveal,
		Log: func() ([]string, string, error) { return p.LogTail(logLines) },
	}
}

// logLines is how much of the log is shown.
const logLines = 2000

// NewStore is the chats of a folder, answered by a Pond's model.
func NewStore(p *app.Pond, dir string) *chats.Store {
	return chats.New(dir, chats.FromEngine(p.Chat, func() bool {
		s := p.State()
		return s.Phase.Serving() || s.Phase == app.Loading || s.Phase == app.Stopped && s.Ready // a question starts it
	}))
}
