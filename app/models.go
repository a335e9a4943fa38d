package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"pond/inference/checkpoint/adopt"
	"pond/inference/checkpoint/manifest"
	"pond/inference/checkpoint/store"
)

// The model ids of the wire: the demo model that is built in, and the one Pond is made for.
const (
	DemoModel = "pond-demo"
	FullModel = "qwen3.6-35b-a3b"
)

// Model is a place to load weights from: Files when it is built in, else the folder Dir.
type Model struct {
	ID    string // model id on the wire
	Dir   string // folder with config.json, tokenizer.json and the weights
	Files fs.FS  // the built-in files
}

// Where says in words what a user would look at.
func (m Model) Where() string {
	if m.Files != nil {
		return "built in"
	}
	return m.Dir
}

// unchanged fails when a file that was adopted from another tool is no longer what was verified.
func (m Model) unchanged() error {
	changes, err := adopt.Check(m.Dir)
	for _, c := range changes {
		err = errors.Join(err, c)
	}
	if len(changes) > 0 {
		err = fmt.Errorf("%w; pond adopt looks for it again", err)
	}
	return err
}

// MissingModelError says that a name leads to no model; its message tells the places that were looked at. Commands answer it
// with an exit code of its own.
type MissingModelError struct {
	Name   string
	Reason string
}

func (e *MissingModelError) Error() string { return fmt.Sprintf("model %s: %s", e.Name, e.Reason) }

// Catalog finds models by name.
type Catalog struct {
	ModelsDir string              // installed models, one folder each, named by id
	Demo      fs.FS               // files of the built-in model
	Known     []manifest.Manifest // models whose files are known: of these only a ready one is found
}

// ready fails for a model whose files are known and are not all verified. A folder that no pull and no adoption made is the user's own
// affair, unless it lies where Pond keeps models.
func (c Catalog) ready(id, dir string, own bool) error {
	for _, m := range c.Known {
		if m.ID != id || len(m.Sources) == 0 {
			continue
		}
		if !own && !store.Keeps(dir) {
			return nil
		}
		switch st := store.LookAt(dir, m); st.State {
		case store.Ready:
			return nil
		case store.Unsure:
			return &OpenError{id, fmt.Errorf("%s; pond verify reads every byte and says what is wrong", st.Line())}
		case store.Partial:
			return &MissingModelError{id, st.Line() + "; pond pull goes on from there"}
		default:
			if err := (store.Store{Root: c.ModelsDir, Create: true}).Check(); own && err != nil {
				return &MissingModelError{id, err.Error()}
			}
			return &MissingModelError{id, fmt.Sprintf("not installed (looked in %s); pond pull downloads it (%.1f GB)", dir, float64(m.Bytes())/1e9)}
		}
	}
	return nil
}

// Find turns what a user wrote into a model: an id, or a folder (anything with a path separator, or ".").
func (c Catalog) Find(name string) (Model, error) {
	switch {
	case name == "" || name == DemoModel:
		if err := complete(c.Demo); err != nil {
			return Model{}, &MissingModelError{DemoModel, fmt.Sprintf("not in this build (%v)", err)}
		}
		return Model{ID: DemoModel, Files: c.Demo}, nil
	case strings.ContainsRune(name, filepath.Separator) || strings.HasPrefix(name, "."):
		dir, err := filepath.Abs(name)
		if err != nil {
			return Model{}, fmt.Errorf("model %s: %w", name, err)
		}
		if err := complete(os.DirFS(dir)); err != nil {
			return Model{}, &MissingModelError{name, fmt.Sprintf("no model in this folder (%v)", err)}
		}
		id := strings.ToLower(filepath.Base(dir))
		return Model{ID: id, Dir: dir}, c.ready(id, dir, false)
	}
	dir := filepath.Join(c.ModelsDir, name)
	if err := c.ready(name, dir, true); err != nil {
		return Model{}, err
	}
	if err := complete(os.DirFS(dir)); err != nil {
		if err := (Model{Dir: dir}).unchanged(); err != nil {
			return Model{}, &MissingModelError{name, err.Error()}
		}
		return Model{}, &MissingModelError{name, fmt.Sprintf("not installed (looked in %s); built in: %s; or name a folder, such as ./%s", dir, DemoModel, name)}
	}
	return Model{ID: name, Dir: dir}, nil
}

// List is every model that Find can open now: the built-in one and the installed ones, in the order of their names.
func (c Catalog) List() []Model {
	var out []Model
	if m, err := c.Find(DemoModel); err == nil {
		out = append(out, m)
	}
	entries, err := os.ReadDir(c.ModelsDir)
	if err != nil {
		return out // no folder: nothing is installed
	}
	for _, e := range entries {
		if m, err := c.Find(e.Name()); err == nil && m.Dir != "" {
			out = append(out, m)
		}
	}
	return out
}

// complete reports what a folder lacks to be a model at all; whether its files are right is the reader's judgement.
func complete(files fs.FS) error {
	if files == nil {
		return errors.New("no files")
	}
	for _, name := range []string{"config.json", "tokenizer.json"} {
		if !has(files, name) {
			return fmt.Errorf("%s is missing", name)
		}
	}
	if !has(files, "model.safetensors") && !has(files, "model.safetensors.index.json") {
		return errors.New("model.safetensors is missing, and so is an index of several weight files")
	}
	return nil
}

func has(files fs.FS, name string) bool {
	_, err := fs.Stat(files, name)
	return err == nil
}
