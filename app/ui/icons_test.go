package ui

import (
	"image/color"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/test"

	"pond/assets"
)

// TestIconsAreDrawnAsTheyAreMeant: the toolkit's SVG reader fills strokes and knows no even-odd rule, so on Linux the ring of the working icon
// was a black disc, and the app's icon a square with a blot.
func TestIconsAreDrawnAsTheyAreMeant(t *testing.T) {
	themed(t)
	draw := func(name string, svg []byte) func(x, y float64) bool {
		image := canvas.NewImageFromResource(fyne.NewStaticResource(name, svg))
		w := test.NewTempWindow(t, image)
		w.SetPadded(false)
		w.Resize(fyne.NewSize(220, 220))
		shot := w.Canvas().Capture()
		nothing := color.NRGBAModel.Convert(shot.At(0, 0))
		return func(x, y float64) bool { return color.NRGBAModel.Convert(shot.At(int(x*220), int(y*220))) != nothing }
	}
	ring := draw("ring.svg", assets.TrayIcon(assets.TrayWorking(0.3)))
	for name, c := range map[string]struct {
		x, y float64
		want bool
	}{"the ring": {0.07, 0.5, true}, "its inside": {0.2, 0.5, false}, "the drop in it": {0.5, 0.5, true}} {
		if got := ring(c.x, c.y); got != c.want {
			t.Errorf("%s: drawn is %v, want %v", name, got, c.want)
		}
	}
	icon := draw("icon.svg", assets.Icon())
	if icon(0.11, 0.11) || !icon(0.5, 0.12) {
		t.Error("the app's icon has no round corners, or no water")
	}
}
