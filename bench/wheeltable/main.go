// Command wheeltable reads the output of the wheel benchmarks, prints it on,
// and ends with a table: the median of each figure for each engine, and how
// many times better the own engine is than russellluo. bench/wheel.sh runs it.
package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/orderwheel/orderwheel/bench/internal/medians"
)

const own, rival = "native", "russellluo"

// figures are all values seen of one unit, by engine.
type figures map[string][]float64

// row names a line of the table: a benchmark without its engine, and a unit.
type row struct{ bench, unit string }

type table struct {
	order []row
	rows  map[row]figures
}

func main() {
	t := table{rows: make(map[row]figures)}
	if err := medians.Read(os.Stdin, os.Stdout, t.add); err != nil {
		fmt.Fprintln(os.Stderr, "wheeltable:", err)
		os.Exit(1)
	}
	t.print(os.Stdout)
}

// add takes in one figure.
func (t *table) add(name, unit string, v float64) {
	var engine string
	parts := slices.DeleteFunc(strings.Split(name, "/"), func(p string) bool {
		e, ok := strings.CutPrefix(p, "engine=")
		if ok {
			engine = e
		}
		return ok
	})
	t.put(row{strings.Join(parts, " "), unit}, engine, v)
}

func (t *table) put(r row, engine string, v float64) {
	if r.unit == "B/op" || r.unit == "ns/op" && v == 0 {
		return
	}
	if t.rows[r] == nil {
		t.rows[r] = make(figures)
		t.order = append(t.order, r)
	}
	t.rows[r][engine] = append(t.rows[r][engine], v)
}

func (t *table) print(out io.Writer) {
	engines := []string{own, rival, "stdtimer"}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\nmedians\tunit\t%s\t%s : %s\t\n", strings.Join(engines, "\t"), rival, own)
	for _, r := range t.order {
		fmt.Fprintf(w, "%s\t%s\t", r.bench, r.unit)
		f := t.rows[r]
		for _, e := range engines {
			if len(f[e]) == 0 {
				fmt.Fprint(w, "-\t")
				continue
			}
			fmt.Fprintf(w, "%.4g\t", medians.Of(f[e]))
		}
		if len(f[own]) > 0 && len(f[rival]) > 0 && medians.Of(f[own]) > 0 {
			fmt.Fprintf(w, "%.2f", medians.Of(f[rival])/medians.Of(f[own]))
		}
		fmt.Fprint(w, "\t\n")
	}
	w.Flush()
	t.printGrowth(out)
}

// printGrowth says what an operation costs at the largest size, compared with
// the smallest.
func (t *table) printGrowth(out io.Writer) {
	for _, op := range []string{"schedule", "cancel", "move"} {
		of := func(pending string) []float64 {
			return t.rows[row{"Wheel op=" + op + " pending=" + pending, "ns/op"}][own]
		}
		small, large := of("100000"), of("10000000")
		if len(small) > 0 && len(large) > 0 {
			fmt.Fprintf(out, "%s: %s at 10,000,000 pending costs %.2f times what it costs at 100,000\n",
				own, op, medians.Of(large)/medians.Of(small))
		}
	}
}
