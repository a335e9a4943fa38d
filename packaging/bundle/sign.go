package bundle

import (
	"bytes"
	"crypto/sha256"
	"debug/macho"
	"encoding/binary"
	"errors"
	"fmt"
)

// The ad-hoc signature of an executable, as codesign makes it with the identity "-". Go's linker and LLVM's leave one over the pages alone; a
// bundle's covers its property list and resources too, so it is made anew at the same place, the end of the file. Layout (all big endian;
// source: osfmk/kern/cs_blobs.h and bsd/sys/codesign.h of XNU):
//
//	super blob      magic, length, count, then (slot, offset) of each blob
//	code directory  header of 96 bytes, identifier, hashes of the slots -3..-1, hashes of the pages
//	requirements    an empty set: an ad-hoc signature has no certificate that could be required
//	CMS             an empty wrapper
const (
	magicSuper        = 0xfade0cc0
	magicDirectory    = 0xfade0c02
	magicRequirements = 0xfade0c01
	magicWrapper      = 0xfade0b01

	slotDirectory    = 0
	slotRequirements = 2
	slotCMS          = 0x10000

	flagAdHoc   = 0x2
	flagRuntime = 0x10000 // hardened runtime: no code that is not signed, no libraries of others, no debugger

	directoryVersion = 0x20500 // the first with the hardened runtime's version
	directoryBytes   = 96
	specialSlots     = 3 // property list, requirements, resources
	hashSHA256       = 2
	pageBits         = 12
	mainBinary       = 1 // flag of the executable segment

	commandSignature = 0x1d // LC_CODE_SIGNATURE
	commandBuild     = 0x32 // LC_BUILD_VERSION
)

// identity is what a signature says besides the pages.
type identity struct {
	ID        string
	Info      []byte // Info.plist
	Resources []byte // CodeResources
}

// sign replaces the signature of a thin arm64 executable.
func sign(code []byte, who identity) ([]byte, error) {
	f, err := macho.NewFile(bytes.NewReader(code))
	if err != nil {
		return nil, err
	}
	if f.Cpu != macho.CpuArm64 || f.Type != macho.TypeExec {
		return nil, fmt.Errorf("got %v %v, want an executable for arm64", f.Type, f.Cpu)
	}
	text, link := f.Segment("__TEXT"), f.Segment("__LINKEDIT")
	if text == nil || link == nil {
		return nil, errors.New("got no __TEXT or no __LINKEDIT, want both")
	}
	places, err := commands(code, f.Ncmd)
	if err != nil {
		return nil, err
	}
	if places.signature == 0 {
		return nil, errors.New("got no LC_CODE_SIGNATURE, want one: the linker makes room for it")
	}
	start := binary.LittleEndian.Uint32(code[places.signature+8:])
	if uint64(start) < link.Offset || uint64(start) > uint64(len(code)) {
		return nil, fmt.Errorf("signature: got offset %d, want one in __LINKEDIT and in the file of %d bytes", start, len(code))
	}

	pages := (int(start) + 1<<pageBits - 1) >> pageBits
	total := 12 + 3*8 + directoryBytes + len(who.ID) + 1 + (specialSlots+pages)*sha256.Size + 12 + 8
	room := (total + 15) &^ 15
	out := make([]byte, int(start)+room)
	copy(out, code[:start])
	// The load commands are signed too, so they are final before the pages are hashed.
	binary.LittleEndian.PutUint32(out[places.signature+12:], uint32(room))
	used := uint64(start) + uint64(room) - link.Offset
	const segmentPage = 1 << 14 // of arm64
	binary.LittleEndian.PutUint64(out[places.linkedit+32:], (used+segmentPage-1)&^(segmentPage-1))
	binary.LittleEndian.PutUint64(out[places.linkedit+48:], used)

	requirements := be(magicRequirements, 12, 0)
	directory := be(magicDirectory, uint32(directoryBytes+len(who.ID)+1+(specialSlots+pages)*sha256.Size), directoryVersion, flagAdHoc|flagRuntime,
		uint32(directoryBytes+len(who.ID)+1+specialSlots*sha256.Size), directoryBytes, specialSlots, uint32(pages), start)
	directory = append(directory, sha256.Size, hashSHA256, 0, pageBits)
	directory = append(directory, be(0, 0, 0, 0)...) // spare, scatter, team, spare
	directory = binary.BigEndian.AppendUint64(directory, 0)
	directory = binary.BigEndian.AppendUint64(directory, text.Offset)
	directory = binary.BigEndian.AppendUint64(directory, text.Filesz)
	directory = binary.BigEndian.AppendUint64(directory, mainBinary)
	directory = append(directory, be(places.sdk, 0)...)
	directory = append(append(directory, who.ID...), 0)
	for _, sealed := range [][]byte{who.Resources, requirements, who.Info} { // slots 3, 2, 1
		sum := sha256.Sum256(sealed)
		directory = append(directory, sum[:]...)
	}
	for at := 0; at < int(start); at += 1 << pageBits {
		sum := sha256.Sum256(out[at:min(at+1<<pageBits, int(start))])
		directory = append(directory, sum[:]...)
	}

	const header = 12 + 3*8
	blob := be(magicSuper, uint32(total), 3, slotDirectory, header, slotRequirements, uint32(header+len(directory)), slotCMS, uint32(header+len(directory)+len(requirements)))
	blob = append(append(append(blob, directory...), requirements...), be(magicWrapper, 8)...)
	if len(blob) != total {
		panic(fmt.Sprintf("bundle: internal error: signature has %d bytes, want %d", len(blob), total))
	}
	copy(out[start:], blob)
	return out, nil
}

// loadCommands are the offsets in the file of what a signature changes or repeats; 0: there is none.
type loadCommands struct {
	signature int // LC_CODE_SIGNATURE
	linkedit  int // LC_SEGMENT_64 of __LINKEDIT
	sdk       uint32
}

func commands(code []byte, count uint32) (loadCommands, error) {
	const fileHeader = 32
	var found loadCommands
	at := fileHeader
	for range count {
		if at+8 > len(code) {
			return found, errors.New("load commands: got an end, want more")
		}
		kind, length := binary.LittleEndian.Uint32(code[at:]), int(binary.LittleEndian.Uint32(code[at+4:]))
		if length < 8 || at+length > len(code) {
			return found, fmt.Errorf("load command at %d: got %d bytes, want 8 or more, and not past the end", at, length)
		}
		switch {
		case kind == commandSignature && length >= 16:
			found.signature = at
		case kind == commandBuild && length >= 24:
			found.sdk = binary.LittleEndian.Uint32(code[at+16:])
		case kind == uint32(macho.LoadCmdSegment64) && length >= 72 && string(bytes.TrimRight(code[at+8:at+24], "\x00")) == "__LINKEDIT":
			found.linkedit = at
		}
		at += length
	}
	return found, nil
}

// be is numbers in big endian.
func be(numbers ...uint32) []byte {
	var out []byte
	for _, n := range numbers {
		out = binary.BigEndian.AppendUint32(out, n)
	}
	return out
}
