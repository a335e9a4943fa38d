// Package inference is the engine's narrow front: an Engine is a loaded model; a chat or completion asked of it becomes an
// Answer that streams. Front ends see text, tokens and counts, never tensors or devices.
//
// One goroutine, the worker, owns the device and gives the requests that are worked on their turns. Start with Open, then Engine.Chat;
// worker.go is the life of a request, schedule.go whose turn it is, kept.go the memory of conversations.
package inference

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"pond/inference/ablate"
	"pond/inference/chat"
	"pond/inference/checkpoint"
	"pond/inference/memgate"
	"pond/inference/qwen36"
	"pond/inference/tokenizer"
	"pond/metal"
	"pond/metal/kernels"
)

// Model says where a checkpoint is.
type Model struct {
	dir  string
	fsys fs.FS
}

// FromDir is a checkpoint in a folder, mapped into memory.
func FromDir(path string) Model { return Model{dir: path} }

// FromFS is a checkpoint in a file system, such as one embedded in the program; its files are read into memory.
func FromFS(fsys fs.FS) Model { return Model{fsys: fsys} }

func (m Model) open() (*checkpoint.Checkpoint, error) {
	switch {
	case m.fsys != nil:
		return checkpoint.OpenFS(m.fsys)
	case m.dir == "":
		return nil, errors.New("model: got no folder, want one with config.json and weights")
	}
	if st, err := os.Stat(m.dir); err != nil || !st.IsDir() {
		return nil, fmt.Errorf("model: %s: want a folder with config.json and weights: %w", m.dir, notFolder(err))
	}
	return checkpoint.OpenDir(m.dir)
}

func notFolder(err error) error {
	if err != nil {
		return err
	}
	return errors.New("it is a file")
}

// Executor is what runs the plans.
type Executor string

const (
	Auto      Executor = "auto"       // the fastest that this machine has
	Host      Executor = "host"       // the CPU, vectorised, activations of products in 16 bits
	HostExact Executor = "host-exact" // the CPU, float32, reproducible to the bit
	HostInt8  Executor = "host-int8"  // the CPU, vectorised, activations of products in 8 bits
	Metal     Executor = "metal"      // Apple's GPU
	Standin   Executor = "standin"    // the Metal path on a CPU, for tests
)

// Defaults of Options.
const (
	DefaultContext = 32_768 // tokens, when the model allows as many
	defaultQueue   = 64
	defaultLive    = 4 // answers that are worked on at once
	// What the memory gate counts: the keys and values of so many conversations of full length, in use or kept, and their states and the
	// snapshots of each. All conversations share it.
	sessions      = 2
	snapshotsEach = 4
)

// Options say what to open and how. Zero values take the defaults.
type Options struct {
	Model         Model
	ID            string // the model's name on the wire
	Executor      Executor
	Threads       int // of the host executor; 0 = one for each CPU
	ContextTokens int // most tokens of prompt and answer together
	ChunkTokens   int
	QueueLimit    int // requests that may wait
	Parallel      int // answers that are worked on at once; one more for the chat window
	Logger        *slog.Logger
	Disk          Disk
	// Ablate are optimisations to switch off, for measurements; nil: none. Its Acted says afterwards which had something to change.
	Ablate *ablate.Set
	// OnLoad hears how many bytes of the weights are in memory, of how many, while a model in a folder is read. It is called by
	// Open's goroutine; the last call is with done equal to total. Where the weights are not read before Open returns, it is not called.
	OnLoad func(done, total int64)
}

// Info describes an open engine.
type Info struct {
	ID            string
	Executor      string // what runs the kernels, in words
	ContextTokens int
	VocabSize     int
	WeightBytes   int64
	Created       time.Time // when the engine was opened
}

// Engine is a loaded model. Its methods are safe for concurrent use.
type Engine struct {
	info     Info
	chunk    int
	parallel int
	log      *slog.Logger

	ckpt   *checkpoint.Checkpoint
	tok    *tokenizer.Tokenizer
	dev    metal.Device
	model  *qwen36.Model
	ablate *ablate.Set
	stop   map[int32]bool // ids that end an answer

	kept        *kept
	reuse       reuse
	disk        *onDisk // nil: conversations go with the engine
	diskTrouble string
	forms       forms
	quiet       atomic.Bool
	turn        atomic.Pointer[func(kind)] // hears of each turn; for tests

	queue  *queue
	worker sync.WaitGroup
	cancel context.CancelFunc // ends what the worker is doing
	life   context.Context
	closed sync.Once
}

// Open loads a model strictly: a wrong, incomplete or damaged checkpoint is an error that names the file or tensor, and leaves
// nothing behind. The context's end stops the loading; it does not close the engine.
func Open(ctx context.Context, o Options) (_ *Engine, err error) {
	e := &Engine{log: o.Logger, chunk: o.ChunkTokens, parallel: o.Parallel, ablate: o.Ablate}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if e.chunk <= 0 {
		e.chunk = o.Executor.Chunk()
	}
	if e.parallel <= 0 {
		e.parallel = defaultLive
	}
	defer func() {
		if err != nil {
			e.release()
		}
	}()
	if e.ckpt, err = o.Model.open(); err != nil {
		return nil, err
	}
	var shape qwen36.Shape
	if err = e.ckpt.Guard(func() (err error) {
		shape, err = e.load()
		return err
	}); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	context_, err := contextTokens(o.ContextTokens, shape.MaxContext)
	if err != nil {
		return nil, err
	}
	plans := PlanOptions(o.Executor, o.Ablate)
	if e.dev, err = openDevice(o.Executor, o.Threads, plans); err != nil {
		return nil, err
	}
	if e.model, err = plans.NewModel(e.dev, e.ckpt, shape, context_); err != nil {
		return nil, err
	}
	if o.Model.fsys == nil && placementOf(o.Executor) == memgate.Mapped {
		if err = e.readAhead(ctx, memgate.Read().Available, o.OnLoad); err != nil {
			return nil, err
		}
	}
	e.info = Info{ID: o.ID, Executor: e.dev.Name(), ContextTokens: context_, VocabSize: e.tok.Vocab(), WeightBytes: e.model.WeightBytes(), Created: time.Now()}
	limit := o.QueueLimit
	if limit <= 0 {
		limit = defaultQueue
	}
	e.queue = newQueue(limit)
	e.kept = newKept(conversationBytes(PlanOptions(o.Executor, o.Ablate), shape, context_))
	e.life, e.cancel = context.WithCancel(context.Background())
	if err := e.openDisk(o.Disk, e.info.Executor, fmt.Sprintf("chunks of %d, marks every %d", e.chunk, markEvery), o.Ablate.String()); err != nil {
		return nil, err
	}
	e.worker.Add(1)
	go e.work()
	if from := kernelsOf(e.dev); from != "" {
		e.log.Info("kernels loaded", "from", from)
	}
	e.log.Info("model open", "id", o.ID, "executor", e.info.Executor, "context", context_, "weight_bytes", e.info.WeightBytes)
	return e, nil
}

// contextTokens is the size of the KV cache: what was asked for, else the default, never more than the model was made for.
func contextTokens(asked, most int) (int, error) {
	if asked < 0 || asked > most {
		return 0, fmt.Errorf("context: got %d tokens, want 1 to %d", asked, most)
	}
	if asked == 0 {
		return min(DefaultContext, most), nil
	}
	return asked, nil
}

// load reads configuration, weights and tokenizer and checks that they fit each other.
func (e *Engine) load() (qwen36.Shape, error) {
	s, quant, err := readShape(e.ckpt.File)
	if err != nil {
		return s, err
	}
	if _, err := qwen36.LoadWeights(e.ckpt, s, quant); err != nil {
		return s, err
	}
	text, err := e.ckpt.File("tokenizer.json")
	if err != nil {
		return s, err
	}
	if e.tok, err = tokenizer.Load(text); err != nil {
		return s, err
	}
	if err := e.checkUnused(); err != nil {
		return s, err
	}
	if e.tok.Vocab() > s.Vocab {
		return s, fmt.Errorf("tokenizer.json: got %d ids, want at most the %d rows of embed_tokens", e.tok.Vocab(), s.Vocab)
	}
	s.IDs = e.tok.Vocab()
	e.stop = map[int32]bool{}
	for _, id := range s.EOS {
		e.stop[id] = true
	}
	return s, nil
}

// readShape reads a model's configuration by its files.
func readShape(file func(name string) ([]byte, error)) (s qwen36.Shape, q qwen36.Quantization, err error) {
	config, err := file("config.json")
	if err != nil {
		return s, q, err
	}
	generation, err := file("generation_config.json")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, q, err
	}
	return qwen36.ParseConfig(config, generation)
}

// Close ends the running request and those that wait with ErrClosed, and releases the model. A second call does nothing.
func (e *Engine) Close() (err error) {
	e.closed.Do(func() {
		e.queue.close()
		e.cancel()
		e.worker.Wait()
		if e.disk != nil {
			err = e.disk.close(e)
		}
		err = errors.Join(err, e.release())
	})
	return err
}

func (e *Engine) release() error {
	var err error
	if e.dev != nil {
		err = e.dev.Close()
	}
	if e.ckpt != nil {
		err = errors.Join(err, e.ckpt.Close())
	}
	return err
}

// Info describes the engine.
func (e *Engine) Info() Info { return e.info }

// Tokenizer is the model's.
func (e *Engine) Tokenizer() *tokenizer.Tokenizer { return e.tok }

// MostTogether is how many answers get a token in one step at most.
const MostTogether = kernels.MaxBatch

// Stats counts what the engine does now and has done.
type Stats struct {
	Queued, Active            int                 // requests that wait, and that are worked on
	Paused                    bool                // no new work is begun
	Tokens                    int64               // computed since the start, prompts included
	Steps                     [MostTogether]int64 // of answers, by how many had a token in the step, less one
	ChosenOnDevice            int64               // tokens of answers
	ChosenOnHost              int64               // the first of each answer, those of steps of several, and all where all logits are asked for
	TokensPerSecond           float64             // of answers, in the last second; 0 when idle
	PrefillDone, PrefillTotal int                 // tokens of the prompt that is being taken in; 0 when none is
	SnapshotBytes             int64               // of snapshots that are not worked on: what giving them back frees
	ContextBytes              int64               // of the keys, values and states of conversations that rest, likewise
	Quiet                     bool                // each turn of the device is followed by a rest
	Reuse                     Reuse
	Disk                      DiskStats
}

// Stats never waits for the device.
func (e *Engine) Stats() Stats {
	s := e.queue.stats()
	s.SnapshotBytes, s.ContextBytes = e.kept.lenBytes()
	s.Quiet = e.quiet.Load()
	s.Reuse = e.reuse.stats(e)
	s.Disk = e.diskStats()
	return s
}

// Pause keeps new work waiting; an answer that runs goes on. A second call does nothing.
func (e *Engine) Pause() { e.queue.pause(true) }

// Resume lets work begin again.
func (e *Engine) Resume() { e.queue.pause(false) }

// DropSnapshots frees all that is kept of conversations and not worked on just now, and returns how many bytes that were. What runs goes on.
func (e *Engine) DropSnapshots() (freedBytes int64) { return e.kept.drop(Snapshots, Contexts) }

// Share is a part of the memory that can be given back and computed again.
type Share uint8

// The shares, in the order in which they are to be given back.
const (
	Snapshots Share = iota // to which conversations can return
	Contexts               // keys, values and states of sequences that rest: the next conversation allocates its own
)

// GiveBack frees one share, but for what is worked on just now, and returns how many bytes that were.
func (e *Engine) GiveBack(s Share) (freedBytes int64) { return e.kept.drop(s) }

// Quiet leaves the machine to others for as long as each chunk and each token has taken, or no longer.
func (e *Engine) Quiet(on bool) { e.quiet.Store(on) }

// Chat asks for the assistant's next turn. A conversation that cannot be rendered is a *chat.Error, a prompt that leaves no room a
// *ContextError, a full queue ErrBusy: all before any work. The context's end stops the answer within a token, or within a
// chunk of the prompt.
func (e *Engine) Chat(ctx context.Context, r ChatRequest) (*Answer, error) {
	prompt, err := chat.Render(r.Conversation)
	if err != nil {
		return nil, err
	}
	form, err := e.formOf(r)
	if err != nil {
		return nil, err
	}
	ids, marks := e.encode(prompt)
	j := e.newJob(ctx, ids, marks, r.Generation, prompt.Thinking)
	j.form = form
	// Who offers no tools cannot answer calls: what looks like one is text, for all to see.
	o := chat.ParserOptions{Thinking: prompt.Thinking, Tools: r.Conversation.Tools, NoCalls: len(r.Conversation.Tools) == 0}
	if form != nil {
		o.NoCalls, o.Literal = o.NoCalls || form.noCalls, form.literal
	}
	j.parser = chat.NewParser(o)
	return e.submit(j)
}

// encode turns a prompt into ids, and says where a conversation that goes another way may want to start from. Cutting at borders changes no
// id, because each starts with a control token.
func (e *Engine) encode(p chat.Prompt) (ids []int32, marks []int) {
	var borders []int
	from := 0
	for _, b := range append(slices.Clip(p.Borders), len(p.Pieces)) {
		ids = append(ids, e.tok.EncodePieces(p.Pieces[from:b])...)
		borders = append(borders, len(ids))
		from = b
	}
	return ids, marksAt(borders[:len(borders)-1], len(ids), e.chunk)
}

// markEvery is how far apart snapshots of a long text are, in tokens.
const markEvery = 4096

// marksAt chooses where to take snapshots of a prompt of n tokens: at the borders of its messages, but no nearer than apart, because each ends
// a chunk; always at the end of the first turn, which holds system text and tools, and at the start of the generation prompt, which is where
// the next turn may depart; and every markEvery tokens.
func marksAt(borders []int, n, apart int) (marks []int) {
	last := len(borders) - 1
	add := func(at int) {
		before := 0
		if len(marks) > 0 {
			before = marks[len(marks)-1]
		}
		for before+markEvery+apart <= at {
			before += markEvery
			marks = append(marks, before)
		}
	}
	for i, b := range borders {
		if b <= 0 || b >= n {
			continue
		}
		add(b)
		if k := len(marks); i == 1 || i == last || k == 0 || b-marks[k-1] >= apart {
			if k == 0 || marks[k-1] < b {
				marks = append(marks, b)
			}
		}
	}
	add(n - 1)
	return marks
}

// Complete continues a text, or tokens, as it stands: no template, no parsing; special tokens in the text are ordinary text.
func (e *Engine) Complete(ctx context.Context, r CompletionRequest) (*Answer, error) {
	ids := r.Tokens
	if ids == nil {
		ids = e.tok.Encode(r.Prompt)
	}
	if len(ids) == 0 {
		return nil, &chat.Error{Path: "prompt", Message: "got no tokens, want at least one"}
	}
	for i, id := range ids {
		if id < 0 || int(id) >= e.info.VocabSize {
			return nil, &chat.Error{Path: fmt.Sprintf("prompt[%d]", i), Message: fmt.Sprintf("got token %d, want 0 to %d", id, e.info.VocabSize-1)}
		}
	}
	// The same prompt again computes one token.
	j := e.newJob(ctx, ids, marksAt([]int{len(ids) - 1}, len(ids), e.chunk), r.Generation, false)
	if g := r.Format.Grammar(); g != nil {
		j.form = &form{vocab: e.forms.vocabulary(e), bound: e.forms.bind(e, g)}
	}
	return e.submit(j)
}
