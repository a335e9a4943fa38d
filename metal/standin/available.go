package standin

// Available says why the stand-in does not run on this machine; nil when it does. It builds and opens nothing.
func Available() error {
	_, err := findCompiler()
	return err
}
