package cache

import (
	"bytes"
	"encoding/hex"
	"os"
	"slices"
	"testing"
)

// A change of the format has to change its version: the bytes of a small file are these.
func TestFileIsTheTable(t *testing.T) {
	data := [][]byte{twoTokens(t), {1, 2, 3, 4, 5, 6, 7, 8}}
	h := describe(rowsFile, KeyOf([]string{"a"}, fakeSpecs()), 0, 2, data)
	h.id = h.identify(data[0])
	got := hex.EncodeToString(h.encode())
	const want = "504f4e444b560d0a" + "01000000" + "01000000" + // magic, version, kind
		"4a6c1c5f0b67e080d9c46023572f11bd5434f7b7a69fc50e45e3c896dee4faef" + // key
		"04eefd3188df9143f5e704107265ff93" + "00000000000000000000000000000000" + // id, id before
		"0000000000000000" + "0200000000000000" + "02000000" + "00000000" + // positions, sections
		"0800000000000000" + "68d43580" + "00000000" + "0800000000000000" + "811f8946" + "00000000" + "bc254700" // tokens, rows, checksum
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if h.lenBytes() != int64(len(got)/2+16) {
		t.Errorf("got %d bytes in all, want %d", h.lenBytes(), len(got)/2+16)
	}
}

func twoTokens(t testing.TB) []byte {
	b, err := tokenBytes([]int32{7, 8}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// How a piece was computed is kept with its tokens.
func TestRunsAreKeptWithTheTokens(t *testing.T) {
	for _, runs := range [][]int32{nil, {3}, {-1, -1, 1}, {2, -1}, {1, -1, -1}} {
		b, err := tokenBytes([]int32{7, 1<<30 - 1, 0}, runs)
		if err != nil {
			t.Fatal(err)
		}
		tokens, got := tokensOf(b)
		if !slices.Equal(tokens, []int32{7, 1<<30 - 1, 0}) || !slices.Equal(got, runs) {
			t.Errorf("got %v, %v, want the tokens and %v", tokens, got, runs)
		}
	}
	if _, err := tokenBytes([]int32{7}, []int32{1, -1}); err == nil {
		t.Error("runs over more than there is: got no error")
	}
}

// FuzzFile: whatever the bytes of a file, reading it ends, takes no more memory than the layout has, and gives what was written or an error.
func FuzzFile(f *testing.F) {
	key := KeyOf(nil, fakeSpecs())
	file := func(k fileKind, data ...[]byte) []byte {
		h := describe(k, key, 0, 2, data)
		if k == rowsFile {
			h.id = h.identify(data[0])
		}
		return append(h.encode(), bytes.Join(data, nil)...)
	}
	rows := file(rowsFile, twoTokens(f), []byte{1, 2, 3, 4, 5, 6, 7, 8})
	states := file(statesFile, []byte{1, 2, 3, 4})
	f.Add(rows)
	f.Add(states)
	f.Add(rows[:60])
	f.Add([]byte(fileMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := readHeader(bytes.NewReader(b), int64(len(b)), key, fakeSpecs())
		if err != nil {
			return
		}
		var data [][]byte
		for i := range h.sections {
			d, err := readSection(bytes.NewReader(b), h, i)
			if err != nil {
				return
			}
			data = append(data, d)
		}
		if again := append(h.encode(), bytes.Join(data, nil)...); !bytes.Equal(again, b) {
			t.Errorf("a file that was read is not what its parts make")
		}
	})
}

// FuzzFolder: whatever lies in a file of a folder, it is opened and read from without a fault.
func FuzzFolder(f *testing.F) {
	f.Add([]byte("PONDKV\r\n"), true)
	f.Fuzz(func(t *testing.T, b []byte, rows bool) {
		dir := t.TempDir()
		d := openDisk(t, dir, 1<<20)
		newFake(t, newDevice(t)).talk(d, NewStore(1<<20), seq(0, 30), 10, 20)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		suffix := statesFile.suffix()
		if rows {
			suffix = rowsFile.suffix()
		}
		if err := os.WriteFile(filesOf(t, dir, suffix)[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
		newFake(t, newDevice(t)).resume(openDisk(t, dir, 1<<20), seq(0, 30))
	})
}
