package app

// Action is what choosing a menu entry asks for; the composition carries it out.
type Action int

// The actions; NoAction entries only inform.
const (
	NoAction Action = iota
	Start
	Stop
	CopyEndpoint
	OpenWindow
	Quit
)

// Item is one menu entry.
type Item struct {
	Label     string // empty: a separator
	Action    Action
	Available bool
}

// Separator reports whether the item is a line between groups.
func (i Item) Separator() bool { return i.Label == "" }

// Menu is the tray menu of a state, rebuilt whole on every change: the state, the one next step, then what is always there.
func Menu(s State) []Item {
	next := Item{"Start", Start, true}
	switch s.Phase {
	case Running:
		next = Item{"Stop", Stop, true}
	case Loading:
		next = Item{"Cancel loading", Stop, true}
	case Failed:
		next = Item{"Try again", Start, true}
	}
	return []Item{
		{Label: s.Line()},
		next,
		{},
		{"Copy endpoint URL", CopyEndpoint, s.Phase == Running},
		{"Open Pond", OpenWindow, true},
		{},
		{"Quit", Quit, true},
	}
}
