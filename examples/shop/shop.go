package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/sqlstore"
)

const (
	longestToPay = 24 * time.Hour // from now, also by extending
	cancelWithin = time.Second
)

// shop is what the app does with orders: each change is the database's, and the engine is told of
// it before the commit (create) or after it (the others). Every method may be called again with the
// same arguments, and must be after an error that leaves open what was done.
type shop struct {
	store     *sqlstore.Store
	engine    *orderwheel.Engine // nil: the scan closes every order
	share     share
	timeToPay time.Duration
	log       *slog.Logger
}

// create places an order, to be paid in timeToPay. isNew is false where the same order stands
// already; another one under that number is order.ErrDuplicate.
//
// The task comes first: a crash before the commit leaves a task without an order, which the close
// cannot find, and never an order that nobody closes.
func (s *shop) create(ctx context.Context, o order.Order) (placed placedOrder, isNew bool, err error) {
	if placed, err = s.standing(ctx, o); !errors.Is(err, order.ErrUnknownOrder) {
		return placed, false, err
	}
	now, err := s.now(ctx)
	if err != nil {
		return placed, false, err
	}
	o.ExpireAt = time.UnixMilli(order.CeilMS(now.Add(s.timeToPay))) // as the row will have it
	if err := s.schedule(ctx, o.No, o.ExpireAt); err != nil {
		return placed, false, err
	}
	err = s.store.Create(ctx, o, now)
	switch {
	case err == nil:
		return placedOrder{o, order.Unpaid}, true, nil
	case errors.Is(err, order.ErrDuplicate):
		placed, err = s.standing(ctx, o) // placed at the same time, by this request's double
	case errors.Is(err, order.ErrUnknownOutcome):
		// It may stand, so its task must.
	default:
		s.cancel(ctx, o.No)
	}
	return placed, false, err
}

// placedOrder is an order with its state.
type placedOrder struct {
	order.Order
	status order.Status
}

// standing finds the order that stands under o's number. Where it is unpaid, its task is put
// right: another request of that number may have moved or cancelled it.
func (s *shop) standing(ctx context.Context, o order.Order) (placedOrder, error) {
	was, status, err := s.store.Find(ctx, o.No)
	if err != nil {
		return placedOrder{}, err
	}
	if status == order.Unpaid {
		if err := s.schedule(ctx, o.No, was.ExpireAt); err != nil {
			return placedOrder{}, err
		}
	}
	if !sameOrder(was, o) {
		return placedOrder{}, fmt.Errorf("create order %q: %w, with another user, amount, coupon or items", o.No, order.ErrDuplicate)
	}
	return placedOrder{was, status}, nil
}

func sameOrder(a, b order.Order) bool {
	bySKU := func(items []order.Item) []order.Item {
		return slices.SortedFunc(slices.Values(items), func(a, b order.Item) int { return strings.Compare(a.SKU, b.SKU) })
	}
	return a.UserID == b.UserID && a.Amount == b.Amount && a.CouponID == b.CouponID && slices.Equal(bySKU(a.Items), bySKU(b.Items))
}

// pay records a payment. Where the cancel does not come about, the close finds the order paid.
func (s *shop) pay(ctx context.Context, orderNo, paymentID string, amount int64) (order.PayOutcome, error) {
	now, err := s.now(ctx)
	if err != nil {
		return 0, err
	}
	outcome, err := s.store.Pay(ctx, order.Payment{ID: paymentID, OrderNo: orderNo, Amount: amount, At: now})
	if err == nil && outcome != order.Refunded {
		s.cancel(ctx, orderNo)
	}
	return outcome, err
}

// extend gives an unpaid order until expireAt. A crash before Schedule leaves the task at the
// earlier time, at which the close finds the order not yet due.
func (s *shop) extend(ctx context.Context, orderNo string, expireAt time.Time) error {
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	o, _, err := s.store.Find(ctx, orderNo)
	switch {
	case err != nil:
		return err
	case expireAt.Before(o.ExpireAt):
		return faultf(422, "expire_at is %s: give %s, which the order has, or later", stamp(expireAt), stamp(o.ExpireAt))
	case expireAt.After(now.Add(longestToPay)):
		return faultf(422, "expire_at is %s: give at most %v from now", stamp(expireAt), longestToPay)
	}
	if err := s.store.Extend(ctx, orderNo, expireAt); err != nil {
		return err
	}
	return s.schedule(ctx, orderNo, expireAt)
}

// abandon closes an unpaid order for its user.
func (s *shop) abandon(ctx context.Context, orderNo string) (order.Result, error) {
	now, err := s.now(ctx)
	if err != nil {
		return order.Result{}, err
	}
	res, err := s.store.Abandon(ctx, orderNo, now)
	if err == nil && res.Done() {
		s.cancel(ctx, orderNo)
	}
	return res, err
}

// now is the clock that decides what is due: the engine's, and without one the local one.
func (s *shop) now(ctx context.Context) (time.Time, error) {
	if s.engine == nil {
		return time.Now(), nil
	}
	return s.engine.Now(ctx)
}

func (s *shop) schedule(ctx context.Context, orderNo string, at time.Time) error {
	if !s.share.has(orderNo) {
		return nil
	}
	return s.engine.Schedule(ctx, orderNo, at)
}

// cancel takes the task of an order back. It saves the engine a look at an order that needs none,
// and no more hangs on it; so it does not wait long, and goes on when the customer has hung up.
func (s *shop) cancel(ctx context.Context, orderNo string) {
	if !s.share.has(orderNo) {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelWithin)
	defer stop()
	if _, err := s.engine.Cancel(ctx, orderNo); err != nil {
		s.log.Warn("not_cancelled", slog.String("order", orderNo), slog.Any("error", err))
	}
}
