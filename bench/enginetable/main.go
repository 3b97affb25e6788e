// Command enginetable reads the output of the engine benchmarks, prints it on, and
// ends with tables: the median of each figure, of the engine and of its rivals, and
// how the engine compares with them, with a canary and with what the server can do at
// best. bench/engine.sh runs it.
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

const (
	own    = "Engine"
	poller = "Poller"
)

// row names a line of a table: what is done, and a unit.
type row struct{ op, unit string }

type table struct {
	who  []string // in order of their first figure
	rows []row
	// values are all that were seen of one figure, by who.
	values map[row]map[string][]float64
}

func main() {
	t := newTable()
	if err := medians.Read(os.Stdin, os.Stdout, t.add); err != nil {
		fmt.Fprintln(os.Stderr, "enginetable:", err)
		os.Exit(1)
	}
	t.print(os.Stdout)
}

func newTable() *table { return &table{values: make(map[row]map[string][]float64)} }

// add takes in one figure. What names neither the operation nor its size is a setup of
// the one who is measured: "Asynq/op=fire/rate=2000/every=100ms" is "Asynq every=100ms".
func (t *table) add(name, unit string, v float64) {
	who, rest, ok := strings.Cut(name, "/")
	if !ok || unit == "ns/op" {
		return
	}
	parts := strings.Split(rest, "/")
	if len(parts) > 2 {
		who += " " + strings.Join(parts[2:], " ")
		parts = parts[:2]
	}
	r := row{strings.Join(parts, " "), unit}
	if t.values[r] == nil {
		t.values[r] = make(map[string][]float64)
		t.rows = append(t.rows, r)
	}
	if !slices.Contains(t.who, who) {
		t.who = append(t.who, who)
	}
	t.values[r][who] = append(t.values[r][who], v)
}

// median of a figure; ok is false where it was not measured.
func (t *table) median(who, op, unit string) (v float64, ok bool) {
	values := t.values[row{op, unit}][who]
	if len(values) == 0 {
		return 0, false
	}
	return medians.Of(values), true
}

func (t *table) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\nmedians\tunit\t%s\t\n", strings.Join(t.who, "\t"))
	for _, r := range t.rows {
		fmt.Fprintf(w, "%s\t%s\t", r.op, r.unit)
		for _, who := range t.who {
			if v, ok := t.median(who, r.op, r.unit); ok {
				fmt.Fprintf(w, "%s\t", number(v))
			} else {
				fmt.Fprint(w, "-\t")
			}
		}
		fmt.Fprint(w, "\t\n")
	}
	w.Flush()
	fmt.Fprintln(out)
	for _, op := range t.ops() {
		t.compare(out, op)
	}
}

// number has as many digits as say something.
func number(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// ops are what the engine was measured at.
func (t *table) ops() []string {
	var ops []string
	for _, r := range t.rows {
		if _, ok := t.values[r][own]; ok && !slices.Contains(ops, r.op) {
			ops = append(ops, r.op)
		}
	}
	return ops
}

// compare prints what is asked of the engine at op.
func (t *table) compare(out io.Writer, op string) {
	for _, part := range []string{"p99", "max"} {
		late, ok := t.median(own, op, "late-"+part+"-ms")
		canary, _ := t.median(own, op, "canary-"+part+"-ms")
		if ok {
			fmt.Fprintf(out, "%s: %s %.1f ms later than a goroutine that only sleeps\n", op, part, late-canary)
		}
	}
	late, _ := t.median(own, op, "late-p99-ms")
	if polled, ok := t.median(poller, op, "late-p99-ms"); ok && late > 0 {
		fmt.Fprintf(out, "%s: the p99 of the poller is %.1f times as late\n", op, polled/late)
	}
	for _, best := range []string{"zadd-pipelined", "zrange"} {
		if v, ok := t.median(own, op, "%-of-"+best); ok {
			fmt.Fprintf(out, "%s: %.0f %% of the speed of %s\n", op, v, best)
		}
	}
}
