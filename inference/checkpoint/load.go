package checkpoint

// Bringing mapped weights into memory before the first token needs them. The rules:
//
//   - Tensors are taken in the order in which they lie in their files, in slices of at most sliceBytes: a disk reads ahead, progress
//     moves, and a cancelled load stops within a slice.
//   - A slice is populated by one system call where there is one (MADV_POPULATE_READ, Linux 5.14): the pages are read and mapped, and
//     a page that cannot be read is an error of the call. Elsewhere each page is touched, with faults turned into errors.
//   - A slice never crosses a tensor, so an error names the one it belongs to.
//   - A round that took time is followed by another, at most roundsMost in all, which reads what is missing in small pages where the
//     system lets it choose (readGaps). Large pages, in which Linux reads ahead, make it give up pages as soon as memory is in pieces,
//     and those are ours: with 8 GB free the first round over 19.5 GB left 5 GB behind, and so did each further one of its kind. A round
//     over pages that are there took 0.15 s.

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"time"
	"unsafe"
)

const (
	sliceBytes = 64 << 20
	roundsMost = 3
	roundFast  = 20 * time.Millisecond // for each GB: no disk delivers that, and walking the page tables takes less
)

// Load reads the named tensors' bytes into memory, where they stay as long as the system has room: the pages are the file's, in its
// cache. told, where not nil, hears how many bytes of how many were read. The error names the tensor whose bytes cannot be read, or is
// the context's. With OpenFS the bytes are in memory already.
func (c *Checkpoint) Load(ctx context.Context, names []string, told func(done, total int64)) error {
	list, total, err := c.inOrder(names)
	if err != nil {
		return err
	}
	for i := range roundsMost {
		start := time.Now()
		if err := c.round(ctx, list, i > 0, func(done int64) {
			if i == 0 && told != nil {
				told(done, total)
			}
		}); err != nil {
			return err
		}
		if time.Since(start) <= roundFast*time.Duration(1+total>>30) {
			return nil
		}
	}
	return nil
}

// round goes once over the tensors; told hears how many bytes are behind it.
func (c *Checkpoint) round(ctx context.Context, list []Tensor, small bool, told func(done int64)) error {
	var done int64
	var file *os.File // of the tensor at hand, open where small pages are asked for
	defer func() {
		if file != nil {
			file.Close() // it was only read
		}
	}()
	for i, t := range list {
		if small && c.dir != "" && (i == 0 || t.File != list[i-1].File) {
			if file != nil {
				file.Close()
			}
			var err error
			if file, err = os.Open(filepath.Join(c.dir, t.File)); err != nil {
				return fmt.Errorf("weight file %s: %w", t.File, err)
			}
		}
		for at := 0; at < len(t.Data); at += sliceBytes {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			slice := t.Data[at:min(at+sliceBytes, len(t.Data))]
			if file != nil {
				if err := readGaps(file, pages(slice), t.at+int64(at+len(slice)-len(pages(slice)))); err != nil {
					return fmt.Errorf("%s: tensor %s: %w", t.File, t.Name, err)
				}
			}
			if c.dir != "" {
				if err := c.populate(t, pages(slice)); err != nil {
					return err
				}
			}
			done += int64(len(slice))
			told(done)
		}
	}
	return nil
}

// populate brings the pages of a slice of t into memory.
func (c *Checkpoint) populate(t Tensor, slice []byte) error {
	supported, err := populateRead(slice)
	if err == nil && !supported {
		err = c.touch(slice)
	}
	if err != nil {
		return fmt.Errorf("%s: tensor %s: cannot be read, want the %d bytes that the file had when it was opened: %w", t.File, t.Name, c.mappingOf(t).info.Size(), err)
	}
	return nil
}

// touch reads a byte of each page of a slice, which starts with a page.
func (c *Checkpoint) touch(slice []byte) error {
	return c.Guard(func() error {
		var sum byte
		for at := 0; at < len(slice); at += os.Getpagesize() {
			sum += slice[at]
		}
		runtime.KeepAlive(sum)
		return nil
	})
}

// pages widens a slice of a mapping to whole pages. The kernel takes no other address; a mapping starts and ends with a page.
func pages(b []byte) []byte {
	before := uintptr(unsafe.Pointer(unsafe.SliceData(b))) % uintptr(os.Getpagesize())
	start := unsafe.Pointer(unsafe.SliceData(b))
	return unsafe.Slice((*byte)(unsafe.Add(start, -int(before))), len(b)+int(before))
}

// inOrder finds tensors and sorts them by file and offset.
func (c *Checkpoint) inOrder(names []string) (list []Tensor, total int64, err error) {
	for _, name := range names {
		t, ok := c.tensors[name]
		if !ok {
			return nil, 0, fmt.Errorf("tensor %s: missing, want it in the checkpoint", name)
		}
		list = append(list, t)
		total += int64(len(t.Data))
	}
	slices.SortFunc(list, func(a, b Tensor) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.at, b.at)) })
	return list, total, nil
}

func (c *Checkpoint) mappingOf(t Tensor) mapping { return c.mappings[slices.Index(c.files, t.File)] }

// FaultError says that mapped bytes of a weight file cannot be read any more: the file shrank, or its disk failed or was ejected.
type FaultError struct {
	File   string
	Tensor string // empty where the bytes are the header's
	Offset int64  // of the byte in the file
}

func (e *FaultError) Error() string {
	what := e.File
	if e.Tensor != "" {
		what += ": tensor " + e.Tensor
	}
	return fmt.Sprintf("%s: byte %d of the file cannot be read any more: it was cut off after it was opened, or its disk fails", what, e.Offset)
}

// Guard calls f, in which a fault on the mapped bytes is not the end of the program: it comes back as a *FaultError. It holds for
// the calling goroutine alone. Any other panic goes on.
func (c *Checkpoint) Guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if fault, ok := r.(interface{ Addr() uintptr }); ok {
			if found := c.at(fault.Addr()); found != nil {
				err = found
				return
			}
		}
		panic(r)
	}()
	return f()
}

// at names what an address belongs to, or returns nil.
func (c *Checkpoint) at(addr uintptr) *FaultError {
	for i, m := range c.mappings {
		start := uintptr(unsafe.Pointer(unsafe.SliceData(m.data)))
		if addr < start || addr-start >= uintptr(len(m.data)) {
			continue
		}
		e := &FaultError{File: c.files[i], Offset: int64(addr - start)}
		for _, t := range c.tensors {
			if t.File == e.File && e.Offset >= t.at && e.Offset < t.at+int64(len(t.Data)) {
				e.Tensor = t.Name
			}
		}
		return e
	}
	return nil
}
