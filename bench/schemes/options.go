package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// options are the flags.
type options struct {
	rows    []row
	orders  int
	rate    int // 0: chosen by what the database can do
	scale   int
	workers int
	full    bool
	claims  bool
	json    bool
	plot    string
	from    string // a report of an earlier run; empty: run
}

// fewOrders is how many orders the runs with a kill and with two instances have, at most.
const fewOrders = 2000

func parse(args []string, usage io.Writer) (options, error) {
	var o options
	var only string
	f := flag.NewFlagSet("schemes", flag.ContinueOnError)
	f.SetOutput(usage)
	f.StringVar(&only, "only", "", "run these rows alone: `NAME,NAME`, a scheme for all its variants")
	f.IntVar(&o.orders, "orders", 20_000, "`orders` of the plain runs; the others have a tenth")
	f.IntVar(&o.rate, "rate", 0, "`orders` that expire a second (default: chosen below half of what the database can close)")
	f.IntVar(&o.scale, "scale", 10, "divide the articles' scan and retry periods, leases and locks by this `number`")
	f.IntVar(&o.workers, "workers", 16, "`handlers` at once, where a scheme runs more than one")
	f.BoolVar(&o.full, "full", false, "200,000 orders in the plain runs, and a storm of 20,000 that expire in one second")
	f.BoolVar(&o.claims, "claims", true, "try the articles' claims too")
	f.BoolVar(&o.json, "json", false, "print JSON")
	f.StringVar(&o.plot, "plot", "", "draw lateness and cost to this `FILE.svg`")
	f.StringVar(&o.from, "from", "", "run nothing: print, or draw, the report in this `FILE`, which -json has written")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q", f.Arg(0))
	}
	for _, n := range []struct {
		name                 string
		value, least, atMost int
	}{{"orders", o.orders, 10, 10_000_000}, {"rate", o.rate, 0, 100_000}, {"scale", o.scale, 1, 1000}, {"workers", o.workers, 1, 64}} {
		if n.value < n.least || n.value > n.atMost {
			return o, fmt.Errorf("-%s is %d: use %d to %d", n.name, n.value, n.least, n.atMost)
		}
	}
	if o.plot != "" && !strings.HasSuffix(o.plot, ".svg") {
		return o, fmt.Errorf("-plot is %q: use a name that ends in .svg", o.plot)
	}
	if o.full {
		o.orders *= 10
	}
	var err error
	o.rows, err = pick(only)
	return o, err
}

// pick picks the rows that are named, by their name or by their scheme's.
func pick(only string) ([]row, error) {
	if only == "" {
		return rows, nil
	}
	var picked []row
	names := strings.Split(only, ",")
	for _, r := range rows {
		base, _, _ := strings.Cut(r.name, "/")
		if slices.Contains(names, r.name) || slices.Contains(names, base) {
			picked = append(picked, r)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(picked, func(r row) bool { return r.name == name || strings.HasPrefix(r.name, name+"/") }) {
			var known []string
			for _, r := range rows {
				known = append(known, r.name)
			}
			return nil, fmt.Errorf("-only names %q, which is none of %s", name, strings.Join(known, ", "))
		}
	}
	return picked, nil
}
