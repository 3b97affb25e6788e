package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
)

const (
	rateOrders = 4000
	mostRate   = 1000
	rateStep   = 50
)

// closeRates measures how many orders the database closes a second when nothing else
// is done, with one handler and with so many.
func closeRates(ctx context.Context, s *servers, workers int) (one, many int, err error) {
	p := scheme.Plan{Orders: 2 * rateOrders, Rate: rateOrders}
	if err := scheme.Create(ctx, s.db, p); err != nil {
		return 0, 0, err
	}
	var next atomic.Int64
	rate := func(workers int, until int64) (int, error) {
		var failed atomic.Pointer[error]
		var all sync.WaitGroup
		began := time.Now()
		for range workers {
			all.Go(func() {
				for {
					i := next.Add(1) - 1
					if i >= until {
						return
					}
					if _, err := scheme.Close(ctx, s.db, p.Order(int(i)).ID); err != nil {
						failed.Store(&err)
						return
					}
				}
			})
		}
		all.Wait()
		took := time.Since(began)
		next.Store(until)
		if err := failed.Load(); err != nil {
			return 0, *err
		}
		return int(rateOrders / took.Seconds()), nil
	}
	if one, err = rate(1, rateOrders); err != nil {
		return 0, 0, err
	}
	many, err = rate(workers, 2*rateOrders)
	return one, many, err
}

// steadyRate is a rate of orders that leaves the database, and a scheme that closes one
// at a time, some room: below half of what many handlers reach.
func steadyRate(one, many int) int {
	rate := min(mostRate, one/2, many*2/5)
	return max(rateStep, rate/rateStep*rateStep)
}
