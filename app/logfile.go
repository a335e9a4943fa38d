package app

// LogFile is where Pond's log is kept.
type LogFile struct{ Path string }
