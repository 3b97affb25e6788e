// Command storetable reads the output of the store benchmarks, prints it on, and
// ends with a table: the median of each figure, and how the store compares with what
// one would write by hand, and with what the server can do at best. bench/store.sh
// runs it.
package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/orderwheel/orderwheel/bench/internal/medians"
)

type figure struct{ name, unit string }

type table struct {
	order  []figure
	values map[figure][]float64
}

func main() {
	t := table{values: make(map[figure][]float64)}
	if err := medians.Read(os.Stdin, os.Stdout, t.add); err != nil {
		fmt.Fprintln(os.Stderr, "storetable:", err)
		os.Exit(1)
	}
	t.print(os.Stdout)
}

func (t *table) add(name, unit string, v float64) {
	if unit != "ns/op" && unit != "p50-ns" {
		return
	}
	f := figure{name, unit}
	if t.values[f] == nil {
		t.order = append(t.order, f)
	}
	t.values[f] = append(t.values[f], v)
}

// median of a figure; 0: it was not measured.
func (t *table) median(name, unit string) float64 {
	v := t.values[figure{name, unit}]
	if len(v) == 0 {
		return 0
	}
	return medians.Of(v)
}

const (
	pipelined = "Redis/op=zadd-pipelined"
	zrange    = "Redis/op=zrange"
	storeAt   = "Store/op=%s/callers=%d"
	singleAt  = "Redis/op=zadd-single/callers=%d"
)

func (t *table) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "\nmedians, for each id\tns\tp50 of a call, ns\t\n")
	for _, f := range t.order {
		if f.unit != "ns/op" {
			continue
		}
		fmt.Fprintf(w, "%s\t%.0f\t", f.name, t.median(f.name, "ns/op"))
		if p50 := t.median(f.name, "p50-ns"); p50 > 0 {
			fmt.Fprintf(w, "%.0f", p50)
		}
		fmt.Fprint(w, "\t\n")
	}
	w.Flush()
	fmt.Fprintln(out)
	at := func(op string, callers int) string { return fmt.Sprintf(storeAt, op, callers) }
	single := func(callers int) string { return fmt.Sprintf(singleAt, callers) }
	t.compare(out, "schedule, 256 callers: %.2f times the speed of single ZADDs", single(256), at("schedule", 256), "ns/op", 1)
	for _, op := range []string{"schedule", "cancel", "claim", "ack"} {
		t.compare(out, op+", 256 callers: %.0f %% of the speed of pipelined ZADDs", pipelined, at(op, 256), "ns/op", 100)
	}
	t.compare(out, "schedule, one caller: p50 %.2f times that of a single ZADD", at("schedule", 1), single(1), "p50-ns", 1)
	t.compare(out, "window: %.0f %% of the speed of ZRANGE", zrange, at("window", 1), "ns/op", 100)
}

// compare prints by what factor the first figure exceeds the second.
func (t *table) compare(out io.Writer, format, a, b, unit string, factor float64) {
	if x, y := t.median(a, unit), t.median(b, unit); x > 0 && y > 0 {
		fmt.Fprintf(out, format+"\n", factor*x/y)
	}
}
