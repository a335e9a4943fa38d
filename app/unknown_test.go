package app

import (
	"strings"
	"testing"

	"pond/app/settings"
)

// TestAModelThatPondDoesNotKnow: a wrong name in the settings offered a download that could not begin, or a window with nothing to do in it. What helps is another
// name, and the reason says which there are.
func TestAModelThatPondDoesNotKnow(t *testing.T) {
	for name, want := range map[string]string{"nonsense": "built in: pond-demo", "/nowhere/model": "no model in this folder"} {
		p, _ := homeOf(t, func(_ *Home, s *settings.Settings) { s.Model = name })
		s := p.State()
		if next := s.Next(); s.Phase != NeedModel || next.Action != OpenSettings || next.Label != "Choose another model" || !next.Available {
			t.Errorf("%s: got %v and %+v, want that another model is chosen", name, s.Phase, next)
		}
		if !strings.Contains(s.Line(), name) || !strings.Contains(s.Line(), want) {
			t.Errorf("%s: got %q, want %q in it", name, s.Line(), want)
		}
		chosen := p.Settings()
		chosen.Model = DemoModel
		if err := p.SaveSettings(chosen); err != nil {
			t.Fatal(err)
		}
		if s := p.State(); !s.Ready || s.Disk.Unknown {
			t.Errorf("after another was chosen: got %+v", s.Disk)
		}
	}
}
