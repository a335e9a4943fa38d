package inspect

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"debug/macho"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// The code signature's numbers, from Apple's cs_blobs.h.
const (
	superBlob     = 0xfade0cc0
	codeDirectory = 0xfade0c02

	adHoc           = 0x2
	linkerSigned    = 0x20000
	hardenedRuntime = 0x10000

	infoSlot, requirementsSlot, resourcesSlot = 1, 2, 3
)

// directory is the header of a code directory, as it lies in the file, big endian.
type directory struct {
	Magic, Length, Version, Flags, Hashes, Identifier, Specials, Pages, Limit uint32
	HashBytes, HashKind, Platform, PageBits                                   uint8
	Spare, Scatter, Team, Spare3                                              uint32
	Limit64, SegmentBase, SegmentLimit, SegmentFlags                          uint64
	Runtime, PreEncrypt                                                       uint32
}

// checkSignature computes every hash of an ad-hoc signature again.
func (f *Facts) checkSignature(code []byte, m *macho.File, info []byte, contents string) []error {
	fail := func(format string, args ...any) []error { return []error{fmt.Errorf("signature: "+format, args...)} }
	at, length, err := signaturePlace(m, len(code))
	if err != nil {
		return fail("%w", err)
	}
	blob := code[at : at+length]
	parts, err := blobs(blob)
	if err != nil {
		return fail("%w", err)
	}
	raw := parts[0]
	var d directory
	if err := binary.Read(bytes.NewReader(raw), binary.BigEndian, &d); err != nil {
		return fail("code directory: %w", err)
	}
	sum := sha256.Sum256(raw)
	f.CodeHash, f.Flags = hex.EncodeToString(sum[:]), d.Flags
	if d.Magic != codeDirectory || d.HashKind != 2 || d.HashBytes != sha256.Size || d.PageBits < 12 || d.PageBits > 14 {
		return fail("got magic %#x, hash kind %d of %d bytes, pages of 2^%d, want %#x, 2 of 32, 2^12 to 2^14", d.Magic, d.HashKind, d.HashBytes, d.PageBits, codeDirectory)
	}
	if int64(d.Hashes)+int64(d.Pages)*sha256.Size > int64(len(raw)) || d.Hashes < d.Specials*sha256.Size || d.Specials < resourcesSlot || int(d.Identifier) >= len(raw) {
		return fail("got a code directory of %d bytes with hashes past its ends", len(raw))
	}

	var wrong []error
	complain := func(format string, args ...any) { wrong = append(wrong, fail(format, args...)...) }
	if d.Flags&hardenedRuntime == 0 {
		complain("flags: got %#x, want the hardened runtime (%#x) in it", d.Flags, hardenedRuntime)
	}
	if d.Flags&linkerSigned != 0 {
		complain("flags: got %#x: the linker's signature does not cover the bundle", d.Flags)
	}
	if id, _, ok := bytes.Cut(raw[d.Identifier:], []byte{0}); !ok || string(id) != f.ID {
		complain("identifier: got %q, want %q", id, f.ID)
	}
	if int(d.Limit) != at {
		complain("got %d bytes signed, want all %d before the signature", d.Limit, at)
	}
	text := m.Segment("__TEXT")
	if text == nil || d.SegmentBase != text.Offset || d.SegmentLimit != text.Filesz || d.SegmentFlags&1 == 0 {
		complain("executable segment: got %d+%d, flags %d, want __TEXT's and the main binary's", d.SegmentBase, d.SegmentLimit, d.SegmentFlags)
	}
	page := 1 << d.PageBits
	if want := (at + page - 1) / page; int(d.Pages) != want {
		return append(wrong, fail("got %d pages, want %d", d.Pages, want)...)
	}
	for i := range int(d.Pages) {
		sum := sha256.Sum256(code[i*page : min((i+1)*page, at)])
		if place := int(d.Hashes) + i*sha256.Size; !bytes.Equal(raw[place:place+sha256.Size], sum[:]) {
			return append(wrong, fail("page %d: its hash is not what is signed", i)...)
		}
	}

	sealed, err := os.ReadFile(filepath.Join(contents, "_CodeSignature", "CodeResources"))
	if err != nil {
		return append(wrong, err)
	}
	for _, s := range []struct {
		name  string
		slot  int
		bytes []byte
	}{{"Info.plist", infoSlot, info}, {"requirements", requirementsSlot, parts[requirementsSlot]}, {"CodeResources", resourcesSlot, sealed}} {
		sum := sha256.Sum256(s.bytes)
		place := int(d.Hashes) - s.slot*sha256.Size
		if !bytes.Equal(raw[place:place+sha256.Size], sum[:]) {
			complain("%s: its hash is not what is signed", s.name)
		}
	}
	return append(wrong, checkSeal(sealed, contents)...)
}

// signaturePlace finds the signature, which ends the file.
func signaturePlace(m *macho.File, fileBytes int) (at, length int, err error) {
	for _, l := range m.Loads {
		raw := l.Raw()
		if len(raw) < 16 || m.ByteOrder.Uint32(raw) != 0x1d { // LC_CODE_SIGNATURE
			continue
		}
		at, length = int(m.ByteOrder.Uint32(raw[8:])), int(m.ByteOrder.Uint32(raw[12:]))
		link := m.Segment("__LINKEDIT")
		switch {
		case at+length != fileBytes:
			return 0, 0, fmt.Errorf("got it from %d to %d, want it to the end of the file, %d", at, at+length, fileBytes)
		case link == nil || int(link.Offset+link.Filesz) != fileBytes || link.Memsz < link.Filesz:
			return 0, 0, fmt.Errorf("got a __LINKEDIT that does not end with the file: %+v", link)
		case at%16 != 0:
			return 0, 0, fmt.Errorf("got it at %d, want a multiple of 16", at)
		}
		return at, length, nil
	}
	return 0, 0, fmt.Errorf("got no LC_CODE_SIGNATURE")
}

// blobs takes a super blob apart, by slot.
func blobs(b []byte) (map[int][]byte, error) {
	if len(b) < 12 || binary.BigEndian.Uint32(b) != superBlob {
		return nil, fmt.Errorf("got no super blob")
	}
	total, count := int(binary.BigEndian.Uint32(b[4:])), int(binary.BigEndian.Uint32(b[8:]))
	if total > len(b) || count > 16 || 12+8*count > total {
		return nil, fmt.Errorf("super blob: got %d bytes and %d parts in %d bytes", total, count, len(b))
	}
	parts := map[int][]byte{}
	for i := range count {
		slot, at := int(binary.BigEndian.Uint32(b[12+8*i:])), int(binary.BigEndian.Uint32(b[16+8*i:]))
		if at+8 > total {
			return nil, fmt.Errorf("slot %#x: got offset %d of %d", slot, at, total)
		}
		length := int(binary.BigEndian.Uint32(b[at+4:]))
		if length < 8 || at+length > total {
			return nil, fmt.Errorf("slot %#x: got %d bytes at %d of %d", slot, length, at, total)
		}
		parts[slot] = b[at : at+length]
	}
	for _, slot := range []int{0, requirementsSlot, 0x10000} {
		if parts[slot] == nil {
			return nil, fmt.Errorf("got no slot %#x, want code directory, requirements and CMS", slot)
		}
	}
	return parts, nil
}

// checkSeal compares the resources with their digests: none may differ, be missing, or be there besides.
func checkSeal(sealed []byte, contents string) []error {
	seal, err := ParsePlist(sealed)
	if err != nil {
		return []error{fmt.Errorf("CodeResources: %w", err)}
	}
	old, _ := seal["files"].(map[string]any)
	present, _ := seal["files2"].(map[string]any)
	var wrong []error
	if len(present) == 0 || len(old) != len(present) {
		wrong = append(wrong, fmt.Errorf("CodeResources: got %d and %d files, want the same and more than none", len(old), len(present)))
	}
	for name, v := range present {
		content, err := os.ReadFile(filepath.Join(contents, filepath.FromSlash(name)))
		if err != nil {
			wrong = append(wrong, fmt.Errorf("CodeResources: %w", err))
			continue
		}
		entry, _ := v.(map[string]any)
		digest, _ := entry["hash2"].([]byte)
		digest1, _ := old[name].([]byte)
		sum, sum1 := sha256.Sum256(content), sha1.Sum(content)
		if !bytes.Equal(digest, sum[:]) || !bytes.Equal(digest1, sum1[:]) {
			wrong = append(wrong, fmt.Errorf("%s: it is not what was sealed", name))
		}
	}
	found, err := filepath.Glob(filepath.Join(contents, "Resources", "*"))
	if err != nil || len(found) != len(present) {
		wrong = append(wrong, fmt.Errorf("resources: got %d files, %v, want the %d that are sealed", len(found), err, len(present)))
	}
	return wrong
}
