package ui

import (
	"image/color"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
)

// Colours of Pond's own, beside Fyne's.
const (
	colorSurface fyne.ThemeColorName = "pondSurface" // behind code, questions and cards
	colorQuiet   fyne.ThemeColorName = "pondQuiet"   // text that is not the point
	colorTrack   fyne.ThemeColorName = "pondTrack"   // the part of a bar that is not full
)

// pondTheme is still water: greys with a little green in them, one teal, the same in light and dark.
type pondTheme struct {
	fyne.Theme
	fixed *fyne.ThemeVariant // for pictures; nil: what the system says
}

func newTheme() fyne.Theme { return &pondTheme{Theme: theme.DefaultTheme()} }

// gray, teal and so on are pairs: light, dark.
type pair struct{ light, dark color.NRGBA }

func rgb(hex uint32) color.NRGBA {
	return color.NRGBA{uint8(hex >> 16), uint8(hex >> 8), uint8(hex), 0xff}
}

func tint(hex uint32, alpha uint8) color.NRGBA {
	c := rgb(hex)
	c.A = alpha
	return c
}

// colorOf is the palette; false: Fyne's own.
func colorOf(name fyne.ThemeColorName) (pair, bool) {
	switch name {
	case theme.ColorNameBackground:
		return pair{rgb(0xF8FAF9), rgb(0x151B1A)}, true
	case theme.ColorNameForeground:
		return pair{rgb(0x17211F), rgb(0xE3EBE8)}, true
	case theme.ColorNamePrimary:
		return pair{rgb(0x0B7A75), rgb(0x3FB5AB)}, true
	case theme.ColorNameForegroundOnPrimary:
		return pair{rgb(0xFFFFFF), rgb(0x06201E)}, true
	case theme.ColorNameHyperlink:
		return pair{rgb(0x0B6A8E), rgb(0x6CC4E0)}, true
	case theme.ColorNameFocus:
		return pair{tint(0x0B7A75, 0x55), tint(0x3FB5AB, 0x66)}, true
	case theme.ColorNameSelection:
		return pair{tint(0x0B7A75, 0x33), tint(0x3FB5AB, 0x40)}, true
	case theme.ColorNameButton:
		return pair{rgb(0xE6ECEA), rgb(0x26302E)}, true
	case theme.ColorNameDisabledButton:
		return pair{rgb(0xEEF2F0), rgb(0x1E2625)}, true
	case theme.ColorNameDisabled:
		return pair{rgb(0x6F7E7A), rgb(0x84938F)}, true
	case theme.ColorNameHover:
		return pair{tint(0x17211F, 0x10), tint(0xE3EBE8, 0x14)}, true
	case theme.ColorNamePressed:
		return pair{tint(0x17211F, 0x22), tint(0xE3EBE8, 0x26)}, true
	case theme.ColorNameInputBackground:
		return pair{rgb(0xFFFFFF), rgb(0x1C2423)}, true
	case theme.ColorNameInputBorder:
		return pair{rgb(0x7A8885), rgb(0x66746F)}, true // an empty box must be seen: 3 to 1 on every surface
	case theme.ColorNamePlaceHolder:
		return pair{rgb(0x74837F), rgb(0x84948F)}, true
	case theme.ColorNameSeparator:
		return pair{rgb(0xDFE7E4), rgb(0x2A3432)}, true
	case theme.ColorNameHeaderBackground:
		return pair{rgb(0xEDF2F0), rgb(0x1D2524)}, true
	case theme.ColorNameMenuBackground, theme.ColorNameOverlayBackground:
		return pair{rgb(0xFFFFFF), rgb(0x1F2827)}, true
	case theme.ColorNameError:
		return pair{rgb(0xB3372B), rgb(0xF0847A)}, true
	case theme.ColorNameWarning:
		return pair{rgb(0x9A6700), rgb(0xE3B341)}, true
	case theme.ColorNameSuccess:
		return pair{rgb(0x1F7A45), rgb(0x5CC98A)}, true
	case theme.ColorNameScrollBar:
		return pair{tint(0x17211F, 0x55), tint(0xE3EBE8, 0x55)}, true
	case theme.ColorNameShadow:
		return pair{tint(0x000000, 0x20), tint(0x000000, 0x60)}, true
	case colorTrack:
		return pair{rgb(0xCFD9D6), rgb(0x364240)}, true
	case colorSurface:
		return pair{rgb(0xEDF2F0), rgb(0x1E2726)}, true
	case colorQuiet:
		return pair{rgb(0x5C6B67), rgb(0x93A29E)}, true
	}
	return pair{}, false
}

func (t *pondTheme) Color(name fyne.ThemeColorName, v fyne.ThemeVariant) color.Color {
	if t.fixed != nil {
		v = *t.fixed
	}
	c, ok := colorOf(name)
	switch {
	case !ok:
		return t.Theme.Color(name, v)
	case v == theme.VariantDark:
		return c.dark
	}
	return c.light
}

func (t *pondTheme) Size(name fyne.ThemeSizeName) float32 {
	switch name {
	case theme.SizeNamePadding:
		return 5
	case theme.SizeNameInnerPadding:
		return 8
	case theme.SizeNameText:
		return 14
	case theme.SizeNameCaptionText:
		return 12
	case theme.SizeNameHeadingText:
		return 22
	case theme.SizeNameSubHeadingText:
		return 17
	case theme.SizeNameInputRadius, theme.SizeNameButtonRadius:
		return 8
	case theme.SizeNameSelectionRadius:
		return 6
	case theme.SizeNameScrollBar:
		return 10
	case theme.SizeNameScrollBarSmall:
		return 4
	case theme.SizeNameInlineIcon:
		return 18
	case theme.SizeNameSplitThickness:
		return 3
	}
	return t.Theme.Size(name)
}
