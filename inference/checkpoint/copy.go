package checkpoint

// Copying weights into memory that a device can use: aligned, and with projections that are multiplied together lying together, which
// the files do not give (data start at odd offsets). The rules:
//
//   - Bytes are read from the files, past the page cache where the system allows it, so that they are not in memory twice; the
//     mapping is only what says where they are.
//   - A file that is not the one that was opened is refused: the header that was checked is not that one's.
//   - Several readers take spans of at most spanBytes, in file order. The first error ends the copy, and names the tensor.
//   - A span goes straight to its place where its pieces are long; short pieces are read together and dealt out from a buffer.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

const (
	spanBytes   = 8 << 20 // one read: long enough for a disk's full rate, short enough for progress and cancel
	directBytes = 1 << 20 // pieces from this length on are read to their place by themselves
	copyReaders = 4
)

// Segment is a tensor and where its bytes go: piece i of it, PieceBytes long, to Dst[Off+i*StrideBytes:]. With PieceBytes 0 the tensor
// is one piece.
type Segment struct {
	Tensor      string
	Dst         []byte
	Off         int64
	PieceBytes  int64
	StrideBytes int64
}

// CopyOptions are the knobs of Copy.
type CopyOptions struct {
	Readers int                     // 0: four
	Told    func(done, total int64) // bytes in place, of how many; called from Copy's own goroutine
}

// Fuse lays tensors side by side in dst: for each of stack matrices, its rows of the first tensor, then its rows of the second, and so
// on. With stack 1 that is one tensor behind the other; with the experts' gate_proj and up_proj and stack 256 every expert gets one
// matrix of both. dst is exactly as long as the tensors together.
func (c *Checkpoint) Fuse(dst []byte, stack int, names ...string) ([]Segment, error) {
	var stride int64
	var out []Segment
	for _, name := range names {
		t, ok := c.tensors[name]
		if !ok {
			return nil, fmt.Errorf("tensor %s: missing, want it in the checkpoint", name)
		}
		if stack < 1 || len(t.Data)%stack != 0 || len(t.Data) == 0 {
			return nil, fmt.Errorf("tensor %s: got %d bytes, want %d equal matrices", name, len(t.Data), stack)
		}
		piece := int64(len(t.Data) / stack)
		out = append(out, Segment{Tensor: name, Dst: dst, Off: stride, PieceBytes: piece})
		stride += piece
	}
	if int64(len(dst)) != stride*int64(stack) {
		return nil, fmt.Errorf("tensors %q: got memory of %d bytes, want %d", names, len(dst), stride*int64(stack))
	}
	for i := range out {
		out[i].StrideBytes = stride
	}
	return out, nil
}

// span is one read.
type span struct {
	tensor   Tensor
	seg      Segment
	from, to int64 // bytes of the tensor
}

// Copy reads the segments' tensors into their memory. Segments must not overlap in memory. The error names the tensor that could not be
// read, or is the context's; the memory then holds anything.
func (c *Checkpoint) Copy(ctx context.Context, segments []Segment, o CopyOptions) error {
	spans, total, err := c.spans(segments)
	if err != nil {
		return err
	}
	files, err := c.reopen(spans)
	if err != nil {
		return err
	}
	defer files.close()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if o.Readers <= 0 {
		o.Readers = copyReaders
	}
	next, placed := make(chan span), make(chan int64)
	go func() {
		defer close(next)
		for _, s := range spans {
			select {
			case next <- s:
			case <-ctx.Done():
				return
			}
		}
	}()
	var readers sync.WaitGroup
	for range o.Readers {
		readers.Go(func() {
			var buffer []byte
			for s := range next {
				if err := s.read(files[s.tensor.File], &buffer); err != nil {
					cancel(fmt.Errorf("%s: tensor %s: %w", s.tensor.File, s.tensor.Name, err))
					return
				}
				placed <- s.to - s.from
			}
		})
	}
	go func() {
		readers.Wait()
		close(placed)
	}()
	var done int64
	for n := range placed {
		if done += n; o.Told != nil && ctx.Err() == nil {
			o.Told(done, total)
		}
	}
	return context.Cause(ctx)
}

// spans cuts segments into reads, in file order.
func (c *Checkpoint) spans(segments []Segment) (out []span, total int64, err error) {
	byName := map[string][]Segment{}
	var names []string
	for _, s := range segments {
		if byName[s.Tensor] == nil {
			names = append(names, s.Tensor)
		}
		byName[s.Tensor] = append(byName[s.Tensor], s)
	}
	tensors, _, err := c.inOrder(names)
	if err != nil {
		return nil, 0, err
	}
	for _, t := range tensors {
		for _, s := range byName[t.Name] {
			n := int64(len(t.Data))
			if s.PieceBytes == 0 {
				s.PieceBytes = n
			}
			if n == 0 || n%s.PieceBytes != 0 || s.Off < 0 || s.StrideBytes < 0 || s.Off+(n/s.PieceBytes-1)*s.StrideBytes+s.PieceBytes > int64(len(s.Dst)) {
				return nil, 0, fmt.Errorf("tensor %s: got %d bytes for pieces of %d at %d + i*%d in memory of %d, want room for whole pieces",
					t.Name, n, s.PieceBytes, s.Off, s.StrideBytes, len(s.Dst))
			}
			step := max(spanBytes/s.PieceBytes, 1) * s.PieceBytes // whole short pieces together
			if s.PieceBytes >= directBytes {
				step = s.PieceBytes
			}
			for at := int64(0); at < n; at += step {
				for from, end := at, min(at+step, n); from < end; from += spanBytes {
					out = append(out, span{t, s, from, min(from+spanBytes, end)})
				}
			}
			total += n
		}
	}
	return out, total, nil
}

// read reads a span and puts its bytes in their places.
func (s span) read(file io.ReaderAt, buffer *[]byte) error {
	piece := s.from / s.seg.PieceBytes
	at := s.seg.Off + piece*s.seg.StrideBytes + s.from%s.seg.PieceBytes
	n := s.to - s.from
	if s.from%s.seg.PieceBytes+n <= s.seg.PieceBytes {
		return readFull(file, s.seg.Dst[at:at+n], s.tensor.at+s.from)
	}
	if int64(cap(*buffer)) < n {
		*buffer = make([]byte, spanBytes)
	}
	b := (*buffer)[:n]
	if err := readFull(file, b, s.tensor.at+s.from); err != nil {
		return err
	}
	for ; len(b) > 0; b = b[s.seg.PieceBytes:] {
		copy(s.seg.Dst[at:at+s.seg.PieceBytes], b)
		at += s.seg.StrideBytes
	}
	return nil
}

func readFull(file io.ReaderAt, p []byte, off int64) error {
	n, err := file.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("got %d bytes at offset %d, want %d: the file is shorter than when it was opened", n, off, len(p))
	}
	return fmt.Errorf("%d bytes at offset %d: %w", len(p), off, err)
}

// openFiles are the weight files by name.
type openFiles map[string]io.ReaderAt

func (o openFiles) close() {
	for _, f := range o {
		if file, ok := f.(*os.File); ok {
			file.Close() // it was only read
		}
	}
}

// reopen opens the files of the spans for reading past the page cache.
func (c *Checkpoint) reopen(spans []span) (_ openFiles, err error) {
	files := openFiles{}
	defer func() {
		if err != nil {
			files.close()
		}
	}()
	for _, s := range spans {
		name := s.tensor.File
		if files[name] != nil {
			continue
		}
		m := c.mappingOf(s.tensor)
		if c.dir == "" {
			files[name] = bytes.NewReader(m.data)
			continue
		}
		f, err := os.Open(filepath.Join(c.dir, name))
		if err != nil {
			return nil, fmt.Errorf("weight file %s: %w", name, err)
		}
		files[name] = f
		info, err := f.Stat()
		if err != nil {
			return nil, fmt.Errorf("weight file %s: %w", name, err)
		}
		if !os.SameFile(info, m.info) || info.Size() != m.info.Size() || !info.ModTime().Equal(m.info.ModTime()) {
			return nil, fmt.Errorf("weight file %s: got %d bytes of %s, want the %d bytes of %s that were opened",
				name, info.Size(), info.ModTime().UTC().Format(timeFormat), m.info.Size(), m.info.ModTime().UTC().Format(timeFormat))
		}
		if err := uncached(f); err != nil {
			return nil, fmt.Errorf("weight file %s: %w", name, err)
		}
	}
	return files, nil
}

const timeFormat = "2006-01-02T15:04:05.000000000Z"
