package standin

import (
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// lineTable answers which line of the kernel text an address of a kernel library belongs to. Files of the shim are looked through: what counts is the
// line of the text that called them.
type lineTable struct {
	mu    sync.Mutex // protects files
	files map[string]*debugInfo
}

type debugInfo struct {
	data *dwarf.Data
	err  error
}

// lineTables is made once, because a callback for C lives as long as the process; what it holds is a cache of files that never change.
var lineTables = sync.OnceValues(func() (*lineTable, uintptr) {
	t := &lineTable{files: map[string]*debugInfo{}}
	return t, purego.NewCallback(t.call)
})

// SymboliserCallback returns the C function for msl_set_symboliser.
func SymboliserCallback() uintptr {
	_, f := lineTables()
	return f
}

// call is msl_symboliser: int (const char* library, uint64_t offset, char* out, size_t outBytes).
func (t *lineTable) call(library *byte, offset uintptr, out *byte, outBytes uintptr) uintptr {
	s, err := t.find(pointerString(library), uint64(offset))
	if err != nil || outBytes == 0 {
		return 0
	}
	b := unsafe.Slice(out, outBytes)
	b[copy(b[:len(b)-1], s)] = 0
	return 1
}

// find returns "gemv.metal:42".
func (t *lineTable) find(library string, pc uint64) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.files[library]
	if d == nil {
		d = &debugInfo{}
		t.files[library] = d
		f, err := elf.Open(library)
		if err == nil {
			d.data, err = f.DWARF()
			f.Close()
		}
		d.err = err
	}
	if d.err != nil {
		return "", d.err
	}
	return d.line(pc)
}

func shimFile(name string) bool {
	base := filepath.Base(name)
	return strings.HasPrefix(base, "msl_") || strings.HasPrefix(name, "/usr/") || base == "kernels"
}

// line walks from the address out of inlined functions of the shim to the first line of the text.
func (d *debugInfo) line(pc uint64) (string, error) {
	r := d.data.Reader()
	unit, err := r.SeekPC(pc)
	if err != nil {
		return "", err
	}
	lines, err := d.data.LineReader(unit)
	if err != nil || lines == nil {
		return "", fmt.Errorf("no line table: %w", err)
	}
	var e dwarf.LineEntry
	if err := lines.SeekPC(pc, &e); err != nil {
		return "", err
	}
	if e.File != nil && !shimFile(e.File.Name) && e.Line > 0 {
		return fmt.Sprintf("%s:%d", filepath.Base(e.File.Name), e.Line), nil
	}
	files := lines.Files()
	best := ""
	for {
		entry, err := r.Next()
		if err != nil || entry == nil || entry.Tag == dwarf.TagCompileUnit {
			break
		}
		if entry.Tag != dwarf.TagSubprogram && entry.Tag != dwarf.TagInlinedSubroutine && entry.Tag != dwarf.TagLexDwarfBlock {
			continue
		}
		if !d.covers(entry, pc) {
			if entry.Tag != dwarf.TagSubprogram || entry.Val(dwarf.AttrLowpc) != nil {
				r.SkipChildren()
			}
			continue
		}
		if entry.Tag != dwarf.TagInlinedSubroutine {
			continue
		}
		file, ok1 := entry.Val(dwarf.AttrCallFile).(int64)
		line, ok2 := entry.Val(dwarf.AttrCallLine).(int64)
		// Deeper entries come later: the last call in the text is the innermost.
		if ok1 && ok2 && int(file) < len(files) && files[file] != nil && !shimFile(files[file].Name) {
			best = fmt.Sprintf("%s:%d", filepath.Base(files[file].Name), line)
		}
	}
	if best == "" {
		return "", fmt.Errorf("address %#x belongs to no line of the text", pc)
	}
	return best, nil
}

func (d *debugInfo) covers(e *dwarf.Entry, pc uint64) bool {
	ranges, err := d.data.Ranges(e)
	if err != nil {
		return false
	}
	for _, r := range ranges {
		if r[0] <= pc && pc < r[1] {
			return true
		}
	}
	return false
}
