package app

import (
	"math"
	"time"

	"pond/inference/checkpoint/adopt"
)

// JobKind is what is done to a model's files.
type JobKind int

// The jobs; one at a time.
const (
	NoJob JobKind = iota
	DownloadJob
	VerifyJob
	RepairJob // reads all, and downloads what is wrong
	AdoptJob  // verifies another tool's copy, and takes it
	RemoveJob
)

// Job is how far a job is.
type Job struct {
	Kind      JobKind
	Model     string
	Paused    bool // of a download: by the user; what came is kept
	DoneBytes int64
	// TotalBytes is of all files, what was there before the job included.
	TotalBytes int64
	Rate       float64       // bytes a second; 0: unknown
	ETA        time.Duration // time left; 0: unknown. It counts down and does not jump
	Offline    bool          // there is no network; it is waited for
	Waiting    bool          // no source delivers at the moment
	Reading    bool          // of a download: files that are there are verified first
	Trouble    string        // what went wrong last, where the job goes on all the same; or why the last one ended, while another model runs
	Files      []FileProgress
}

// Percent is how far the job is, from 0 to 100.
func (j Job) Percent() int {
	if j.TotalBytes <= 0 {
		return 0
	}
	return int(min(100, max(0, j.DoneBytes*100/j.TotalBytes)))
}

// Fraction is how far the job is, from 0 to 1.
func (j Job) Fraction() float64 {
	if j.TotalBytes <= 0 {
		return 0
	}
	return min(1, max(0, float64(j.DoneBytes)/float64(j.TotalBytes)))
}

// FileProgress is how far one file is.
type FileProgress struct {
	Name                  string
	DoneBytes, TotalBytes int64
	Verified              bool
}

// AdoptMode is how another tool's copy becomes Pond's.
type AdoptMode = adopt.Mode

// The modes that a window offers.
const (
	AdoptInPlace = adopt.InPlace // a link: takes no room, and is lost when the other tool removes its copy
	AdoptClone   = adopt.Clone   // shares the blocks: takes no room and outlives the other tool's copy, where the disk can
	AdoptCopy    = adopt.Copy    // takes the room a second time
)

// Copy is another tool's copy of a model, judged by names and sizes alone.
type Copy struct {
	Tool         string // "Hugging Face", "LM Studio", "oMLX"
	Dir          string
	Bytes        int64 // of the files that are there
	MissingBytes int64 // what would be downloaded afterwards

	candidate adopt.Candidate
}

// countdown makes of a rate that jumps a time left that does not: it counts down by itself, and is set anew only when what the rate says is
// off by more than a fifth for a while.
type countdown struct {
	end      time.Time // when it will be over; zero: unknown
	offSince time.Time // since when the rate has said something else; zero: it agrees
}

const (
	countdownSlack = 0.2 // of the time left
	countdownOff   = 5 * time.Second
)

// left is the time left at now, told that the rate says guess; guess 0 is unknown.
func (c *countdown) left(now time.Time, guess time.Duration) time.Duration {
	if guess <= 0 {
		c.end, c.offSince = time.Time{}, time.Time{}
		return 0
	}
	shown := c.end.Sub(now)
	off := math.Abs(float64(guess-shown)) > countdownSlack*float64(max(guess, shown))+float64(2*time.Second)
	switch {
	case c.end.IsZero():
		c.end = now.Add(guess)
	case !off:
		c.offSince = time.Time{}
		c.end = c.end.Add((guess - shown) / 16) // leans towards the rate, slower than the clock runs
	case c.offSince.IsZero():
		c.offSince = now
	case now.Sub(c.offSince) >= countdownOff:
		c.end, c.offSince = now.Add(guess), time.Time{}
	}
	return max(time.Second, c.end.Sub(now))
}
