package bundle

import (
	"bytes"
	"fmt"
	"image"

	"github.com/fyne-io/oksvg"
	iconset "github.com/jackmordaunt/icns/v3"
	"github.com/srwiley/rasterx"
)

// iconPixels is the edge of the largest picture of an icon: 512 points at two pixels each.
const iconPixels = 1024

// icns draws a square SVG and packs it in the sizes that macOS asks for.
func icns(svg []byte) ([]byte, error) {
	picture, err := draw(svg, iconPixels)
	if err != nil {
		return nil, fmt.Errorf("bundle: icon: %w", err)
	}
	var b bytes.Buffer
	if err := iconset.Encode(&b, picture); err != nil {
		return nil, fmt.Errorf("bundle: icon: %w", err)
	}
	return b.Bytes(), nil
}

// draw renders a square SVG.
func draw(svg []byte, pixels int) (image.Image, error) {
	icon, err := oksvg.ReadIconStream(bytes.NewReader(svg))
	if err != nil {
		return nil, err
	}
	if icon.ViewBox.W <= 0 || icon.ViewBox.W != icon.ViewBox.H {
		return nil, fmt.Errorf("view box: got %g x %g, want a square", icon.ViewBox.W, icon.ViewBox.H)
	}
	icon.SetTarget(0, 0, float64(pixels), float64(pixels))
	picture := image.NewNRGBA(image.Rect(0, 0, pixels, pixels))
	canvas := image.NewRGBA(picture.Bounds())
	icon.Draw(rasterx.NewDasher(pixels, pixels, rasterx.NewScannerGV(pixels, pixels, canvas, canvas.Bounds())), 1)
	for y := range pixels {
		for x := range pixels {
			picture.Set(x, y, canvas.At(x, y))
		}
	}
	return picture, nil
}
