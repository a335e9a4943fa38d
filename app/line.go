package app

import (
	"fmt"
	"time"

	"pond/inference/memgate"
)

// Line is the state in a few words: the first line of the menu and of every window.
func (s State) Line() string {
	switch s.Phase {
	case NeedModel:
		switch lacks := s.Disk.LacksBytes(); {
		case s.Disk.Trouble != "":
			return s.Disk.Trouble
		case lacks > 0:
			return "Needs " + memgate.Bytes(uint64(lacks)) + " more on the disk"
		case s.Disk.DoneBytes > 0:
			return "Download stopped at " + percent(s.Disk.DoneBytes, s.Disk.TotalBytes)
		}
		return "Needs its model, " + memgate.Bytes(uint64(s.Disk.TotalBytes))
	case Downloading, Verifying:
		return s.Job.Line()
	case Loading:
		if s.Load.TotalBytes > 0 {
			return "Loading " + percent(s.Load.DoneBytes, s.Load.TotalBytes)
		}
		return "Loading"
	case Running:
		if s.Unloaded {
			return "Resting · " + s.Address
		}
		return "Running · " + s.Address
	case Busy:
		switch w := s.Work; {
		case w.PrefillTotal > 0 && w.PrefillDone < w.PrefillTotal:
			return "Busy · reading " + percent(int64(w.PrefillDone), int64(w.PrefillTotal))
		case w.TokensPerSecond >= 9.95:
			return fmt.Sprintf("Busy · %.0f tok/s", w.TokensPerSecond)
		case w.TokensPerSecond > 0:
			return fmt.Sprintf("Busy · %.1f tok/s", w.TokensPerSecond)
		}
		return "Busy"
	case Paused:
		text := "Paused"
		if !s.PausedUntil.IsZero() {
			text += " until " + s.PausedUntil.Format("15:04")
		}
		if s.PauseReason != "" {
			text += " · " + s.PauseReason
		}
		return text
	case Failed:
		return "Failed: " + s.Failure
	}
	if more := s.Verdict.MoreBytes(); more > 0 {
		return "Needs " + memgate.Bytes(uint64(more)) + " more"
	}
	return "Ready"
}

// Line is the job in a few words: "Downloading 43 % · 4 min"; empty where there is none.
func (j Job) Line() string {
	text := ""
	switch j.Kind {
	case NoJob:
		return ""
	case RemoveJob:
		return "Removing"
	case DownloadJob:
		switch {
		case j.Paused:
			return fmt.Sprintf("Download paused at %d %%", j.Percent())
		case j.Reading:
			return fmt.Sprintf("Verifying %d %%", j.Percent())
		}
		text = fmt.Sprintf("Downloading %d %%", j.Percent())
	case VerifyJob, AdoptJob:
		text = fmt.Sprintf("Verifying %d %%", j.Percent())
	case RepairJob:
		text = fmt.Sprintf("Repairing %d %%", j.Percent())
	}
	switch {
	case j.Offline:
		text += " · no network"
	case j.Waiting:
		text += " · waiting for a source"
	case j.ETA > 0:
		text += " · " + About(j.ETA)
	}
	return text
}

func percent(done, total int64) string {
	if total <= 0 {
		return "0 %"
	}
	return fmt.Sprintf("%d %%", min(100, max(0, done*100/total)))
}

// About is a duration as a person would say it.
func About(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours())/24)
}

// Tokens writes a number of tokens: "4096 tokens", "48K tokens".
func Tokens(n int) string { return memgate.Tokens(n) }
