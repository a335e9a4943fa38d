package app

import (
	"context"
	"reflect"
	"time"
)

// menuCalm is how long a menu stays when only its words change: on Linux a menu that is open while it is rebuilt loses the click, because
// every entry gets a new number. What can be chosen is never late.
const menuCalm = 5 * time.Second

// WatchMenu calls draw with the present menu and then with every later one until ctx is done: at once where other things can be chosen, after a
// while where only words changed, and never for nothing.
func (p *Pond) WatchMenu(ctx context.Context, draw func(State)) {
	var drawn []Item
	var at time.Time
	for {
		p.mu.Lock()
		s, changed := p.state, p.changed
		p.mu.Unlock()
		menu := Menu(s)
		var later <-chan time.Time
		if !reflect.DeepEqual(menu, drawn) || drawn == nil {
			wait := menuCalm - time.Since(at)
			if drawn == nil || wait <= 0 || !sameChoices(menu, drawn) {
				drawn, at = menu, time.Now()
				draw(s)
			} else {
				later = time.After(wait)
			}
		}
		select {
		case <-changed:
		case <-later:
		case <-ctx.Done():
			return
		}
	}
}

// sameChoices reports whether two menus offer the same, in the same places, whatever their words.
func sameChoices(a, b []Item) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Action != b[i].Action || a[i].Available != b[i].Available || a[i].Checked != b[i].Checked || a[i].Separator() != b[i].Separator() || !sameChoices(a[i].Children, b[i].Children) {
			return false
		}
	}
	return true
}
