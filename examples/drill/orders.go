package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/orderwheel/orderwheel/order"
)

// customer is an order, and all that its customer will do to it. That is the same
// whichever worker does it, and again after a kill: so a task that a killed worker
// left without its order is never early for the order that comes later. An order
// can have expired before it is created, if its worker was down.
type customer struct {
	order    order.Order
	createAt time.Time
	payAt    time.Time // zero: never
	extendAt time.Time // zero: never
	extendTo time.Time

	// commitFirst: the order is created before it is scheduled. A kill between the
	// two leaves an order that only a reconciliation with the database finds.
	commitFirst bool
}

// Each order has units of one or two of the skus, and every tenth has a coupon.
const (
	skus         = 5
	price        = 100
	couponValid  = 24 * time.Hour
	shortestLife = 2 * time.Second // from an order's creation to its expire_at
	longestLife  = 6 * time.Second
	longestMove  = 3 * time.Second // of an extension
)

// commitsFirst is how many of a hundred orders are created before they are
// scheduled: if a kill comes in between, the reconciler brings them back.
const commitsFirst = 10

// customer gives one of the job's orders. Half of them do nothing, and close.
// slip is how late they are, all of them (see pace.go).
func (j job) customer(i int, slip time.Duration) customer {
	rng := rand.New(rand.NewPCG(j.Seed, uint64(i)))
	between := func(from, to time.Duration) time.Duration {
		return from + time.Duration(rng.Float64()*float64(to-from))
	}
	c := customer{createAt: j.Start.Add(j.Spread*time.Duration(i)/time.Duration(j.Orders) + slip)}
	life := between(shortestLife, longestLife)
	c.order = order.Order{
		ExpireAt: time.UnixMilli(c.createAt.Add(life).UnixMilli()),
		No:       fmt.Sprintf("order-%06d", i), UserID: fmt.Sprintf("user-%06d", i), Amount: price,
		Items: []order.Item{{SKU: sku(i), Quantity: 1}},
	}
	if i%4 == 0 {
		c.order.Items = append(c.order.Items, order.Item{SKU: sku(i + 1), Quantity: 2})
	}
	if i%10 == 0 {
		c.order.CouponID = fmt.Sprintf("coupon-%06d", i)
	}
	within := func() time.Time { return c.createAt.Add(between(0, life)) }
	switch kind := rng.IntN(100); {
	case kind < 25: // pays
		c.payAt = within()
	case kind < 30: // pays just as the order closes, or a little late
		c.payAt = c.order.ExpireAt
	case kind < 40: // extends
		c.extendAt = within()
	case kind < 45: // extends just as the order closes
		c.extendAt = c.order.ExpireAt
	case kind < 50: // extends and pays
		c.extendAt, c.payAt = within(), c.order.ExpireAt
	}
	c.extendTo = time.UnixMilli(c.order.ExpireAt.Add(between(time.Second, longestMove)).UnixMilli())
	c.commitFirst = rng.IntN(100) < commitsFirst
	return c
}

func sku(i int) string { return fmt.Sprintf("sku-%d", i%skus) }

// prepare delivers the stock and the coupons for a job's orders.
func (p *place) prepare(ctx context.Context, j job) error {
	demand := map[string]int64{}
	for i := range j.Orders {
		o := j.customer(i, 0).order
		for _, item := range o.Items {
			demand[item.SKU] += item.Quantity
		}
		if o.CouponID != "" {
			if err := p.store.AddCoupon(ctx, o.CouponID, o.UserID, time.Now().Add(couponValid)); err != nil {
				return err
			}
		}
	}
	for sku, units := range demand {
		if err := p.store.AddStock(ctx, sku, units); err != nil {
			return err
		}
	}
	return nil
}
