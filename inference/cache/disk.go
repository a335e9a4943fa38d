package cache

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
	"weak"

	"pond/inference/checkpoint/disk"
)

// Disk keeps snapshots in a folder, so that they outlive the process. Invariants:
//   - every byte that Read returns was checked; a file that is damaged, cut off or foreign is removed, counted and told to the log;
//   - a piece of rows stays as long as states need it, and no longer;
//   - files are written whole or not at all, and the order of writing is that of need: a kill at any instant leaves files that nothing needs,
//     never states without their rows;
//   - what lies in the folder keeps to the budget, folders of other keys included;
//   - one process works in the folder of a key; the files are the user's alone to read, because a conversation can be told from them.
//
// Its methods may be called from any goroutine.
type Disk struct {
	base, dir string
	key       Key
	specs     []Spec
	log       *slog.Logger
	release   func() error

	writing sync.Mutex // one Write at a time

	mu     sync.Mutex // protects what follows
	budget int64
	others []folder // of other keys, the one used longest ago first
	index  *Index[*piece]
	pieces map[pieceID]*piece
	lies   map[weak.Pointer[Rows]]*piece // rows in memory that are on the disk too
	stats  DiskStats
}

// piece is a file of rows, and perhaps a file of the states behind it.
type piece struct {
	id        pieceID
	prev      *piece
	from, to  int
	rowBytes  int64
	stateSize int64 // 0: there are no states
	kept      *Kept[*piece]
	uses      int // states, later pieces, a Write that builds on it
	rows      weak.Pointer[Rows]
}

// folder is that of another key.
type folder struct {
	path     string
	used     time.Time
	lenBytes int64
}

// DiskStats counts what is kept and was done since the folder was opened.
type DiskStats struct {
	LenBytes     int64 // of all files, those of other keys included
	BudgetBytes  int64
	Snapshots    int // that can be found
	Tokens       int // that lead to them, those that several share counted once
	ReadBytes    int64
	WrittenBytes int64
	Removed      int // files that were damaged, cut off or foreign
}

// DiskOptions say where to keep what.
type DiskOptions struct {
	Dir         string // created where it is missing
	BudgetBytes int64
	Key         Key
	Specs       []Spec
	Log         *slog.Logger
}

// Bounds beside the budget.
const (
	leastFree = 2 << 30 // bytes of the disk that are left to others
	mostKept  = 4096    // snapshots: a small model's are small
)

// ErrRoom says that there is no room for a file within the budget, or on the disk.
var ErrRoom = errors.New("no room on the disk for a conversation")

// OpenDisk takes the folder of a key and looks at what lies there. Where another process has it the error says so.
func OpenDisk(o DiskOptions) (*Disk, error) {
	d := &Disk{base: o.Dir, dir: filepath.Join(o.Dir, hex.EncodeToString(o.Key[:8])), key: o.Key, specs: o.Specs, log: o.Log, budget: o.BudgetBytes,
		index: NewIndex[*piece](), pieces: map[pieceID]*piece{}, lies: map[weak.Pointer[Rows]]*piece{}}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if err := d.take(); err != nil {
		return nil, err
	}
	if err := d.scan(); err != nil {
		return nil, errors.Join(err, d.release())
	}
	d.others = otherFolders(d.base, d.dir)
	for _, o := range d.others {
		d.stats.LenBytes += o.lenBytes
	}
	d.room(0)
	return d, nil
}

// take makes the folder where it is missing, and locks it.
func (d *Disk) take() error {
	for _, dir := range []string{d.base, d.dir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if err := os.Chmod(dir, 0o700); err != nil {
			return err
		}
	}
	release, err := disk.Lock(d.dir)
	if errors.As(err, new(*disk.LockedError)) {
		return &InUseError{d.dir}
	}
	if err == nil {
		d.release = release
	}
	return err
}

// takeAgain makes the folder anew where somebody removed it, as programs do that clear caches. What it held is gone.
func (d *Disk) takeAgain() error {
	if _, err := os.Stat(d.dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	d.log.Warn("the folder of kept conversations was removed, and is made again")
	d.mu.Lock()
	d.lose(slices.Collect(maps.Values(d.pieces)))
	d.mu.Unlock()
	gone := d.release
	if err := d.take(); err != nil {
		return err
	}
	return gone()
}

// Path is where a small file of the caller's own lies beside the snapshots: none of theirs has its name, and it goes with the folder.
func (d *Disk) Path(name string) string { return filepath.Join(d.dir, name) }

// Close gives the folder back. What lies there stays.
func (d *Disk) Close() error { return d.release() }

// Stats never waits for the disk.
func (d *Disk) Stats() DiskStats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.stats
	s.Tokens, s.BudgetBytes = d.index.tokens, d.budget
	return s
}

// Longest is how many tokens of a prompt can be had, at most limit; 0: none.
func (d *Disk) Longest(prompt []int32, limit int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.index.search(prompt[:min(limit, len(prompt))]); k != nil {
		return k.Tokens
	}
	return 0
}

// Cost is what Read of the same would add to the memory, at most.
func (d *Disk) Cost(prompt []int32, limit int) (n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.index.search(prompt[:min(limit, len(prompt))]); k != nil {
		n = k.Value.stateSize + 4*int64(k.Tokens)
		for p := k.Value; p != nil && p.rows.Value() == nil; p = p.prev {
			n += p.rowBytes
		}
	}
	return n
}

// Read returns the snapshot of the longest beginning of a prompt, at most limit tokens of it; nil where there is none. Rows that are in memory
// still are not read again.
func (d *Disk) Read(prompt []int32, limit int) *Snapshot {
	for {
		d.mu.Lock()
		k := d.index.Get(prompt, limit)
		if k == nil {
			d.mu.Unlock()
			return nil
		}
		at := k.Value
		var missing []*piece // the last first
		var have *Rows
		for p := at; p != nil; p = p.prev {
			if have = p.rows.Value(); have != nil {
				break
			}
			missing = append(missing, p)
		}
		d.mu.Unlock()
		c, bad, err := d.load(at, have, missing)
		if err == nil {
			now := time.Now()
			if err := os.Chtimes(d.path(statesFile, at.id), now, now); err != nil {
				d.log.Warn("the use of a kept conversation was not noted", "error", err)
			}
			return c
		}
		d.discard(bad, err)
	}
}

// load reads what is missing of a snapshot. With an error it says which piece is at fault.
func (d *Disk) load(at *piece, have *Rows, missing []*piece) (c *Snapshot, bad *piece, err error) {
	for _, p := range slices.Backward(missing) {
		data, err := d.readFile(rowsFile, p)
		if err != nil {
			return nil, p, err
		}
		_, runs := tokensOf(data[0])
		have = &Rows{Prev: have, From: p.from, To: p.to, runs: runs, data: d.bySpec(rowsFile, data[1:])}
		d.mu.Lock()
		if d.pieces[p.id] == p {
			d.lie(have, p)
		}
		d.stats.ReadBytes += p.rowBytes
		d.mu.Unlock()
	}
	data, err := d.readFile(statesFile, at)
	if err != nil {
		return nil, at, err
	}
	d.mu.Lock()
	d.stats.ReadBytes += at.stateSize
	d.mu.Unlock()
	return &Snapshot{pos: at.to, states: d.bySpec(statesFile, data), rows: have}, nil, nil
}

// bySpec puts the sections of a file where a snapshot has them.
func (d *Disk) bySpec(k fileKind, data [][]byte) [][]byte {
	out := make([][]byte, len(d.specs))
	for i, sp := range d.specs {
		if (sp.RowBytes > 0) == (k == rowsFile) {
			out[i], data = data[0], data[1:]
		}
	}
	return out
}

// sections is bySpec the other way round.
func (d *Disk) sections(k fileKind, bySpec [][]byte) (data [][]byte) {
	for i, sp := range d.specs {
		if (sp.RowBytes > 0) == (k == rowsFile) {
			data = append(data, bySpec[i])
		}
	}
	return data
}

func (d *Disk) path(k fileKind, id pieceID) string {
	return filepath.Join(d.dir, id.String()+k.suffix())
}

// readFile reads a file whole and holds it to the piece that it is of.
func (d *Disk) readFile(k fileKind, p *piece) (data [][]byte, err error) {
	f, err := os.Open(d.path(k, p.id))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h, err := d.headerOf(f)
	if err != nil {
		return nil, err
	}
	for i := range h.sections {
		b, err := readSection(f, h, i)
		if err != nil {
			return nil, err
		}
		data = append(data, b)
	}
	if h.kind != k || h.id != p.id || h.from != p.from || h.to != p.to || k == rowsFile && h.identify(data[0]) != p.id {
		return nil, wrong("got another piece")
	}
	return data, nil
}

func (d *Disk) headerOf(f *os.File) (h header, err error) {
	info, err := f.Stat()
	if err != nil {
		return h, err
	}
	if !info.Mode().IsRegular() {
		return h, wrong("got %s", info.Mode().Type())
	}
	return readHeader(f, info.Size(), d.key, d.specs)
}

// discard removes a piece that cannot be read, and all that builds on it. A piece that went meanwhile is no fault.
func (d *Disk) discard(p *piece, why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pieces[p.id] != p {
		return
	}
	d.stats.Removed++
	d.log.Warn("a kept conversation cannot be read and is removed", "file", p.id.String(), "error", why)
	var lost []*piece
	for _, q := range d.pieces {
		for a := q; a != nil; a = a.prev {
			if a == p {
				lost = append(lost, q)
				break
			}
		}
	}
	d.lose(lost)
}

// lose removes pieces with their states. The lock is held. A Write that builds on one finds it gone, and ends its use then.
func (d *Disk) lose(lost []*piece) {
	for _, q := range lost {
		if q.kept != nil {
			d.drop(q.kept)
		}
	}
	for _, q := range lost {
		d.forget(q)
	}
}

// Has reports whether there is a snapshot for exactly these tokens.
func (d *Disk) Has(tokens []int32) bool { return d.Longest(tokens, len(tokens)) == len(tokens) }

// Write saves a snapshot, unless it is there: the rows that are not on the disk yet, then the states. The context's end stops it within a few
// megabytes, and leaves nothing half written.
func (d *Disk) Write(ctx context.Context, tokens []int32, c *Snapshot) (err error) {
	d.writing.Lock()
	defer d.writing.Unlock()
	if len(tokens) != c.pos || c.rows == nil {
		return fmt.Errorf("cache: got a snapshot at %d with %d tokens", c.pos, len(tokens))
	}
	if err := d.takeAgain(); err != nil {
		return err
	}
	var at *piece // pinned: counted as used by this call
	defer func() {
		d.mu.Lock()
		d.unuse(at)
		d.mu.Unlock()
	}()
	var chain []*Rows // the last first
	d.mu.Lock()
	for r := c.rows; r != nil; r = r.Prev {
		if at = d.lies[weak.Make(r)]; at != nil {
			at.uses++
			break
		}
		chain = append(chain, r)
	}
	d.mu.Unlock()
	for _, r := range slices.Backward(chain) {
		if at, err = d.writeRows(ctx, at, tokens[r.From:r.To], r); err != nil {
			return err
		}
	}
	if err := d.writeStates(ctx, at, tokens, c); err != nil {
		return err
	}
	return disk.SyncDir(d.dir)
}

// writeRows writes the piece behind at, and moves the pin there.
func (d *Disk) writeRows(ctx context.Context, at *piece, tokens []int32, r *Rows) (*piece, error) {
	first, err := tokenBytes(tokens, r.runs)
	if err != nil {
		return at, err
	}
	data := append([][]byte{first}, d.sections(rowsFile, r.data)...)
	h := describe(rowsFile, d.key, r.From, r.To, data)
	if at != nil {
		h.prev = at.id
	}
	h.id = h.identify(data[0])
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.pieces[h.id]; p != nil { // computed again, and to the bit what it was
		p.uses++
		d.unuse(at)
		d.lie(r, p)
		return p, nil
	}
	if err := d.put(ctx, at, h, data); err != nil {
		return at, err
	}
	p := &piece{id: h.id, prev: at, from: r.From, to: r.To, rowBytes: h.lenBytes(), uses: 1} // the pin; the one on at counts for p from now on
	d.pieces[p.id] = p
	d.lie(r, p)
	return p, nil
}

// writeStates writes the states behind at.
func (d *Disk) writeStates(ctx context.Context, at *piece, tokens []int32, c *Snapshot) error {
	data := d.sections(statesFile, c.states)
	h := describe(statesFile, d.key, at.from, at.to, data)
	h.id = at.id
	d.mu.Lock()
	defer d.mu.Unlock()
	if at.kept != nil {
		return nil
	}
	if err := d.put(ctx, at, h, data); err != nil {
		return err
	}
	at.uses++
	at.stateSize = h.lenBytes()
	d.keep(at, tokens)
	return nil
}

// keep makes a piece with states one that is found. The lock is held.
func (d *Disk) keep(at *piece, tokens []int32) {
	kept, old := d.index.Put(tokens, at)
	at.kept = kept
	d.stats.Snapshots++
	if old != nil { // of another run
		d.dropStates(*old)
	}
}

// put writes a file where there is room, with the lock given away meanwhile. What it builds on is pinned, and may be gone all the same: then it
// was found damaged.
func (d *Disk) put(ctx context.Context, at *piece, h header, data [][]byte) error {
	n := h.lenBytes()
	if !d.room(n) {
		return fmt.Errorf("%w: got %d MB to write, want at most %d MB in all", ErrRoom, n>>20, d.budget>>20)
	}
	d.stats.LenBytes += n
	d.mu.Unlock()
	path := d.path(h.kind, h.id)
	err := d.free(n)
	if err == nil {
		err = writeFile(ctx, d.dir, filepath.Base(path), h, data)
	}
	d.mu.Lock()
	if err == nil && at != nil && d.pieces[at.id] != at {
		err = errors.Join(errors.New("cache: what it builds on is gone"), os.Remove(path))
	}
	if err != nil {
		d.stats.LenBytes -= n
		return err
	}
	d.stats.WrittenBytes += n
	return nil
}

// free reports where the disk has no room for so many bytes.
func (d *Disk) free(n int64) error {
	free, err := disk.Free(d.dir)
	if err == nil && free-n < leastFree {
		err = fmt.Errorf("%w: got %d MB free, want %d MB left to others", ErrRoom, free>>20, leastFree>>20)
	}
	return err
}

// room drops the least worth until so many bytes more keep to the budget: folders of other keys first. The lock is held.
func (d *Disk) room(n int64) bool {
	if n > d.budget {
		return false
	}
	for d.stats.LenBytes+n > d.budget || d.stats.Snapshots >= mostKept {
		if len(d.others) > 0 {
			d.removeOther()
			continue
		}
		least := d.index.Least(nil, (*piece).cost)
		if least == nil {
			return d.stats.LenBytes+n <= d.budget
		}
		d.drop(least)
	}
	return true
}

// cost is what goes with a snapshot: its states, and the rows that nothing else uses.
func (p *piece) cost() int64 {
	n := p.stateSize
	for ; p != nil && p.uses == 1; p = p.prev {
		n += p.rowBytes
	}
	return n
}

// drop removes a snapshot. The lock is held, as for all below.
func (d *Disk) drop(k *Kept[*piece]) {
	d.index.Remove(k)
	d.dropStates(k.Value)
}

func (d *Disk) dropStates(p *piece) {
	d.remove(statesFile, p.id, p.stateSize)
	d.stats.Snapshots--
	p.kept, p.stateSize = nil, 0
	d.unuse(p)
}

// unuse ends one use of a piece, and removes what nothing needs; nil does nothing.
func (d *Disk) unuse(p *piece) {
	for ; p != nil; p = p.prev {
		if p.uses--; p.uses > 0 {
			return
		}
		d.forget(p)
	}
}

// forget removes a piece of rows.
func (d *Disk) forget(p *piece) {
	if d.pieces[p.id] != p {
		return
	}
	delete(d.pieces, p.id)
	delete(d.lies, p.rows)
	d.remove(rowsFile, p.id, p.rowBytes)
}

func (d *Disk) remove(k fileKind, id pieceID, lenBytes int64) {
	d.stats.LenBytes -= lenBytes
	if err := os.Remove(d.path(k, id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.log.Warn("a kept conversation cannot be removed", "error", err)
	}
}

// lie notes that rows in memory are a piece's.
func (d *Disk) lie(r *Rows, p *piece) {
	delete(d.lies, p.rows)
	p.rows = weak.Make(r)
	d.lies[p.rows] = p
}

// SetBudget changes the budget, and drops what is above it.
func (d *Disk) SetBudget(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.budget = bytes
	d.room(0)
}

// Clear removes everything, folders of other keys included, and returns the bytes that were freed. A Write that is under way fails.
func (d *Disk) Clear() (freedBytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.stats.LenBytes
	for len(d.others) > 0 {
		d.removeOther()
	}
	d.lose(slices.Collect(maps.Values(d.pieces)))
	return before - d.stats.LenBytes
}
