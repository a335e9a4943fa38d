package cache

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// A snapshot on the disk is one file of states, and a chain of files of rows that leads to it, shared with the snapshots that begin alike.
// Both kinds have the same form; all numbers are little-endian.
//
//	offset   bytes  what
//	0        8      "PONDKV\r\n"
//	8        4      version, 1
//	12       4      kind: 1 rows, 2 states
//	16       32     Key: what the numbers depend on besides the tokens
//	48       16     id of the piece of rows; states stand behind a piece
//	64       16     id of the piece before; zeros at position 0, and in a file of states
//	80       8      position before the piece
//	88       8      position behind it
//	96       4      number of sections, n
//	100      4      zero
//	104      16 n   each section: bytes (8), CRC-32C of them (4), zero (4)
//	104+16n  4      CRC-32C of all before
//	108+16n         the sections, one behind the other. Rows: the tokens, 4 bytes each, then the rows of each buffer that has such, in the
//	                order of the Specs. States: the other buffers, in that order
//
// Bit 31 of a token says that a run ended behind it, bit 30 that the run was a step: how the piece was computed, see State.Took.
//
// An id is the first half of the SHA-256 of the key, the id before, the tokens, and the checksums of the rows: it names the piece by what it
// holds and by what it builds on, so a chain cannot be put together of pieces from different runs, whose numbers may differ in their last bits.
const (
	fileMagic   = "PONDKV\r\n"
	fileVersion = 1
	fixedBytes  = 104
	entryBytes  = 16
	maxSections = 1024
	maxHeader   = fixedBytes + maxSections*entryBytes + 4
)

// fileKind is what a file holds.
type fileKind uint32

const (
	rowsFile   fileKind = 1
	statesFile fileKind = 2
)

// suffix is how the names of such files end.
func (k fileKind) suffix() string {
	if k == rowsFile {
		return ".rows"
	}
	return ".states"
}

// Key is what the numbers of a snapshot depend on besides its tokens.
type Key [sha256.Size]byte

// KeyOf makes a key of facts, each of which may change the last bits of a state, and of the layout of a sequence.
func KeyOf(facts []string, specs []Spec) Key {
	h := sha256.New()
	for _, f := range facts {
		fmt.Fprintf(h, "%q\n", f)
	}
	for _, sp := range specs {
		length := sp.LenBytes
		if sp.RowBytes > 0 {
			length = 0 // how many rows there may be changes none of them
		}
		fmt.Fprintf(h, "%q %d %d\n", sp.Name, length, sp.RowBytes)
	}
	return Key(h.Sum(nil))
}

// pieceID names a piece of rows.
type pieceID [16]byte

func (id pieceID) String() string { return hex.EncodeToString(id[:]) }

// header is what a file says of itself.
type header struct {
	kind     fileKind
	key      Key
	id, prev pieceID
	from, to int
	sections []section
}

type section struct {
	lenBytes int64
	crc      uint32
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errFile says that a file is none of this format: damaged, cut off, or of another version or key.
var errFile = errors.New("not a file of this cache")

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errFile}, args...)...)
}

func (h header) lenBytes() int64 {
	n := int64(fixedBytes + entryBytes*len(h.sections) + 4)
	for _, s := range h.sections {
		n += s.lenBytes
	}
	return n
}

func (h header) encode() []byte {
	b := make([]byte, 0, fixedBytes+entryBytes*len(h.sections)+4)
	b = append(b, fileMagic...)
	le := binary.LittleEndian
	b = le.AppendUint32(b, fileVersion)
	b = le.AppendUint32(b, uint32(h.kind))
	b = append(b, h.key[:]...)
	b = append(b, h.id[:]...)
	b = append(b, h.prev[:]...)
	b = le.AppendUint64(b, uint64(h.from))
	b = le.AppendUint64(b, uint64(h.to))
	b = le.AppendUint32(b, uint32(len(h.sections)))
	b = le.AppendUint32(b, 0)
	for _, s := range h.sections {
		b = le.AppendUint64(b, uint64(s.lenBytes))
		b = le.AppendUint32(b, s.crc)
		b = le.AppendUint32(b, 0)
	}
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// readHeader reads and checks a header, against the key, the layout and the size of the file. Nothing larger than the layout allows is ever
// allocated.
func readHeader(r io.ReaderAt, sizeBytes int64, key Key, specs []Spec) (h header, err error) {
	fixed := make([]byte, fixedBytes)
	if _, err := r.ReadAt(fixed, 0); err != nil {
		return h, wrong("header: %v", err)
	}
	le := binary.LittleEndian
	if string(fixed[:8]) != fileMagic {
		return h, wrong("got %q at its beginning", fixed[:8])
	}
	if v := le.Uint32(fixed[8:]); v != fileVersion {
		return h, wrong("got version %d, want %d", v, fileVersion)
	}
	h.kind = fileKind(le.Uint32(fixed[12:]))
	copy(h.key[:], fixed[16:])
	copy(h.id[:], fixed[48:])
	copy(h.prev[:], fixed[64:])
	from, to, n := le.Uint64(fixed[80:]), le.Uint64(fixed[88:]), le.Uint32(fixed[96:])
	if h.key != key {
		return h, wrong("got another key")
	}
	if from >= to || to > 1<<31 || n > maxSections || h.kind != rowsFile && h.kind != statesFile {
		return h, wrong("got kind %d, positions %d to %d, %d sections", h.kind, from, to, n)
	}
	h.from, h.to = int(from), int(to)
	table := make([]byte, entryBytes*n+4)
	if _, err := r.ReadAt(table, fixedBytes); err != nil {
		return h, wrong("header: %v", err)
	}
	crc := crc32.Update(crc32.Checksum(fixed, castagnoli), castagnoli, table[:len(table)-4])
	if got := le.Uint32(table[len(table)-4:]); got != crc {
		return h, wrong("header: got checksum %08x, want %08x", got, crc)
	}
	for i := range int(n) {
		h.sections = append(h.sections, section{int64(le.Uint64(table[entryBytes*i:])), le.Uint32(table[entryBytes*i+8:])})
	}
	want := sectionBytes(h.kind, specs, h.to-h.from)
	if len(want) != len(h.sections) {
		return h, wrong("got %d sections, want %d", len(h.sections), len(want))
	}
	for i, s := range h.sections {
		if s.lenBytes != want[i] {
			return h, wrong("section %d: got %d bytes, want %d", i, s.lenBytes, want[i])
		}
	}
	if got := h.lenBytes(); got != sizeBytes {
		return h, wrong("got %d bytes, want %d", sizeBytes, got)
	}
	return h, nil
}

// sectionBytes is the layout of a file over so many positions.
func sectionBytes(k fileKind, specs []Spec, positions int) (lengths []int64) {
	if k == rowsFile {
		lengths = append(lengths, 4*int64(positions))
	}
	for _, sp := range specs {
		switch {
		case k == rowsFile && sp.RowBytes > 0:
			lengths = append(lengths, sp.RowBytes*int64(positions))
		case k == statesFile && sp.RowBytes == 0:
			lengths = append(lengths, sp.LenBytes)
		}
	}
	return lengths
}

// readSection reads one section of a file, and checks it.
func readSection(r io.ReaderAt, h header, i int) ([]byte, error) {
	off := int64(fixedBytes + entryBytes*len(h.sections) + 4)
	for _, s := range h.sections[:i] {
		off += s.lenBytes
	}
	b := make([]byte, h.sections[i].lenBytes)
	if _, err := r.ReadAt(b, off); err != nil {
		return nil, wrong("section %d: %v", i, err)
	}
	if crc := crc32.Checksum(b, castagnoli); crc != h.sections[i].crc {
		return nil, wrong("section %d: got checksum %08x, want %08x", i, crc, h.sections[i].crc)
	}
	return b, nil
}

// identify is the id of a piece of rows; the first section is its tokens, whose bytes are given.
func (h header) identify(tokens []byte) (id pieceID) {
	d := sha256.New()
	d.Write(h.key[:])
	d.Write(h.prev[:])
	d.Write(tokens)
	for _, s := range h.sections[1:] {
		d.Write(binary.LittleEndian.AppendUint32(nil, s.crc))
	}
	copy(id[:], d.Sum(nil))
	return id
}

// describe makes the header of sections that are about to be written; the id of a piece is to be filled in.
func describe(k fileKind, key Key, from, to int, data [][]byte) header {
	h := header{kind: k, key: key, from: from, to: to}
	for _, d := range data {
		h.sections = append(h.sections, section{int64(len(d)), crc32.Checksum(d, castagnoli)})
	}
	return h
}

// The marks of a token.
const (
	runEnds = 1 << 31
	runStep = 1 << 30
)

// tokenBytes are tokens with their marks.
func tokenBytes(tokens, runs []int32) ([]byte, error) {
	marks := make([]uint32, len(tokens))
	at := int32(0)
	for _, n := range runs {
		mark := uint32(runEnds)
		if n < 0 {
			n, mark = 1, runEnds|runStep
		}
		if at += n; int(at) > len(tokens) {
			return nil, fmt.Errorf("cache: got runs over %d of %d positions", at, len(tokens))
		}
		marks[at-1] = mark
	}
	b := make([]byte, 0, 4*len(tokens))
	for i, t := range tokens {
		b = binary.LittleEndian.AppendUint32(b, uint32(t)|marks[i])
	}
	return b, nil
}

// tokensOf is tokenBytes the other way round.
func tokensOf(b []byte) (tokens, runs []int32) {
	tokens = make([]int32, len(b)/4)
	n := int32(0)
	for i := range tokens {
		t := binary.LittleEndian.Uint32(b[4*i:])
		tokens[i] = int32(t &^ (runEnds | runStep))
		n++
		switch {
		case t&runEnds == 0:
		case t&runStep != 0 && n == 1:
			runs, n = append(runs, -1), 0
		default:
			runs, n = append(runs, n), 0
		}
	}
	return tokens, runs
}

// How much is written between two looks at whether to go on, and between two waits for the disk: what bounds the time after a cancel.
const (
	blockBytes = 4 << 20
	syncBytes  = 32 << 20
)

// writeFile writes a file beside its place and renames it: at every moment the place holds a whole file or none. The file is its owner's alone.
func writeFile(ctx context.Context, dir, name string, h header, data [][]byte) (err error) {
	f, err := os.CreateTemp(dir, "*"+partSuffix) // made with 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}()
	if _, err := f.Write(h.encode()); err != nil {
		return err
	}
	unsynced := 0
	for _, d := range data {
		for len(d) > 0 {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			n := min(len(d), blockBytes)
			if _, err := f.Write(d[:n]); err != nil {
				return err
			}
			d = d[n:]
			if unsynced += n; unsynced >= syncBytes {
				unsynced = 0
				if err := f.Sync(); err != nil {
					return err
				}
			}
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), dir+string(os.PathSeparator)+name); err != nil {
		return err
	}
	return f.Close() // nothing is left to be written
}

// partSuffix is how the names of files end that are being written.
const partSuffix = ".part"
