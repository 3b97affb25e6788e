package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/examples/internal/audit"
	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/persist"
)

const (
	customersAtOnce = 32
	callWithin      = 2 * time.Second // a call; then it is made again
	again           = 20 * time.Millisecond
)

// shop is the app in a worker: it does what its customers want.
type shop struct {
	place  *place
	engine *orderwheel.Engine
	notes  *audit.Notes
	steps  *steps
}

// acts lists what is still to be done of an order. creating is told when it has
// been created. Nobody pays or extends an order whose creation has not returned, though
// it stands in the database: while Redis is away its Schedule may be made once more, and
// of two the last one wins.
func (s *shop) acts(c customer, have map[string]state, creating *sync.WaitGroup) []act {
	var acts []act
	now, created := have[c.order.No]
	returned := make(chan struct{}) // of its creation
	if created {
		close(returned)
	} else {
		creating.Add(1)
		acts = append(acts, act{c.createAt, func(ctx context.Context) error {
			defer creating.Done()
			defer close(returned)
			return s.create(ctx, c)
		}})
	}
	then := func(do func(context.Context, customer) error) func(context.Context) error {
		return func(ctx context.Context) error {
			select {
			case <-returned:
				return do(ctx, c)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	open := !created || now.status == order.Unpaid
	if !c.extendAt.IsZero() && open && now.expireMS != c.extendTo.UnixMilli() {
		acts = append(acts, act{c.extendAt, then(s.extend)})
	}
	if !c.payAt.IsZero() && (open || now.status == order.Closed && !now.refunded) {
		acts = append(acts, act{c.payAt, then(s.pay)})
	}
	return acts
}

// state is an order as it stands in the database.
type state struct {
	status   order.Status
	expireMS int64
	refunded bool
}

func (p *place) states(ctx context.Context) (have map[string]state, err error) {
	err = retryBusy(ctx, func(ctx context.Context) error {
		have = map[string]state{}
		rows, err := p.store.DB().QueryContext(ctx, `
			SELECT order_no, status, expire_at, EXISTS (SELECT 1 FROM refunds WHERE payment_id = 'payment of ' || order_no)
			FROM orders`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var no string
			var st state
			if err := rows.Scan(&no, &st.status, &st.expireMS, &st.refunded); err != nil {
				return err
			}
			have[no] = st
		}
		return rows.Err()
	})
	return have, err
}

// play does what the customers of a job want, at its instant. It returns with the
// first error, or nil when ctx ends.
func (s *shop) play(ctx context.Context, j job) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	t := startTimeline(ctx, customersAtOnce, fail)
	if err := s.customers(ctx, j, t); err != nil && ctx.Err() == nil {
		fail(err)
	}
	t.wait()
	if err := context.Cause(ctx); err != ctx.Err() {
		return err
	}
	return nil
}

func sleepUntil(ctx context.Context, at time.Time) bool {
	if wait := time.Until(at); wait > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	return ctx.Err() == nil
}

// insist makes a call until it succeeds, fails for good, or ctx ends. What may
// help is to call again when Redis or the database was away or busy.
func insist(ctx context.Context, call func(context.Context) error) error {
	for {
		callCtx, cancel := context.WithTimeout(ctx, callWithin)
		err := call(callCtx)
		cancel()
		if err == nil || !slices.ContainsFunc(passing, func(p error) bool { return errors.Is(err, p) }) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(again):
		}
	}
}

// passing are the errors after which a call may be made again. An order that is
// not there is being created by another customer.
var passing = []error{
	context.DeadlineExceeded, persist.ErrRetryable, persist.ErrUnknownOutcome, order.ErrBusy, order.ErrUnknownOutcome, order.ErrUnknownOrder,
}

// create schedules an order and creates it. A kill between the two leaves a task
// without an order, and the next worker creates that order.
func (s *shop) create(ctx context.Context, c customer) error {
	schedule := func() error {
		return insist(ctx, func(ctx context.Context) error { return s.engine.Schedule(ctx, c.order.No, c.order.ExpireAt) })
	}
	commit := func() error {
		err := insist(ctx, func(ctx context.Context) error { return s.place.store.Create(ctx, c.order, time.Now()) })
		if errors.Is(err, order.ErrDuplicate) {
			return nil // an outcome was unknown, and it stands
		}
		return err
	}
	if c.commitFirst {
		if err := commit(); err != nil {
			return err
		}
		s.steps.pass(commitSchedule)
		return schedule()
	}
	if err := schedule(); err != nil {
		return err
	}
	s.steps.pass(scheduleCommit)
	return commit()
}

// extend moves an order to a later expire_at. A kill between the two calls leaves
// a task at the old one, which finds the order not yet due.
func (s *shop) extend(ctx context.Context, c customer) error {
	err := insist(ctx, func(ctx context.Context) error { return s.place.store.Extend(ctx, c.order.No, c.extendTo) })
	if errors.Is(err, order.ErrNotUnpaid) {
		return nil // it was paid or closed before
	}
	if err != nil {
		return err
	}
	s.steps.pass(commitSchedule)
	begun := time.Now()
	err = insist(ctx, func(ctx context.Context) error { return s.engine.Schedule(ctx, c.order.No, c.extendTo) })
	if err == nil {
		s.notes.Moved(begun, c.order.No, c.extendTo)
	}
	return err
}

// pay pays an order. A kill between the two calls leaves a task that finds a
// paid order. When the order is closed, a refund is recorded.
func (s *shop) pay(ctx context.Context, c customer) error {
	var outcome order.PayOutcome
	err := insist(ctx, func(ctx context.Context) (err error) {
		outcome, err = s.place.store.Pay(ctx, order.Payment{
			ID: "payment of " + c.order.No, OrderNo: c.order.No, Amount: c.order.Amount, At: time.Now(),
		})
		return err
	})
	if err != nil || outcome == order.Refunded {
		return err
	}
	s.steps.pass(payCancel)
	return insist(ctx, func(ctx context.Context) error {
		_, err := s.engine.Cancel(ctx, c.order.No)
		return err
	})
}
