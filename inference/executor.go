package inference

import "fmt"

// ParseExecutor reads an executor's name.
func ParseExecutor(s string) (Executor, error) {
	switch x := Executor(s); x {
	case Auto, Host, Metal, Standin:
		return x, nil
	}
	return "", fmt.Errorf("executor: got %q, want auto, host, metal or standin", s)
}

// Available says why an executor does not run on this machine or in this build; nil when it does. It opens nothing.
func Available(x Executor) error {
	if x == "" {
		x = Auto
	}
	if _, err := ParseExecutor(string(x)); err != nil {
		return err
	}
	return available(x)
}
