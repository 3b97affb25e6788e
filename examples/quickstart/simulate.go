package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/sqlstore"
)

const (
	customers   = 32                    // who act at once
	watchEvery  = 20 * time.Millisecond // for the last order to be paid or closed
	windUp      = 5 * time.Second       // for the steps under way when the run is interrupted
	couponValid = 24 * time.Hour
)

// simulation is an order app and its customers. The app's side is create and
// pay: this is how an app uses the engine.
type simulation struct {
	store     *sqlstore.Store
	engine    *orderwheel.Engine
	carts     []cart
	timeToPay time.Duration // as the orders have it: scaled
	speed     float64
	spread    time.Duration

	created atomic.Int64 // orders so far
}

// create places an order. It is scheduled first: if this process dies between
// the two calls, what remains is a task that finds no order, and never an order
// that nobody closes.
func (s *simulation) create(ctx context.Context, o order.Order) error {
	now, err := s.engine.Now(ctx)
	if err != nil {
		return fmt.Errorf("read the clock for order %q: %w", o.No, err)
	}
	o.ExpireAt = now.Add(s.timeToPay)
	if err := s.engine.Schedule(ctx, o.No, o.ExpireAt); err != nil {
		return fmt.Errorf("schedule order %q: %w", o.No, err)
	}
	err = s.store.Create(ctx, o, now)
	if err != nil && !errors.Is(err, order.ErrUnknownOutcome) && !errors.Is(err, order.ErrDuplicate) {
		// Else the order stands, or may, and so must its task.
		_, cancelErr := s.engine.Cancel(context.WithoutCancel(ctx), o.No)
		return errors.Join(err, cancelErr)
	}
	return err
}

// pay takes the money first: what the database says is what counts. If this
// process dies between the two calls, the task fires and finds a paid order.
func (s *simulation) pay(ctx context.Context, p order.Payment) error {
	outcome, err := s.store.Pay(ctx, p)
	if err != nil || outcome != order.PaidNow {
		return err // none: it came too late, and is to be refunded
	}
	if _, err := s.engine.Cancel(ctx, p.OrderNo); err != nil {
		return fmt.Errorf("cancel the close of order %q: %w", p.OrderNo, err)
	}
	return nil
}

// stockUp delivers just as many units as all carts hold, and the coupons.
func (s *simulation) stockUp(ctx context.Context) error {
	for sku, units := range demand(s.carts) {
		if err := s.store.AddStock(ctx, sku, units); err != nil {
			return err
		}
	}
	for _, c := range s.carts {
		if c.order.CouponID == "" {
			continue
		}
		if err := s.store.AddCoupon(ctx, c.order.CouponID, c.order.UserID, time.Now().Add(couponValid)); err != nil {
			return err
		}
	}
	return nil
}

// run lets the customers act and returns when each order has been created and
// none is open, when ctx ends, or with the first error. Payments that would
// come later are not made.
func (s *simulation) run(ctx context.Context) error {
	work, cancelWork := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelWork()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(windUp, cancelWork) })()

	playing, stop := context.WithCancel(ctx)
	defer stop()
	var watchErr error
	var watcher sync.WaitGroup
	watcher.Go(func() {
		watchErr = s.watch(playing)
		stop()
	})
	playErr := play(playing, customers, s.steps(work))
	if playErr != nil {
		stop()
	}
	watcher.Wait()
	return errors.Join(playErr, watchErr)
}

// steps are the creations, evenly over the spread. Each leads to its payment.
func (s *simulation) steps(ctx context.Context) []*step {
	start := time.Now()
	steps := make([]*step, len(s.carts))
	for i, c := range s.carts {
		payment := order.Payment{ID: fmt.Sprintf("payment-%d", i+1), OrderNo: c.orderNo, Amount: c.order.Amount}
		pay := func() (*step, error) {
			payment.At = time.Now()
			return nil, s.pay(ctx, payment)
		}
		create := func() (*step, error) {
			created := time.Now()
			if err := s.create(ctx, c.order); err != nil {
				return nil, err
			}
			s.created.Add(1)
			if !c.pays {
				return nil, nil
			}
			return &step{at: created.Add(scale(c.payAfter, s.speed)), do: pay}, nil
		}
		share := float64(i) / float64(len(s.carts))
		steps[i] = &step{at: start.Add(time.Duration(share * float64(s.spread))), do: create}
	}
	return steps
}

// watch waits until every order has been created and none is open, or until ctx
// ends.
func (s *simulation) watch(ctx context.Context) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if s.created.Load() < int64(len(s.carts)) {
			continue
		}
		var open int64
		err := s.store.DB().QueryRowContext(ctx,
			`SELECT count(*) FROM orders WHERE status = 'unpaid' AND expire_at IS NOT NULL`).Scan(&open)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("count the open orders: %w", err)
		case open == 0:
			return nil
		}
	}
}

// tally asks the database how far the run is.
func (s *simulation) tally(ctx context.Context) (tally, error) {
	t := tally{total: int64(len(s.carts))}
	err := s.store.DB().QueryRowContext(ctx, `
		SELECT count(*), count(*) FILTER (WHERE status = 'paid'), count(*) FILTER (WHERE status = 'closed') FROM orders`).
		Scan(&t.created, &t.paid, &t.closed)
	return t, err
}

// scale is d at a speed, at most the longest duration there is.
func scale(d time.Duration, speed float64) time.Duration {
	scaled := float64(d) / speed
	if scaled >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(scaled)
}
