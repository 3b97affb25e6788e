package main

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Report is what came of all trials.
type Report struct {
	Scale        int
	Workers      int
	Orders       int // of the plain runs
	FewOrders    int // of the runs with a kill and with two instances
	Rate         int // orders that expire a second
	ClosesAtOnce int // closes a second that the database reached with all workers
	ClosesOne    int // and with one
	Rows         []Row
	Claims       []Claim
	Took         time.Duration `json:"TookNS"`
}

// Row is a row of the table. A figure that was not asked for, or could not be had, is nil.
type Row struct {
	Name   string
	Absent string   `json:",omitempty"` // why it was not run
	Plain  *Figures `json:",omitempty"`
	Kill   *Figures `json:",omitempty"` // kill -9 in mid-run, and a restart
	Two    *Figures `json:",omitempty"` // two instances, and the handler as the articles write it
	Storm  *Figures `json:",omitempty"` // 20,000 orders in one second
}

const stormOrders = 20_000

// measure runs all that the options ask for.
func measure(ctx context.Context, o options, s *servers, progress io.Writer) (Report, error) {
	began := time.Now()
	r := Report{Scale: o.scale, Workers: o.workers, Orders: o.orders, FewOrders: min(fewOrders, max(20, o.orders/10)), Rate: o.rate}
	var err error
	if r.ClosesOne, r.ClosesAtOnce, err = closeRates(ctx, s, o.workers); err != nil {
		return r, err
	}
	if r.Rate == 0 {
		r.Rate = steadyRate(r.ClosesOne, r.ClosesAtOnce)
	}
	fmt.Fprintf(progress, "schemes: the database closes %d orders a second with one handler, %d with %d; %d expire a second\n",
		r.ClosesOne, r.ClosesAtOnce, o.workers, r.Rate)
	for _, wanted := range o.rows {
		fmt.Fprintf(progress, "schemes: %s %s\n", time.Since(began).Round(time.Second), wanted.name)
		row, err := measureRow(ctx, o, r, s, wanted)
		if err != nil {
			return r, err
		}
		r.Rows = append(r.Rows, row)
	}
	if o.claims {
		if r.Claims, err = claims(ctx, o, r, s, progress); err != nil {
			return r, err
		}
	}
	r.Took = time.Since(began)
	return r, nil
}

func measureRow(ctx context.Context, o options, r Report, s *servers, wanted row) (Row, error) {
	row := Row{Name: wanted.name, Absent: s.missing(wanted)}
	if row.Absent != "" {
		return row, nil
	}
	base := trial{row: wanted, rate: r.Rate, scale: o.scale, workers: o.workers, instances: 1}
	try := func(to **Figures, change func(*trial)) error {
		t := base
		change(&t)
		f, err := t.run(ctx, s)
		*to = &f
		return err
	}
	if !wanted.twoOnly {
		if err := try(&row.Plain, func(t *trial) { t.orders = o.orders }); err != nil {
			return row, err
		}
		if err := try(&row.Kill, func(t *trial) { t.orders, t.kill = r.FewOrders, true }); err != nil {
			return row, err
		}
	}
	if err := try(&row.Two, func(t *trial) { t.orders, t.instances, t.asWritten = r.FewOrders, 2, true }); err != nil {
		return row, err
	}
	if o.full && !wanted.twoOnly {
		return row, try(&row.Storm, func(t *trial) { t.orders, t.rate = stormOrders, stormOrders })
	}
	return row, nil
}
