package adopt

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Where tools keep models, as their sources and documentation say:
//
//	Hugging Face  the hub cache: $HF_HUB_CACHE, else $HUGGINGFACE_HUB_CACHE (its older name), else $HF_HOME/hub, else
//	              $XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub. A repository is models--OWNER--NAME with
//	              snapshots/REVISION/FILE, links to blobs/DIGEST; the digest of a large file is its SHA-256
//	LM Studio     OWNER/NAME/FILE below the models folder of its home: ~/.lmstudio, or what ~/.lmstudio-home-pointer names, before that
//	              ~/.cache/lm-studio; a user may have moved the folder, which settings.json of the home tells (downloadsFolder)
//	oMLX          NAME/FILE or OWNER/NAME/FILE below ~/.omlx/models, or what settings.json tells (model.model_dir, model.model_dirs)

// Environment is what places depend on.
type Environment struct {
	Home   string              // the user's home folder; empty: unknown
	Getenv func(string) string // nil: nothing is set
}

// place is a folder in which a tool keeps models.
type place struct {
	tool string
	dir  string
	hub  bool // in the layout of the hub cache
}

// places lists where to look, without looking.
func (e Environment) places() []place {
	get := e.Getenv
	if get == nil {
		get = func(string) string { return "" }
	}
	home := func(parts ...string) string {
		if e.Home == "" {
			return ""
		}
		return filepath.Join(append([]string{e.Home}, parts...)...)
	}
	var out []place
	seen := map[string]bool{}
	put := func(tool, dir string, hub bool) {
		if dir = e.expand(dir); filepath.IsAbs(dir) && !seen[dir] {
			seen[dir] = true
			out = append(out, place{tool, dir, hub})
		}
	}

	cache := get("XDG_CACHE_HOME")
	if cache == "" {
		cache = home(".cache")
	}
	hub := below(cache, "huggingface", "hub")
	for _, named := range []string{below(get("HF_HOME"), "hub"), get("HUGGINGFACE_HUB_CACHE"), get("HF_HUB_CACHE")} {
		if named != "" {
			hub = named
		}
	}
	put("Hugging Face", hub, true)

	homes := []string{home(".lmstudio"), home(".cache", "lm-studio")}
	if text, err := readSmall(home(".lmstudio-home-pointer")); err == nil {
		line, _, _ := strings.Cut(string(text), "\n")
		homes = append([]string{strings.TrimSpace(line)}, homes...)
	}
	for _, h := range homes {
		var settings struct {
			DownloadsFolder string `json:"downloadsFolder"`
		}
		if readJSON(below(h, "settings.json"), &settings) {
			put("LM Studio", settings.DownloadsFolder, false)
		}
		put("LM Studio", below(h, "models"), false)
	}

	var omlx struct {
		Model struct {
			Dir  string   `json:"model_dir"`
			Dirs []string `json:"model_dirs"`
		} `json:"model"`
	}
	if readJSON(home(".omlx", "settings.json"), &omlx) {
		for _, d := range append(omlx.Model.Dirs, omlx.Model.Dir) {
			put("oMLX", d, false)
		}
	}
	put("oMLX", home(".omlx", "models"), false)
	return out
}

// expand takes the user's home for a leading tilde.
func (e Environment) expand(dir string) string {
	if rest, ok := strings.CutPrefix(dir, "~/"); ok && e.Home != "" {
		return filepath.Join(e.Home, rest)
	}
	if dir == "" {
		return ""
	}
	return filepath.Clean(dir)
}

// below is a path below a folder; empty when there is no folder.
func below(dir string, parts ...string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(append([]string{dir}, parts...)...)
}

// smallBytes bounds what is read of other tools' settings.
const smallBytes = 1 << 20

// readSmall reads a regular file of another tool's settings.
func readSmall(file string) ([]byte, error) {
	if file == "" {
		return nil, os.ErrNotExist
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, os.ErrInvalid // opening a pipe would wait
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, smallBytes))
}

// readJSON reports whether a settings file was there and understood: what a foreign tool wrote there is a hint, never an error.
func readJSON(file string, into any) bool {
	text, err := readSmall(file)
	return err == nil && json.Unmarshal(text, into) == nil
}
