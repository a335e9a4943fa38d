package standin

// hasV3 is a question for x86-64.
func hasV3() bool { return false }
