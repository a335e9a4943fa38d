package inference

import "fmt"

// unknownExecutor is the error for a name that no build knows, or that this one was made without.
func unknownExecutor(x Executor) error {
	if x == Standin {
		return fmt.Errorf("executor %s: this version of Pond does not have it, want auto or host", x)
	}
	return fmt.Errorf("executor: got %q, want auto, host, metal or standin", x)
}

// ParseExecutor reads an executor's name.
func ParseExecutor(s string) (Executor, error) {
	switch x := Executor(s); x {
	case Auto, Host, Metal, Standin:
		return x, nil
	default:
		return "", unknownExecutor(x)
	}
}
