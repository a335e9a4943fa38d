package ui

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"

	"pond/app"
	"pond/app/chats"
	"pond/inference"
	"pond/inference/chat"
)

// TestScreenshots writes a picture of every window in light and dark, at one and two pixels a unit. It runs when POND_SCREENSHOTS names a
// folder: make screenshots.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("POND_SCREENSHOTS")
	if dir == "" {
		t.Skip("POND_SCREENSHOTS names no folder: make screenshots does")
	}
	t.Setenv("HOME", "/Users/ada")
	zone := time.Local
	time.Local = time.UTC
	defer func() { time.Local = zone }()
	for _, variant := range []fyne.ThemeVariant{theme.VariantLight, theme.VariantDark} {
		name := map[fyne.ThemeVariant]string{theme.VariantLight: "light", theme.VariantDark: "dark"}[variant]
		for _, scale := range []int{1, 2} {
			for _, s := range scenes() {
				t.Run(fmt.Sprintf("%s-%s-%dx", s.name, name, scale), func(t *testing.T) {
					st := newStage(t, s.state)
					st.app.Settings().SetTheme(&pondTheme{theme.DefaultTheme(), &variant})
					st.ui.now = func() time.Time { return time.Date(2026, 3, 14, 15, 9, 0, 0, time.UTC) }
					s.prepare(st)
					st.settle()
					w := s.window(st)
					w.Canvas().(interface{ SetScale(float32) }).SetScale(float32(scale))
					w.Resize(s.size)
					w.Content().Refresh()
					st.settle()
					if s.finish != nil {
						s.finish(st)
					}
					img := w.Canvas().Capture()
					if err := writePicture(filepath.Join(dir, fmt.Sprintf("%s-%s-%dx.png", s.name, name, scale)), img); err != nil {
						t.Fatal(err)
					}
				})
			}
		}
	}
}

// scene is one picture.
type scene struct {
	name    string
	state   app.State
	size    fyne.Size
	prepare func(*stage)
	window  func(*stage) fyne.Window
	finish  func(*stage)
}

func scenes() []scene {
	found := stateOf(app.NeedModel)
	found.Found = []app.Copy{{Tool: "LM Studio", Dir: "/Users/ada/.lmstudio/models/qwen3.6-35b-a3b", Bytes: gb(20.42)}}
	failed := stateOf(app.Stopped)
	failed.Phase, failed.Failure, failed.NextAddress, failed.Holder = app.Failed, "the port is held by ollama (process 812): address 127.0.0.1:11535 is in use, 127.0.0.1:11536 is free", "127.0.0.1:11536", "ollama (process 812)"
	small := stateOf(app.Stopped)
	small.Model, small.Disk = app.DemoModel, app.DiskState{}
	small.Machine = app.MachineFacts{System: "macOS 15.6, arm64", Processor: "Apple M2", Memory: "16.0 GB, of which 9.4 GB are available"}
	small.Verdict = app.Verdict{Known: true, Allowed: true, Sentence: "fits: needs 132 MB, and 9.4 GB are available", CeilingTokens: 32768, NeedBytes: 132e6, HaveBytes: gb(9.4),
		Sums: []app.Sum{{Label: "weights", Bytes: 31e6}, {Label: "prefill workspace", Bytes: 40e6}, {Label: "keys and values of 32K tokens", Bytes: 61e6}, {Label: "in all", Bytes: 132e6}}}
	ready := stateOf(app.Running)
	ready.Work.Reuse = inference.Reuse{ReusedTokens: 482_300, ComputedTokens: 61_900, DiskTokens: 24_100, StoredTokens: 96_400, SavedToday: 14 * time.Minute,
		Miss: &inference.Miss{PromptTokens: 12_431, CommonTokens: 8, Text: "15:09 on Saturday. You are", WasBefore: "15:08 on Saturday. You are"}}
	ready.Work.KeptBytes, ready.KeptBytes = 2_140e6, 3_480e6
	open := func(a app.Action) func(*stage) { return func(st *stage) { st.ui.Open(a) } }
	chatScene := func(st *stage) {
		writeChats(st)
		c := st.openChat()
		st.settle()
		c.open("20260314-150100-pond")
		st.until("the chat", func() bool { return c.view.ID == "20260314-150100-pond" })
	}
	chatWin := func(st *stage) fyne.Window { return st.ui.chat.w }
	return []scene{
		{"welcome", stateOf(app.NeedModel), fyne.NewSize(620, 700), open(app.OpenWelcome), func(st *stage) fyne.Window { return st.ui.welcome.w }, nil},
		{"welcome-found", found, fyne.NewSize(620, 700), open(app.OpenWelcome), func(st *stage) fyne.Window { return st.ui.welcome.w }, nil},
		{"welcome-demo", small, fyne.NewSize(620, 700), open(app.OpenWelcome), func(st *stage) fyne.Window { return st.ui.welcome.w }, nil},
		{"home", stateOf(app.Busy), fyne.NewSize(600, 480), open(app.OpenWindow), func(st *stage) fyne.Window { return st.ui.home.w }, nil},
		{"home-failed", failed, fyne.NewSize(600, 480), open(app.OpenWindow), func(st *stage) fyne.Window { return st.ui.home.w }, nil},
		{"model", stateOf(app.Downloading), fyne.NewSize(700, 560), open(app.OpenModel), func(st *stage) fyne.Window { return st.ui.model.w }, nil},
		{"model-ready", ready, fyne.NewSize(700, 560), open(app.OpenModel), func(st *stage) fyne.Window { return st.ui.model.w }, nil},
		{"chat", stateOf(app.Running), fyne.NewSize(980, 700), chatScene, chatWin, func(st *stage) { st.ui.chat.relayout(true) }},
		{"chat-thinking", stateOf(app.Busy), fyne.NewSize(980, 700), func(st *stage) {
			writeChats(st)
			st.player.events = []chat.Event{{Kind: chat.Reasoning, Text: "The user wants a schedule. Let me see: seven days, two plants that need shade in the afternoon, and a frog that must not be disturbed before nine."}}
			st.player.hold = make(chan struct{})
			c := st.openChat()
			st.settle()
			c.open("20260313-101500-week")
			st.until("the chat", func() bool { return c.view.ID == "20260313-101500-week" })
			c.toggleDrawer()
			c.entry.SetText("Plan next week for the pond, hour by hour.")
			c.submit()
			st.until("thinking", func() bool { return c.view.Work == chats.Thinking })
		}, chatWin, func(st *stage) {
			c, fixed := st.ui.chat, st.ui.now
			v := c.view
			v.Since = time.Now().Add(-14*time.Second - 300*time.Millisecond)
			st.ui.now = time.Now
			c.messages[len(c.messages)-1].fold()
			c.draw(v)
			c.relayout(true)
			st.settle()
			st.ui.now = fixed
			c.side.found[0].Updated = fixed()
			c.side.list.Refresh()
		}},
		{"chat-empty", stateOf(app.Stopped), fyne.NewSize(980, 700), func(st *stage) { st.openChat() }, chatWin, nil},
		{"settings", stateOf(app.Running), fyne.NewSize(700, 600), open(app.OpenSettings), func(st *stage) fyne.Window { return st.ui.settings.w }, nil},
		{"settings-chat", stateOf(app.Running), fyne.NewSize(700, 600), open(app.OpenSettings), func(st *stage) fyne.Window { return st.ui.settings.w }, func(st *stage) { st.ui.settings.tabs.SelectIndex(3) }},
		{"settings-endpoint", stateOf(app.Running), fyne.NewSize(700, 600), func(st *stage) {
			st.chosen.LAN, st.chosen.Key = true, "pond-3f9a61c2d8e7"
			st.ui.Open(app.OpenSettings)
		}, func(st *stage) fyne.Window { return st.ui.settings.w }, func(st *stage) { st.ui.settings.tabs.SelectIndex(1) }},
		{"logs", stateOf(app.Running), fyne.NewSize(860, 420), func(st *stage) {
			writeLog(st)
			st.ui.Open(app.OpenLogs)
		}, func(st *stage) fyne.Window { return st.ui.logs.w }, func(st *stage) {
			st.ui.logs.status.SetText("~/.local/state/pond/pond.log · what is said in chats is not in it")
		}},
		{"about", stateOf(app.Running), fyne.NewSize(380, 410), func(st *stage) { st.ui.OpenAbout() }, func(st *stage) fyne.Window { return st.ui.about.w }, nil},
	}
}

// writeLog is the log of a real run: Pond with its window and the demo model on Linux, three requests of which one is refused.
func writeLog(st *stage) {
	text, err := os.ReadFile(filepath.Join("testdata", "pond.log"))
	if err == nil {
		err = os.WriteFile(filepath.Join(st.dir, "pond.log"), text, 0o600)
	}
	if err != nil {
		st.t.Fatal(err)
	}
}

const answerText = `A pond stays clear when **three things** balance:

1. **Plants** take up the nutrients that algae would use. Cover about a third of the surface.
2. **Oxygen** lets bacteria break down what sinks. A small fall of water is enough.
3. **Few fish**: they stir the ground and feed the algae.

| Sign | What it means | What helps |
|---|---|---|
| Green water | too many nutrients | more plants, less food |
| Brown water | stirred mud | gravel, fewer fish |
| Threads | much light, little shade | water lilies |

To see how much a pump must move, take the volume once in two hours:

` + "```python\ndef pump_rate(length, width, depth, hours=2):\n    \"\"\"Litres an hour for a pond measured in metres.\"\"\"\n    return 1000 * length * width * depth / hours\n\nprint(pump_rate(4, 3, 0.8))  # 4800.0\n```\n" + `
> Wait a week before you change anything else: a pond is slow, and _that_ is its charm.
`

// writeChats fills the folder with chats of fixed times.
func writeChats(st *stage) {
	q := func(s string) string { return fmt.Sprintf("%q", s) }
	for name, lines := range map[string][]string{
		"20260314-150100-pond": {
			`{"message":{"id":1,"role":"user","text":"How does a pond stay clear? Give me a table, and a formula for the pump.","at":"2026-03-14T15:01:00Z"}}`,
			`{"message":{"id":2,"parent":1,"role":"assistant","thinking":"The user asks about clear ponds.","text":` + q(answerText) + `,"at":"2026-03-14T15:01:04Z","end":"stop","figures":{"prompt_tokens":41,"tokens":412,"first_token_ms":380,"thinking_ms":3200,"tokens_a_second":61.4}}}`,
			`{"message":{"id":3,"parent":2,"role":"user","text":"And in one sentence?","at":"2026-03-14T15:03:00Z"}}`,
			`{"message":{"id":4,"parent":3,"role":"assistant","text":"Many plants, some moving water and few fish keep it clear.","at":"2026-03-14T15:03:01Z","end":"stop","figures":{"prompt_tokens":480,"cached_tokens":453,"tokens":15,"first_token_ms":120,"tokens_a_second":62.9}}}`,
		},
		"20260313-101500-week": {
			`{"message":{"id":1,"role":"user","text":"Which plants suit a small pond in half shade?","at":"2026-03-13T10:15:00Z"}}`,
			`{"message":{"id":2,"parent":1,"role":"assistant","text":"- **Marsh marigold** at the edge\n- **Hornwort** under water\n- **Dwarf water lily**, if it gets four hours of sun","at":"2026-03-13T10:15:04Z","end":"stop","figures":{"tokens":48,"first_token_ms":210,"tokens_a_second":62.1}}}`,
		},
		"20260312-090000-regex":  {`{"message":{"id":1,"role":"user","text":"Explain this regular expression","at":"2026-03-12T09:00:00Z"}}`},
		"20260310-090000-letter": {`{"message":{"id":1,"role":"user","text":"A friendly letter to the landlord about the heating","at":"2026-03-10T09:00:00Z"}}`},
		"20260221-090000-trip":   {`{"message":{"id":1,"role":"user","text":"Three days in Kyoto by train","at":"2026-02-21T09:00:00Z"}}`},
		"20251220-090000-gift":   {`{"message":{"id":1,"role":"user","text":"Gift ideas for somebody who has everything","at":"2025-12-20T09:00:00Z"}}`},
	} {
		text := fmt.Sprintf(`{"pond_chat":1,"id":%q,"at":"2026-03-01T00:00:00Z"}`, name) + "\n" + strings.Join(lines, "\n") + "\n"
		if err := os.WriteFile(filepath.Join(st.dir, name+".jsonl"), []byte(text), 0o600); err != nil {
			st.t.Fatal(err)
		}
	}
}

// writePicture writes a PNG of at most 256 colours, which makes it a third as large.
func writePicture(path string, img image.Image) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	e := png.Encoder{CompressionLevel: png.BestCompression}
	return e.Encode(f, reduce(img))
}

// reduce gives a picture the 256 colours that it has most of, by median cut over what it has.
func reduce(img image.Image) *image.Paletted {
	b := img.Bounds()
	count := map[color.NRGBA]int{}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			c := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
			c.A = 0xff
			count[c]++
		}
	}
	var all []color.NRGBA
	for c := range count {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b color.NRGBA) int { // a map has no order, a picture has
		return int(a.R)<<16 + int(a.G)<<8 + int(a.B) - (int(b.R)<<16 + int(b.G)<<8 + int(b.B))
	})
	boxes := [][]color.NRGBA{all}
	for len(boxes) < 256 {
		best, channel, spread := -1, 0, 0
		for i, box := range boxes {
			n := 0
			for _, c := range box {
				n += min(count[c], 2000)
			}
			for ch := range 3 {
				lo, hi := 255, 0
				for _, c := range box {
					v := int([3]uint8{c.R, c.G, c.B}[ch])
					lo, hi = min(lo, v), max(hi, v)
				}
				if s := (hi - lo) * (hi - lo) * n; s > spread {
					best, channel, spread = i, ch, s
				}
			}
		}
		if best < 0 {
			break
		}
		box := boxes[best]
		slices.SortStableFunc(box, func(a, b color.NRGBA) int {
			return int([3]uint8{a.R, a.G, a.B}[channel]) - int([3]uint8{b.R, b.G, b.B}[channel])
		})
		half := max(1, len(box)/2)
		boxes[best] = box[:half]
		boxes = append(boxes, box[half:])
	}
	var palette color.Palette
	index := map[color.NRGBA]uint8{}
	for i, box := range boxes {
		most := box[0]
		for _, c := range box {
			if count[c] > count[most] {
				most = c
			}
			index[c] = uint8(i)
		}
		palette = append(palette, most)
	}
	out := image.NewPaletted(b, palette)
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			c := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
			c.A = 0xff
			out.SetColorIndex(x, y, index[c])
		}
	}
	return out
}
