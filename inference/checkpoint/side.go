package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// maxSideFileBytes bounds a side file: the largest of the real checkpoint, tokenizer.json, has 20 MB.
const maxSideFileBytes = 256 << 20

// ReadSide reads a small file beside the weights, such as config.json, out of a model's directory. Everybody reads them so, before a
// checkpoint is open and after: a pipe, which would wait for a writer, a device, which never ends, and a file too large to be meant are
// errors. A missing file is an error for which errors.Is(err, fs.ErrNotExist) holds.
func ReadSide(fsys fs.FS, name string) ([]byte, error) {
	if !plainName(name) {
		return nil, fmt.Errorf("model file: got the name %q, want one without a folder", name)
	}
	data, err := readSide(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("model file %s: %w", name, err)
	}
	return data, nil
}

func readSide(fsys fs.FS, name string) ([]byte, error) {
	return readRegular(fsys, name, maxSideFileBytes)
}

// readRegular reads a regular file of at most limit bytes.
func readRegular(fsys fs.FS, name string, limit int64) ([]byte, error) {
	info, err := fs.Stat(fsys, name) // before opening: opening a named pipe would wait for a writer
	if err != nil {
		return nil, err
	}
	if err := regular(info); err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("got %d bytes, want at most %d", info.Size(), limit)
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out bytes.Buffer
	out.Grow(int(info.Size()) + bytes.MinRead)
	// One byte more than was announced tells a file that grows, or that some systems give no size.
	if n, err := io.Copy(&out, io.LimitReader(f, info.Size()+1)); err != nil {
		return nil, err
	} else if n != info.Size() {
		return nil, fmt.Errorf("got a file that changes while it is read, or has another length than its %d bytes", info.Size())
	}
	return out.Bytes(), nil
}

// regular refuses what is not a file of bytes, in words.
func regular(info fs.FileInfo) error {
	kind := "something else"
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		kind = "a folder"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	}
	return fmt.Errorf("got %s, want a regular file", kind)
}

// Object reads a JSON text that is one object. Errors are in the words of the text, not of Go.
func Object(text []byte) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("%w, want a JSON object", jsonError(err))
	}
	if fields == nil {
		return nil, errors.New("got null, want a JSON object")
	}
	return fields, nil
}

// jsonError says what encoding/json found without its prefix and the names of Go's types.
func jsonError(err error) error {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &kind):
		return fmt.Errorf("got %s", kind.Value) // such as array, string, number -1
	case errors.As(err, &syntax):
		if syntax.Error() == "unexpected end of JSON input" {
			return noEOF(io.ErrUnexpectedEOF)
		}
		return fmt.Errorf("got no JSON at byte %d: %w", syntax.Offset, err)
	}
	return err
}
