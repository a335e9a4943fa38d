// Package tray draws the icons of the menu bar as SVG: a drop over its ripple. The drop is an outline while nothing is loaded and full
// while Pond answers; while it works towards that a ring around it fills in steps; after a failure the drop is broken by a mark.
package tray

import (
	"fmt"
	"math"
)

// Steps is how many parts the ring of the working icon has.
const Steps = 8

// All is every icon by its file name.
func All() map[string]string {
	out := map[string]string{
		"z_tray_stopped.svg": svg(dropOutline + ripple),
		"z_tray_running.svg": svg(dropFull + ripple),
		"z_tray_failed.svg":  svg(dropOutline + mark + ripple),
	}
	for step := range Steps + 1 {
		out[fmt.Sprintf("z_tray_working_%d.svg", step)] = svg(dropSmall + ring(step))
	}
	return out
}

// svg is a drawing on 22 points, as high as a menu bar allows. Black is the colour that a template image is drawn in.
func svg(body string) string {
	return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 22 22" width="22" height="22">` + "\n" + body + "</svg>\n"
}

// Paths are filled, never stroked: Fyne's renderer recolours fills alone.
const (
	dropFull    = `<path d="M11 1.5 C12 4.6 15 7 15 10.2 A4 4 0 0 1 7 10.2 C7 7 10 4.6 11 1.5 Z" fill="#000000"/>` + "\n"
	dropOutline = `<path fill-rule="evenodd" d="M11 1.5 C12 4.6 15 7 15 10.2 A4 4 0 0 1 7 10.2 C7 7 10 4.6 11 1.5 Z M11 4.6 C10.2 6.5 8.3 8.2 8.3 10.2 A2.7 2.7 0 0 0 13.7 10.2 C13.7 8.2 11.8 6.5 11 4.6 Z" fill="#000000"/>` + "\n"
	dropSmall   = `<path d="M11 5.4 C11.7 7.6 14 9.6 14 12.2 A3 3 0 0 1 8 12.2 C8 9.6 10.3 7.6 11 5.4 Z" fill="#000000"/>` + "\n"
	ripple      = `<path d="M4.2 14.4 C0.6 15.7 1.2 18.1 4.9 19.3 C8.5 20.5 13.5 20.5 17.1 19.3 C20.8 18.1 21.4 15.7 17.8 14.4 L17.2 15.6 C19.6 16.5 19.2 17.4 16.6 18.2 C13.3 19.2 8.7 19.2 5.4 18.2 C2.8 17.4 2.4 16.5 4.8 15.6 Z" fill="#000000"/>` + "\n"
	mark        = `<path d="M10.3 6.8 L11.7 6.8 L11.45 9.9 L10.55 9.9 Z" fill="#000000"/>` + "\n" + `<path d="M11 10.5 A0.75 0.75 0 1 1 10.99 10.5 Z" fill="#000000"/>` + "\n"
)

// ring is a thin circle, thick over the part that is done.
func ring(step int) string {
	const outer, thin, thick = 9.8, 9.0, 7.9
	text := circle(outer, thin)
	switch step {
	case 0:
	case Steps:
		text = circle(outer, thick)
	default:
		text += sector(0, 2*math.Pi*float64(step)/Steps, outer, thick)
	}
	return text
}

// circle is a whole ring between two radii: two circles of opposite direction, because Fyne's renderer knows no even-odd rule.
func circle(outer, inner float64) string {
	one := func(r float64, sweep int) string {
		return fmt.Sprintf("M11 %.2f A%.1f %.1f 0 1 %d 11 %.2f A%.1f %.1f 0 1 %d 11 %.2f Z", 11-r, r, r, sweep, 11+r, r, r, sweep, 11-r)
	}
	return fmt.Sprintf(`<path d="%s %s" fill="#000000"/>`+"\n", one(outer, 1), one(inner, 0))
}

// sector is the part of a ring between two radii, from one angle to another, clockwise from the top.
func sector(from, to, outer, inner float64) string {
	point := func(angle, r float64) string {
		return fmt.Sprintf("%.2f %.2f", 11+r*math.Sin(angle), 11-r*math.Cos(angle))
	}
	large := 0
	if to-from > math.Pi {
		large = 1
	}
	return fmt.Sprintf(`<path d="M%s A%.1f %.1f 0 %d 1 %s L%s A%.1f %.1f 0 %d 0 %s Z" fill="#000000"/>`+"\n",
		point(from, outer), outer, outer, large, point(to, outer), point(to, inner), inner, inner, large, point(from, inner))
}
