package checkpoint

// A safetensors file is
//
//	8 bytes   length n of the header, little-endian
//	n bytes   header: one JSON object, possibly padded with spaces
//	the rest  data
//
// and the header maps each tensor's name to {"dtype","shape","data_offsets":[begin,end]}, offsets counted from the start
// of the data; "__metadata__" maps strings to strings. The rules are those of the official reader
// (huggingface/safetensors, safetensors/src/tensor.rs, read_metadata and validate):
//
//   - the header is at most 100,000,000 bytes, begins with '{' and is valid UTF-8;
//   - in order of their offsets the tensors follow one another from 0 to the end of the file: no hole, no overlap, no
//     byte left over. So a file with bytes cut off or added is always noticed;
//   - each range is exactly as long as dtype and shape say;
//   - no name comes twice (the format's text asks for this; Go's JSON reader would keep the last one silently);
//   - nothing is said about alignment: MLX does not pad headers, so a tensor may start at an odd offset.
//
// An unknown key inside a tensor's entry is ignored, as the official reader does.

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"unicode/utf8"
)

const maxHeaderBytes = 100_000_000

const metadataKey = "__metadata__"

// entry is one tensor of a header; begin and end count bytes from the start of the data.
type entry struct {
	name       string
	dtype      DType
	shape      []int
	begin, end uint64
}

// parseFile checks the header of a whole safetensors file and returns its tensors in order of their offsets, each with
// its window on data.
func parseFile(file string, data []byte) ([]Tensor, error) {
	if len(data) < 8 {
		return nil, fmt.Errorf("%s: got %d bytes, want at least the 8 of the header length", file, len(data))
	}
	headerBytes := binary.LittleEndian.Uint64(data)
	if headerBytes > maxHeaderBytes {
		return nil, fmt.Errorf("%s: header length: got %d, want at most %d", file, headerBytes, maxHeaderBytes)
	}
	if rest := uint64(len(data) - 8); headerBytes > rest {
		return nil, fmt.Errorf("%s: header length: got %d, want at most the %d bytes that follow it", file, headerBytes, rest)
	}
	header, body := data[8:8+headerBytes], data[8+headerBytes:]
	entries, err := parseHeader(header)
	if err != nil {
		return nil, fmt.Errorf("%s: header: %w", file, err)
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end), cmp.Compare(a.name, b.name))
	})
	var at uint64
	tensors := make([]Tensor, 0, len(entries))
	for _, e := range entries {
		if e.begin != at {
			return nil, fmt.Errorf("%s: tensor %s: got data from offset %d, want %d, where the data before it ends", file, e.name, e.begin, at)
		}
		if e.end > uint64(len(body)) {
			return nil, fmt.Errorf("%s: tensor %s: got data up to offset %d, want at most %d, the data bytes in the file", file, e.name, e.end, len(body))
		}
		tensors = append(tensors, Tensor{Name: e.name, DType: e.dtype, Shape: e.shape, Data: body[e.begin:e.end:e.end], File: file, at: int64(8 + headerBytes + e.begin)})
		at = e.end
	}
	if at != uint64(len(body)) {
		return nil, fmt.Errorf("%s: got %d data bytes, want %d as the header says", file, len(body), at)
	}
	return tensors, nil
}

// parseHeader reads the JSON header; each entry's range is as long as its dtype and shape say.
func parseHeader(header []byte) ([]entry, error) {
	if len(header) == 0 || header[0] != '{' {
		return nil, errors.New("want a JSON object that begins with {")
	}
	var entries []entry
	err := eachField(header, func(name string, value json.RawMessage) error {
		if name == metadataKey {
			var meta map[string]string
			if err := json.Unmarshal(value, &meta); err != nil {
				return fmt.Errorf("%s: %w, want a map of strings", metadataKey, jsonError(err))
			}
			return nil
		}
		e, err := parseEntry(name, value)
		if err != nil {
			return fmt.Errorf("tensor %s: %w", name, err)
		}
		entries = append(entries, e)
		return nil
	})
	return entries, err
}

func parseEntry(name string, value json.RawMessage) (entry, error) {
	e := entry{name: name}
	var shape, offsets []uint64
	var hasShape, hasOffsets bool
	err := eachField(value, func(key string, raw json.RawMessage) (err error) {
		switch key {
		case "dtype":
			if err = json.Unmarshal(raw, &e.dtype); err != nil {
				err = fmt.Errorf("%w, want a name", jsonError(err))
			}
		case "shape":
			hasShape = true
			shape, err = unsignedList(raw)
		case "data_offsets":
			hasOffsets = true
			offsets, err = unsignedList(raw)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return nil
	})
	if err != nil {
		return e, err
	}
	if e.dtype.Bits() == 0 {
		return e, fmt.Errorf("dtype: got %q, want one of safetensors", string(e.dtype))
	}
	if !hasShape {
		return e, errors.New("shape: missing")
	}
	if !hasOffsets {
		return e, errors.New("data_offsets: missing")
	}
	if len(offsets) != 2 || offsets[1] < offsets[0] {
		return e, fmt.Errorf("data_offsets: got %d, want a begin and an end not before it", offsets)
	}
	e.begin, e.end = offsets[0], offsets[1]

	lenBits := uint64(e.dtype.Bits())
	for _, dim := range shape {
		hi, lo := bits.Mul64(lenBits, dim)
		if hi != 0 || !fitsInt(dim) {
			return e, fmt.Errorf("shape: got %d, more elements than any file holds", shape)
		}
		lenBits = lo
		e.shape = append(e.shape, int(dim))
	}
	if lenBits%8 != 0 {
		return e, fmt.Errorf("%s %d: got %d bits, want whole bytes", e.dtype, shape, lenBits)
	}
	if got, want := e.end-e.begin, lenBits/8; got != want {
		return e, fmt.Errorf("got %d bytes (data_offsets %d), want %d for %s %d", got, offsets, want, e.dtype, shape)
	}
	return e, nil
}

// unsignedList reads a JSON array of whole numbers. Go's reader takes null for 0, which is refused here.
func unsignedList(raw json.RawMessage) ([]uint64, error) {
	var list []*uint64
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("%w, want an array of whole numbers", jsonError(err))
	}
	if list == nil {
		return nil, errors.New("got null, want an array of whole numbers")
	}
	out := make([]uint64, len(list))
	for i, v := range list {
		if v == nil {
			return nil, errors.New("got null, want a whole number")
		}
		out[i] = *v
	}
	return out, nil
}

// eachField calls f for each key of a JSON object in file order and refuses a key that comes twice, wrong UTF-8, and
// anything but white space behind the object.
func eachField(object []byte, f func(key string, value json.RawMessage) error) error {
	if !utf8.Valid(object) {
		return errors.New("want UTF-8 text")
	}
	dec := json.NewDecoder(bytes.NewReader(object))
	open, err := dec.Token()
	if err != nil {
		return noEOF(err)
	}
	if open != json.Delim('{') {
		return fmt.Errorf("got %v, want a JSON object", open)
	}
	seen := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return noEOF(err)
		}
		key, ok := token.(string)
		if !ok {
			return fmt.Errorf("got %v, want a name", token)
		}
		if seen[key] {
			return fmt.Errorf("%q: got the name twice, want it once", key)
		}
		seen[key] = true
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return noEOF(err)
		}
		if err := f(key, value); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return noEOF(err)
	}
	if token, err := dec.Token(); err != io.EOF {
		if err == nil {
			err = fmt.Errorf("got %v", token)
		}
		return fmt.Errorf("behind the object: %w, want nothing", err)
	}
	return nil
}

// noEOF turns the decoder's end of input, which inside an object is an error of the text, into words.
func noEOF(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errors.New("the JSON text ends too early")
	}
	return err
}
