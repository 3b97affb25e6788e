// Command storetable reads the output of the store benchmarks, prints it on, and
// ends with a table: the median of each figure, and how the store compares with what
// one would write by hand, and with what the server can do at best. bench/store.sh
// runs it.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"
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
	if unit != "ns/op" && !strings.HasSuffix(unit, "-ns") {
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
	lone      = "Lone"
	byTurns   = "Pages"
	storeAt   = "Store/op=%s/callers=%d"
	batchAt   = "Store/op=%s/callers=1/batch=1000"
	singleAt  = "Redis/op=zadd-single/callers=%d"
)

func (t *table) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "\nmedians, for each id\tns\tp50 of a call, ns\t\n")
	for _, f := range t.order {
		if f.unit != "ns/op" || f.name == lone || f.name == byTurns {
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
	t.compare(out, "schedule, 256 callers: %.2f times the speed of single ZADDs", single(256), at("schedule", 256), 1)
	for _, op := range []string{"schedule", "cancel", "claim", "ack"} {
		t.compare(out, op+", 256 callers: %.0f %% of the speed of pipelined ZADDs", pipelined, at(op, 256), 100)
	}
	for _, op := range []string{"claim", "ack"} {
		t.compare(out, op+", a thousand at a time: %.0f %% of the speed of pipelined ZADDs", pipelined, fmt.Sprintf(batchAt, op), 100)
	}
	t.divide(out, "window: %.0f %% of the speed of ZRANGE", figure{byTurns, "zrange-ns"}, figure{byTurns, "window-ns"}, 100)
	t.divide(out, "schedule, one caller: p50 %.2f times that of a single ZADD", figure{lone, "schedule-p50-ns"}, figure{lone, "zadd-p50-ns"}, 1)
	t.divide(out, "a ZADD handed to another goroutine: p50 %.2f times", figure{lone, "handed-zadd-p50-ns"}, figure{lone, "zadd-p50-ns"}, 1)
	t.divide(out, "the least script of a schedule, not handed over: p50 %.2f times", figure{lone, "least-script-p50-ns"}, figure{lone, "zadd-p50-ns"}, 1)
}

// compare prints by what factor the time of the first exceeds that of the second.
func (t *table) compare(out io.Writer, format, a, b string, factor float64) {
	t.divide(out, format, figure{a, "ns/op"}, figure{b, "ns/op"}, factor)
}

// divide prints by what factor the first figure exceeds the second.
func (t *table) divide(out io.Writer, format string, a, b figure, factor float64) {
	if x, y := t.median(a.name, a.unit), t.median(b.name, b.unit); x > 0 && y > 0 {
		fmt.Fprintf(out, format+"\n", factor*x/y)
	}
}
