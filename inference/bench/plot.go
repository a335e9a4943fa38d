package bench

import (
	"fmt"
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Plots writes base-decode and base-prefill over context, or base-http over clients, each as PNG and SVG, and returns the files' names.
func (r Report) Plots(base string) (files []string, err error) {
	draws := []struct {
		name, title, x string
		lines          []line
	}{
		{"decode", "Decode", "context, tokens", r.lines(func(x Row) float64 { return x.Decode })},
		{"prefill", "Prefill", "context, tokens", r.lines(func(x Row) float64 { return x.Prefill })},
		{"http", "Throughput through HTTP", "requests at once", r.httpLines()},
	}
	for _, d := range draws {
		if len(d.lines) == 0 {
			continue
		}
		p, err := figure(d.title, d.x+"\n"+r.caption(), d.lines)
		if err != nil {
			return files, err
		}
		for _, kind := range []string{".png", ".svg"} {
			file := base + "-" + d.name + kind
			if err := p.Save(16*vg.Centimeter, 10*vg.Centimeter, file); err != nil {
				return files, err
			}
			files = append(files, file)
		}
	}
	return files, nil
}

// caption says under a figure what was measured on what, so that a picture that went its own way is no number without its machine.
func (r Report) caption() string {
	where := []string{r.Model, orUnknown(r.Machine.Chip), fmt.Sprintf("%d cores", r.Machine.Cores)}
	if r.Machine.MemoryBytes > 0 {
		where = append(where, fmt.Sprintf("%.0f GiB", float64(r.Machine.MemoryBytes)/(1<<30)))
	}
	build := "no commit"
	if r.Build.Revision != "" {
		build = "commit " + r.Build.Revision
	}
	if r.Build.Dirty {
		build += ", changed since"
	}
	of := []string{orUnknown(r.Machine.OS), build, r.Started.UTC().Format("2006-01-02")}
	if len(r.Refused) > 0 {
		of = append(of, "REFUSED: worth nothing")
	}
	return strings.Join(where, ", ") + "\n" + strings.Join(of, ", ")
}

// line is one engine or server.
type line struct {
	name string
	at   plotter.XYs
}

func (r Report) lines(rate func(Row) float64) (out []line) {
	peers, _ := r.engines() // a line for each optimisation would be a thicket
	for _, e := range peers {
		l := line{name: e}
		for _, c := range r.contexts() {
			if x, ok := r.row(e, c); ok {
				l.at = append(l.at, plotter.XY{X: float64(c), Y: rate(x)})
			}
		}
		out = append(out, l)
	}
	return out
}

func (r Report) httpLines() (out []line) {
	for _, x := range r.HTTP {
		i := slices.IndexFunc(out, func(l line) bool { return l.name == x.Server })
		if i < 0 {
			i = len(out)
			out = append(out, line{name: x.Server})
		}
		out[i].at = append(out[i].at, plotter.XY{X: float64(x.Clients), Y: x.Throughput})
	}
	return out
}

// figure draws lines over a logarithmic axis, whose marks are the measured places; the other begins at zero.
func figure(title, x string, lines []line) (*plot.Plot, error) {
	colors := []color.RGBA{{0x0b, 0x6e, 0x4f, 0xff}, {0xc4, 0x4e, 0x1c, 0xff}, {0x3b, 0x4c, 0xa8, 0xff}, {0x8a, 0x2b, 0x7a, 0xff}}
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, "tokens a second"
	p.Title.TextStyle.Font.Size = font.Length(13)
	p.Title.Padding = vg.Points(6)
	p.X.Label.Padding = vg.Points(3)
	p.X.Scale = plot.LogScale{}
	var marks plot.ConstantTicks
	p.Add(plotter.NewGrid())
	top := 0.0
	for i, l := range lines {
		drawn, points, err := plotter.NewLinePoints(l.at)
		if err != nil {
			return nil, fmt.Errorf("plot: %s: %w", l.name, err)
		}
		drawn.Color = colors[i%len(colors)]
		drawn.Width = vg.Points(1.8)
		points.Color = drawn.Color
		points.Shape = draw.CircleGlyph{}
		points.Radius = vg.Points(2.5)
		p.Add(drawn, points)
		p.Legend.Add(l.name, drawn, points)
		for _, at := range l.at {
			top = max(top, at.Y)
			if !slices.ContainsFunc(marks, func(t plot.Tick) bool { return t.Value == at.X }) {
				marks = append(marks, plot.Tick{Value: at.X, Label: label(int(at.X))})
			}
		}
	}
	p.X.Tick.Marker = marks
	if first := lines[0].at[0].X; p.X.Min == p.X.Max { // one place: a logarithm needs a width
		p.X.Min, p.X.Max = first/2, first*2
	}
	p.Y.Min, p.Y.Max = 0, top*1.12
	p.Legend.Top = true
	p.Legend.Padding = vg.Points(3)
	return p, nil
}

// label writes a context the short way: 4K.
func label(n int) string {
	if n >= 1024 && n%1024 == 0 {
		return fmt.Sprintf("%dK", n/1024)
	}
	return fmt.Sprint(n)
}
