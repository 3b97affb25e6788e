// Command wheeltable reads the output of the wheel benchmarks, prints it on,
// and ends with a table: the median of each figure for each engine, and how
// many times better the own engine is than russellluo. bench/wheel.sh runs it.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
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
	in := bufio.NewScanner(io.TeeReader(os.Stdin, os.Stdout))
	failed := true // until the benchmarks say that they passed
	for in.Scan() {
		line := in.Text()
		t.add(line)
		switch {
		case strings.HasPrefix(line, "FAIL"), strings.HasPrefix(line, "--- FAIL"):
			fmt.Fprintln(os.Stderr, "wheeltable: a benchmark failed")
			os.Exit(1)
		case strings.HasPrefix(line, "ok"):
			failed = false
		}
	}
	if err := in.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "wheeltable:", err)
		os.Exit(1)
	}
	if failed || len(t.order) == 0 {
		fmt.Fprintln(os.Stderr, "wheeltable: no benchmark passed")
		os.Exit(1)
	}
	t.print(os.Stdout)
}

// add takes in one line. What is no benchmark's result is ignored.
func (t *table) add(line string) {
	fields := strings.Fields(line)
	if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
		return
	}
	name := fields[0]
	if i := strings.LastIndex(name, "-"); i >= 0 { // -GOMAXPROCS
		name = name[:i]
	}
	var engine string
	parts := strings.Split(strings.TrimPrefix(name, "Benchmark"), "/")
	parts = slices.DeleteFunc(parts, func(p string) bool {
		e, ok := strings.CutPrefix(p, "engine=")
		if ok {
			engine = e
		}
		return ok
	})
	for i := 2; i+1 < len(fields); i += 2 {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return
		}
		t.put(row{strings.Join(parts, " "), fields[i+1]}, engine, v)
	}
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

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
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
			fmt.Fprintf(w, "%.4g\t", median(f[e]))
		}
		if len(f[own]) > 0 && len(f[rival]) > 0 && median(f[own]) > 0 {
			fmt.Fprintf(w, "%.2f", median(f[rival])/median(f[own]))
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
				own, op, median(large)/median(small))
		}
	}
}
