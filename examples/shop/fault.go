package main

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/orderwheel/orderwheel/order"
)

// fault is an error that is the sender's: it says what is wrong and what to do about it.
type fault struct {
	status int
	text   string
}

func (f *fault) Error() string { return f.text }

func faultf(status int, format string, args ...any) error {
	return &fault{status, fmt.Sprintf(format, args...)}
}

// orderFaults says what the errors of an order come to. Each says itself which order, sku or
// coupon it is about, and the figures.
var orderFaults = []struct {
	is     error
	status int
	remedy string
}{
	{order.ErrUnknownOrder, http.StatusNotFound, "create it first, or look at its number"},
	{order.ErrDuplicate, http.StatusConflict, "give a number or id of its own"},
	{order.ErrOutOfStock, http.StatusConflict, "order less, or wait for a delivery"},
	{order.ErrCoupon, http.StatusConflict, "leave coupon_id out, or give another one"},
	{order.ErrTooManyUnpaid, http.StatusConflict, "pay one of them first, or abandon it"},
	{order.ErrNotUnpaid, http.StatusConflict, "create a new order"},
	{order.ErrPaymentReused, http.StatusConflict, "give each payment an id of its own"},
	{order.ErrWrongAmount, http.StatusUnprocessableEntity, "pay just the amount"},
	{order.ErrInvalid, http.StatusUnprocessableEntity, "correct it"},
}

// statusOf is how an error is answered. What is not the sender's fault leaves open what was done:
// Redis or the database was away or busy, or the answer to a commit was lost.
func statusOf(err error) (status int, text string) {
	if f := (*fault)(nil); errors.As(err, &f) {
		return f.status, f.text
	}
	for _, f := range orderFaults {
		if errors.Is(err, f.is) {
			return f.status, err.Error() + ": " + f.remedy
		}
	}
	if errors.Is(err, order.ErrInconsistency) {
		return http.StatusInternalServerError, "the stock or the coupon of this order was changed from outside: somebody has to look, the log has the figures"
	}
	return http.StatusServiceUnavailable, "Redis or the database gave no answer: it is open whether this was done. Send the same request again"
}
