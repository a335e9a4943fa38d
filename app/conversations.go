package app

import (
	"context"
	"time"

	"pond/app/settings"
	"pond/inference"
	"pond/inference/cache"
)

// restSaveTime bounds how long a model that is let go writes conversations first; what wakes it waits for that.
const restSaveTime = 20 * time.Second

// saveConversations writes what is kept of conversations, so that the model finds it when it is loaded again.
func (p *Pond) saveConversations(e *inference.Engine) {
	ctx, cancel := context.WithTimeout(context.Background(), restSaveTime)
	defer cancel()
	e.Save(ctx)
}

// ClearConversations forgets all that is kept of conversations, in memory and on the disk. Chats stay.
func (p *Pond) ClearConversations() error {
	freed := int64(0)
	if e := p.Engine(); e != nil {
		freed = e.ClearDisk()
	}
	var err error
	if p.home != nil && p.home.Paths.Sessions != "" {
		if e := p.Engine(); e == nil || !e.Stats().Disk.On {
			var n int64
			n, err = cache.ClearFolder(p.home.Paths.Sessions)
			freed += n
		}
	}
	p.log("kept conversations cleared", "bytes", freed)
	p.Look()
	return err
}

// follow applies what the user changed to what runs.
func (p *Pond) follow(before, now settings.Settings) {
	e := p.Engine()
	if e != nil && now.Quiet != before.Quiet {
		e.Quiet(now.Quiet)
	}
	switch {
	case now.DiskGB == before.DiskGB:
	case now.DiskGB == 0:
		if e != nil {
			e.LimitDisk(0)
		}
		if err := p.ClearConversations(); err != nil {
			p.log("kept conversations cannot be cleared", "error", err)
		}
	case e != nil:
		e.LimitDisk(DiskOf(now, p.home.Paths).LimitBytes)
	}
}

// toggleQuiet lets other programs go first, or no longer, and remembers it.
func (p *Pond) toggleQuiet() {
	s := p.Settings()
	s.Quiet = !s.Quiet
	if err := p.SaveSettings(s); err != nil {
		p.log("the settings cannot be saved", "error", err)
	}
}
