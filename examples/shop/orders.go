package main

import (
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/orderwheel/orderwheel/order"
)

const (
	maxLines    = 100 // of an order
	maxQuantity = 1_000_000_000
)

// newOrder is the body of POST /orders. Who the user is and what the items cost is the caller's to
// know: this app stands behind the shop's own login and prices.
type newOrder struct {
	OrderNo  string `json:"order_no"`
	UserID   string `json:"user_id"`
	Amount   *int64 `json:"amount"` // of the smallest unit of the currency
	CouponID string `json:"coupon_id"`
	Items    []line `json:"items"`
}

type line struct {
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
}

func (n newOrder) order() (order.Order, error) {
	var f faults
	o := order.Order{No: n.OrderNo, UserID: n.UserID, CouponID: n.CouponID}
	f.id("order_no", n.OrderNo)
	f.id("user_id", n.UserID)
	o.Amount = f.number("amount", n.Amount, 0, math.MaxInt64)
	if n.CouponID != "" {
		f.id("coupon_id", n.CouponID)
	}
	if len(n.Items) < 1 || len(n.Items) > maxLines {
		f.add("items has %d lines: give 1 to %d", len(n.Items), maxLines)
		return o, f.err()
	}
	first := map[string]int{}
	for i, it := range n.Items {
		field := fmt.Sprintf("items[%d].", i)
		f.id(field+"sku", it.SKU)
		f.number(field+"quantity", &it.Quantity, 1, maxQuantity)
		if was, twice := first[it.SKU]; twice && it.SKU != "" {
			f.add("%ssku is %q, that of items[%d]: add the quantities up in one line", field, it.SKU, was)
			continue
		}
		first[it.SKU] = i
		o.Items = append(o.Items, order.Item{SKU: it.SKU, Quantity: it.Quantity})
	}
	return o, f.err()
}

// orderView is an order as it is shown.
type orderView struct {
	OrderNo  string       `json:"order_no"`
	Status   order.Status `json:"status"`
	UserID   string       `json:"user_id"`
	Amount   int64        `json:"amount"`
	CouponID string       `json:"coupon_id,omitempty"`
	Items    []line       `json:"items"`
	ExpireAt string       `json:"expire_at"`
}

func view(o order.Order, status order.Status) orderView {
	v := orderView{
		OrderNo: o.No, Status: status, UserID: o.UserID, Amount: o.Amount, CouponID: o.CouponID, ExpireAt: stamp(o.ExpireAt),
	}
	for _, it := range o.Items {
		v.Items = append(v.Items, line{it.SKU, it.Quantity})
	}
	return v
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// createOrder answers 201 when it has placed the order, and 200 when the same order stood already.
func (a *api) createOrder(w http.ResponseWriter, r *http.Request) (reply, error) {
	body, err := readBody[newOrder](w, r)
	if err != nil {
		return reply{}, err
	}
	o, err := body.order()
	if err != nil {
		return reply{}, err
	}
	placed, isNew, err := a.shop.create(r.Context(), o)
	if err != nil {
		return reply{}, err
	}
	status := http.StatusOK
	if isNew {
		status = http.StatusCreated
	}
	return reply{status, view(placed.Order, placed.status)}, nil
}

func (a *api) getOrder(_ http.ResponseWriter, r *http.Request) (reply, error) {
	o, status, err := a.shop.store.Find(r.Context(), r.PathValue("no"))
	return ok(view(o, status)), err
}

// payOrder tells of a payment. The money is there whatever is answered: tell the payment provider
// that it was taken in only after a 200.
func (a *api) payOrder(w http.ResponseWriter, r *http.Request) (reply, error) {
	body, err := readBody[struct {
		PaymentID string `json:"payment_id"`
		Amount    *int64 `json:"amount"`
	}](w, r)
	if err != nil {
		return reply{}, err
	}
	var f faults
	f.id("payment_id", body.PaymentID)
	amount := f.number("amount", body.Amount, 0, math.MaxInt64)
	if err := f.err(); err != nil {
		return reply{}, err
	}
	outcome, err := a.shop.pay(r.Context(), r.PathValue("no"), body.PaymentID, amount)
	return ok(map[string]string{"payment_id": body.PaymentID, "outcome": outcome.String()}), err
}

func (a *api) extendOrder(w http.ResponseWriter, r *http.Request) (reply, error) {
	body, err := readBody[struct {
		ExpireAt string `json:"expire_at"`
	}](w, r)
	if err != nil {
		return reply{}, err
	}
	var f faults
	expireAt := f.instant("expire_at", body.ExpireAt)
	if err := f.err(); err != nil {
		return reply{}, err
	}
	if err := a.shop.extend(r.Context(), r.PathValue("no"), expireAt); err != nil {
		return reply{}, err
	}
	return a.getOrder(w, r)
}

// abandonOrder answers 200 also where the order was closed before.
func (a *api) abandonOrder(w http.ResponseWriter, r *http.Request) (reply, error) {
	no := r.PathValue("no")
	res, err := a.shop.abandon(r.Context(), no)
	switch {
	case err != nil:
		return reply{}, err
	case res.Outcome == order.NotFound:
		return reply{}, fmt.Errorf("abandon order %q: %w", no, order.ErrUnknownOrder)
	case res.Outcome == order.WasPaid:
		return reply{}, faultf(http.StatusConflict, "order %q is paid: give the money back instead", no)
	}
	return a.getOrder(w, r)
}
