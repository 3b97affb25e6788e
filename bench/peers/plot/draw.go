package main

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	width     = 28 * vg.Centimeter
	rowHeight = 0.72 * vg.Centimeter
	frame     = 3.4 * vg.Centimeter // title, legend and axis of a panel
	leastMS   = 0.1                 // what is less is drawn as that: the axis is logarithmic
	barHeight = 0.2 * vg.Centimeter

	// Text is not drawn but named, and who looks may have a wider font than the layout was
	// made with: labels have that much room more than they need.
	labelRoom = 1.6 * vg.Centimeter
	textSize  = 9
	apart     = "     " // of a name of the legend and its sign
)

var (
	dark  = color.RGBA{0x1b, 0x4f, 0x72, 0xff}
	mid   = color.RGBA{0x2e, 0x86, 0xc1, 0xff}
	light = color.RGBA{0xae, 0xd6, 0xf1, 0xff}
	warm  = color.RGBA{0xca, 0x6f, 0x1e, 0xff}
	grid  = color.RGBA{0xdd, 0xdd, 0xdd, 0xff}
)

var errNothing = errors.New("the report has no row with a plain run")

// drawReport draws two panels beside each other: lateness, and cost.
func drawReport(r report, w io.Writer) error {
	var names []string
	var rows []figures
	for i := len(r.Rows) - 1; i >= 0; i-- { // the first at the top
		if f := r.Rows[i].Plain; f != nil {
			names = append(names, r.Rows[i].Name)
			rows = append(rows, *f)
		}
	}
	if len(rows) == 0 {
		return errNothing
	}
	late, err := lateness(names, rows)
	if err != nil {
		return err
	}
	late.Title.Text = fmt.Sprintf("Late by, ms (%d orders, %d a second; scan periods / %d)", r.Orders, r.Rate, r.Scale)
	cost, err := costs(names, rows)
	if err != nil {
		return err
	}
	c := vgsvg.New(width, frame+rowHeight*vg.Length(len(rows)))
	all := draw.New(c)
	late.Draw(draw.Crop(all, vg.Points(6), -width/2, vg.Points(6), -vg.Points(6)))
	cost.Draw(draw.Crop(all, width/2+vg.Points(12), -vg.Points(12), vg.Points(6), -vg.Points(6)))
	_, err = c.WriteTo(w)
	return err
}

func panel(names []string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Padding = vg.Points(6)
	p.NominalY(names...)
	for _, style := range []*font.Font{&p.Title.TextStyle.Font, &p.X.Tick.Label.Font, &p.Y.Tick.Label.Font, &p.Legend.TextStyle.Font} {
		style.Variant, style.Size = "Sans", textSize
	}
	p.Y.Padding = labelRoom
	p.Legend.XOffs = -labelRoom
	p.Y.Min, p.Y.Max = -0.6, float64(len(names))-0.4
	p.Legend.Top = true
	lines := plotter.NewGrid()
	lines.Horizontal.Color = nil
	lines.Vertical.Color = grid
	p.Add(lines)
	return p
}

// lateness draws a line from p50 to the maximum of each row, with p99 on it.
func lateness(names []string, rows []figures) (*plot.Plot, error) {
	p := panel(names)
	p.X.Scale = plot.LogScale{}
	p.X.Tick.Marker = decades{}
	most := 10.0
	var p50, p99, last plotter.XYs
	for i, f := range rows {
		at := func(ms float64) plotter.XY { return plotter.XY{X: max(ms, leastMS), Y: float64(i)} }
		line, err := plotter.NewLine(plotter.XYs{at(f.LateP50MS), at(f.LateMaxMS)})
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = light, vg.Points(3)
		p.Add(line)
		p50, p99, last = append(p50, at(f.LateP50MS)), append(p99, at(f.LateP99MS)), append(last, at(f.LateMaxMS))
		most = max(most, f.LateMaxMS)
	}
	for _, points := range []struct {
		name  string
		at    plotter.XYs
		color color.Color
		glyph draw.GlyphDrawer
	}{
		{"p50", p50, mid, draw.CircleGlyph{}},
		{"p99", p99, dark, draw.BoxGlyph{}},
		{"max", last, warm, draw.TriangleGlyph{}},
	} {
		s, err := plotter.NewScatter(points.at)
		if err != nil {
			return nil, err
		}
		s.Color, s.Shape, s.Radius = points.color, points.glyph, vg.Points(3)
		p.Add(s)
		p.Legend.Add(points.name+apart, s)
	}
	p.X.Min, p.X.Max = leastMS, math.Pow(10, math.Ceil(math.Log10(most)))
	p.Y.Max += 2 // the legend's
	return p, nil
}

// costs draws what an order costs: queries, commands (those in scripts included), and the
// processor time of process and servers.
func costs(names []string, rows []figures) (*plot.Plot, error) {
	p := panel(names)
	p.Title.Text = "Cost of a closed order"
	for i, b := range []struct {
		name  string
		of    func(figures) float64
		color color.Color
	}{
		{"database queries", func(f figures) float64 { return f.QueriesPerOrder }, dark},
		{"Redis commands", func(f figures) float64 { return f.CommandsPerOrder }, mid},
		{"CPU, tenths of a ms", func(f figures) float64 {
			return (f.CPUSeconds + f.ServersCPUSeconds) * 10_000 / float64(max(1, f.Orders))
		}, warm},
	} {
		values := make(plotter.Values, len(rows))
		for j, f := range rows {
			values[j] = b.of(f)
		}
		bars, err := plotter.NewBarChart(values, barHeight*0.9)
		if err != nil {
			return nil, err
		}
		bars.Horizontal = true
		bars.Color, bars.LineStyle.Width = b.color, 0
		bars.Offset = barHeight * vg.Length(1-i)
		p.Add(bars)
		p.Legend.Add(b.name+apart, bars)
	}
	p.X.Min = 0
	p.X.Tick.Marker = fives{}
	p.Y.Max += 2
	return p, nil
}

// decades marks 0.1, 1, 10 and so on.
type decades struct{}

func (decades) Ticks(least, most float64) (ticks []plot.Tick) {
	for e := math.Floor(math.Log10(least)); e <= math.Ceil(math.Log10(most)); e++ {
		v := math.Pow(10, e)
		ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprintf("%g", v)})
	}
	return ticks
}

// fives marks 0, 5, 10 and so on.
type fives struct{}

func (fives) Ticks(_, most float64) (ticks []plot.Tick) {
	for v := 0.0; v <= most; v += 5 {
		ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprintf("%g", v)})
	}
	return ticks
}
