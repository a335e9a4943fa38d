package main

import (
	"os"
	"testing"
)

// The law of the source tree as data. architecture_check_test.go reads it; architecture_planted_test.go proves that each
// rule catches a violation. Change a row only together with the reason, in the same commit.
//
// The order of the layers, never back:  main -> app/ui -> app -> server -> inference -> metal.

// layer says what one package of this module may import of the module. The first row whose pattern matches counts; a
// pattern ending in /... covers the package and everything below it. A package that no row covers is a violation, so a
// new package is placed on purpose.
type layer struct {
	pkg string   // directory of the package, "." for the root
	may []string // patterns
}

var layers = []layer{
	{".", []string{"app/...", "server", "inference/...", "assets", "parity"}},
	{"scripts/fullsize", []string{"inference/tinymodel/fullsize"}},
	{"scripts/icons", []string{"scripts/icons/tray"}},
	{"scripts/rehearsal", []string{"inference/..."}},
	{"scripts/benchpeer", []string{"inference/...", "metal/host/..."}},
	{"scripts/gpubench", []string{"inference/...", "metal", "metal/..."}},
	{"scripts/metalreport", []string{"inference/ablate", "inference/plan", "inference/qwen36", "inference/sample", "metal/..."}},
	{"scripts/...", nil},
	{"parity", nil}, // a record, and tests
	{"packaging/bundle", nil},
	{"packaging/inspect", nil}, // shares nothing with bundle, which it checks
	{"packaging/licences", nil},
	{"packaging/homebrew", nil},
	{"packaging/pack", []string{"packaging/...", "app/update", "assets", "metal/kernels"}}, // the kernels' text, to compile it
	{"assets/...", nil},

	{"app/ui", []string{"app", "app/chats", "app/settings", "inference/memgate"}},
	{"app/settings", nil},
	{"app/update", nil},
	{"app/chats", []string{"inference", "inference/chat", "inference/sample"}},
	{"app/console", []string{"inference", "inference/chat", "inference/sample"}},
	{"app", []string{"app/settings", "app/chats", "app/update", "server", "inference/...", "assets"}},

	{"server/openai", nil},
	{"server", []string{"server/openai", "inference", "inference/chat", "inference/grammar", "inference/sample", "inference/tokenizer"}},

	{"inference/plan", nil},
	{"inference/tokenizer", nil},
	{"inference/sample", nil},
	{"inference/grammar", nil},
	{"inference/memgate", nil},
	{"inference/ablate", nil},
	{"inference/chat", []string{"inference/tokenizer"}},
	{"inference/checkpoint/...", []string{"inference/checkpoint/..."}},
	{"inference/tinymodel/...", []string{"inference/tinymodel"}},
	{"inference/cache", []string{"metal", "inference/checkpoint/disk"}},
	{"inference/qwen36", []string{"inference/ablate", "inference/cache", "inference/checkpoint", "inference/plan", "metal", "metal/kernels"}},
	{"inference/bench", nil},
	{"inference/eval", []string{"inference"}},
	{"inference", []string{"inference/...", "metal/..."}},

	{"metal/mtl", nil},
	{"metal/kernels", nil},
	{"metal/...", []string{"metal/..."}},
}

// testExtra adds to layers what the tests of a package may import besides: a test may look down, never up.
var testExtra = []layer{
	{"packaging/bundle", []string{"packaging/inspect", "assets"}},
	{".", []string{"inference/...", "server/..."}},
	{"parity", []string{"inference/...", "metal/...", "assets"}},
	{"app/...", []string{"inference/...", "assets"}},
	{"server/...", []string{"inference/...", "assets"}},
	{"inference/...", []string{"inference/...", "metal/...", "assets"}},
	{"metal/...", []string{"inference/...", "metal/..."}},
}

// deviceFree packages know nothing of devices, in their tests neither.
var deviceFree = []string{
	"app/...", "server/...",
	"inference/plan", "inference/sample", "inference/tokenizer", "inference/chat", "inference/checkpoint/...",
	"inference/memgate", "inference/ablate", "inference/grammar",
}

// library is an import path from outside the module (or a standard package that needs watching) and the only files that may
// import it. A third-party import without a row is a violation, so each library is chosen on purpose; ARCHITECTURE.md says
// why each is here. The first row that matches the import path counts.
type library struct {
	path  string   // import path, or prefix ending in /...
	files []string // file patterns: a directory pattern, or path.Match on the file's path
}

var libraries = []library{
	{"C", nil},
	{"unsafe", []string{"metal/mtl", "metal/gpu", "metal/standin", "metal/host/...", "inference/checkpoint", "inference/memgate/probe_*.go", "app/login_darwin.go"}},
	{"fyne.io/fyne/v2/app", []string{"gui.go"}},
	{"fyne.io/systray", []string{"gui.go"}},
	{"fyne.io/fyne/v2/...", []string{"gui.go", "app/ui"}},
	{"github.com/yuin/goldmark/...", []string{"app/ui"}},
	{"github.com/labstack/echo/v4/...", []string{"server"}},
	{"github.com/prometheus/client_golang/...", []string{"server"}},
	{"github.com/ebitengine/purego/...", []string{"metal/mtl", "metal/standin", "inference/memgate/probe_darwin.go", "app/*_darwin.go"}},
	{"gopkg.in/natefinch/lumberjack.v2", []string{"app"}},
	{"github.com/godbus/dbus/v5", []string{"app"}},
	{"gonum.org/v1/plot/...", []string{"inference/bench"}},
	{"github.com/adrg/xdg", []string{"app/settings"}},
	{"github.com/spf13/cobra", []string{"*.go"}},
	{"github.com/spf13/pflag", []string{"*.go"}},
	{"golang.org/x/term", []string{"*.go", "app/console"}},
	{"golang.org/x/sys/...", []string{"app", "app/update", "app/console", "inference/checkpoint/...", "inference/memgate", "metal/mtl", "metal/gpu", "metal/host/...", "metal/standin"}},
	{"github.com/fyne-io/oksvg", []string{"packaging/bundle"}},
	{"github.com/srwiley/rasterx", []string{"packaging/bundle"}},
	{"github.com/jackmordaunt/icns/v3", []string{"packaging/bundle"}},
	{"golang.org/x/text/...", []string{"inference/tokenizer"}},
}

// testLibraries may be imported by test files anywhere.
var testLibraries = []string{
	"github.com/google/go-cmp/...",
	"github.com/godbus/dbus/v5/...",
	"github.com/rogpeppe/go-internal/...",
	"github.com/blacktop/go-macho/...",
	"github.com/openai/openai-go/v3/...",
	"github.com/santhosh-tekuri/jsonschema/v6/...",
}

// forbiddenNames say nothing about what is inside.
var forbiddenNames = []string{"util", "utils", "common", "helper", "helpers", "misc"}

// buildTags are the only words a //go:build line may use; systems and processors besides come from file names.
var buildTags = []string{"cgo", "ci", "darwin", "linux", "amd64", "arm64", "race"}

// tagPair is the one pair of files that the build chooses between: the GUI with cgo, its absence without.
var tagPair = map[string]string{"gui.go": "cgo || ci", "nogui.go": "!cgo && !ci"}

// lineLimit is the longest source file; about half of it is the aim.
const lineLimit = 800

// lengthExtensions are the kinds of files lineLimit holds for.
var lengthExtensions = []string{".go", ".metal", ".cpp", ".h"}

// mutable lists package-level variables that break the rule of state on purpose: "dir.name" -> reason.
var mutable = map[string]string{}

// TestArchitecture holds the tree to the law above.
func TestArchitecture(t *testing.T) {
	tree, err := readTree(os.DirFS("."), "pond")
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.packages()) < 2 {
		t.Fatalf("got %d packages, want the whole tree: the check is not looking at the sources", len(tree.packages()))
	}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			for _, v := range c.run(tree) {
				t.Error(v)
			}
		})
	}
}
