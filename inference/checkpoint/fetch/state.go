package fetch

import (
	"bytes"
	"crypto/sha256"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"maps"
	"os"

	"pond/inference/checkpoint/disk"
	"pond/inference/checkpoint/manifest"
)

// A state file, NAME.part.state, tells what NAME.part holds. It is JSON, at most stateMaxBytes long:
//
//	version     number            1; another one is a file of another Pond, and the download starts anew
//	name        string            name of the file in the manifest
//	bytes       number            its size there
//	sha256      string            its digest there, hexadecimal
//	front       number            bytes from the start that went through the hash
//	hash        string            base64 of the hash after them: crypto/sha256's MarshalBinary
//	have        [[number,number]] bytes on the disk, as [from, to): in order, disjoint; they include [0, front)
//	validators  {string: string}  strong ETag by "source host", as last sent
//
// It is written after the bytes it tells of were synced, and replaced in one step. So it may tell less than the disk holds, never more.
// What lies before the front was hashed when it came and is not read again on the way: whoever writes into a part meanwhile is found
// out by `pond verify`, which reads every byte.
type state struct {
	Version    int               `json:"version"`
	Name       string            `json:"name"`
	Bytes      int64             `json:"bytes"`
	SHA256     manifest.Digest   `json:"sha256"`
	Front      int64             `json:"front"`
	Hash       []byte            `json:"hash"`
	Have       [][2]int64        `json:"have"`
	Validators map[string]string `json:"validators,omitempty"`
}

const (
	stateVersion  = 1
	stateMaxBytes = 1 << 20
)

// PartialBytes tells how much of a file an interrupted download left in dir; 0 where there is nothing to take up.
func PartialBytes(dir string, f manifest.File) int64 {
	s, err := readState(dir, f)
	if err != nil {
		return 0
	}
	var n int64
	for _, e := range s.Have {
		n += e[1] - e[0]
	}
	return n
}

// readState reads what is known of f's part in dir. It is fs.ErrNotExist where there is none, and any other error where it does not
// fit f or the part.
func readState(dir string, f manifest.File) (state, error) {
	var s state
	file := dir + "/" + f.Name + StateSuffix
	info, err := os.Stat(file)
	if err != nil {
		return s, err
	}
	if info.Size() > stateMaxBytes {
		return s, fmt.Errorf("state: got %d bytes, want at most %d", info.Size(), stateMaxBytes)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("state: %w", err)
	}
	if err := s.check(f); err != nil {
		return s, fmt.Errorf("state: %w", err)
	}
	part, err := os.Stat(dir + "/" + f.Name + PartSuffix)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, errors.New("state: got none of the bytes it tells of")
	case err != nil:
		return s, err
	case part.Size() != f.Bytes:
		return s, fmt.Errorf("state: got a part of %d bytes, want %d", part.Size(), f.Bytes)
	}
	return s, nil
}

func (s state) check(f manifest.File) error {
	switch {
	case s.Version != stateVersion:
		return fmt.Errorf("version: got %d, want %d", s.Version, stateVersion)
	case s.Name != f.Name || s.Bytes != f.Bytes || s.SHA256 != f.SHA256:
		return fmt.Errorf("got %s of %d bytes, SHA-256 %s; want %s of %d bytes, %s", s.Name, s.Bytes, s.SHA256, f.Name, f.Bytes, f.SHA256)
	}
	at := int64(0)
	for i, e := range s.Have {
		if e[0] < at || e[1] <= e[0] || e[1] > f.Bytes {
			return fmt.Errorf("have[%d]: got %v, want a range from %d on within %d bytes", i, e, at, f.Bytes)
		}
		at = e[1]
	}
	if s.Front < 0 || s.Front > 0 && (len(s.Have) == 0 || s.Have[0][0] != 0 || s.Have[0][1] < s.Front) {
		return fmt.Errorf("front: got %d, want it within the first range", s.Front)
	}
	return nil
}

// resume returns the hash and the bytes that it went through. A hash that this version of Go does not understand begins again at 0:
// the bytes are there and are read once more.
func (s state) resume() (hash.Hash, int64) {
	h := sha256.New()
	if s.Front > 0 && h.(encoding.BinaryUnmarshaler).UnmarshalBinary(s.Hash) == nil {
		// The length inside the hash must be the front's: the last eight bytes, big-endian.
		if again, err := h.(encoding.BinaryMarshaler).MarshalBinary(); err == nil && bytes.Equal(again, s.Hash) && hashedBytes(again) == s.Front {
			return h, s.Front
		}
	}
	return sha256.New(), 0
}

// hashedBytes is the count at the end of a marshalled SHA-256.
func hashedBytes(marshalled []byte) int64 {
	if len(marshalled) < 8 {
		return -1
	}
	var n int64
	for _, b := range marshalled[len(marshalled)-8:] {
		n = n<<8 | int64(b)
	}
	return n
}

// newState puts together what is to be remembered; the bytes of have are written, not yet synced.
func newState(f manifest.File, h hash.Hash, front int64, have extents, validators map[string]string) (state, error) {
	s := state{Version: stateVersion, Name: f.Name, Bytes: f.Bytes, SHA256: f.SHA256, Front: front, Validators: maps.Clone(validators)}
	for _, e := range have {
		s.Have = append(s.Have, [2]int64{e.from, e.to})
	}
	var err error
	s.Hash, err = h.(encoding.BinaryMarshaler).MarshalBinary()
	return s, err
}

func (s state) write(dir string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return disk.Replace(dir+"/"+s.Name+StateSuffix, append(text, '\n'))
}
