package order

import (
	"fmt"
	"math"

	"github.com/orderwheel/orderwheel/order/internal/check"
)

// Validate reports every fault of the order at once, each with its field, its value and what to do
// about it. The error wraps ErrInvalid. A store calls it before it touches the database.
//
// ExpireAt may lie in the past: such an order is closed as soon as the engine hears of it.
func (o Order) Validate() error {
	var f check.Faults
	f.ID("No", o.No)
	f.ID("UserID", o.UserID)
	f.Range("Amount", o.Amount, 0, math.MaxInt64)
	if o.CouponID != "" {
		f.ID("CouponID", o.CouponID)
	}
	if !o.ExpireAt.IsZero() {
		f.Instant("ExpireAt", o.ExpireAt)
	}
	if len(o.Items) == 0 {
		f.Add("Items", "empty", "give at least one line")
	}
	line := make(map[string]int, len(o.Items))
	for i, it := range o.Items {
		f.ID(fmt.Sprintf("Items[%d].SKU", i), it.SKU)
		f.Range(fmt.Sprintf("Items[%d].Quantity", i), it.Quantity, 1, check.MaxQuantity)
		if first, dup := line[it.SKU]; dup && it.SKU != "" {
			f.Add(fmt.Sprintf("Items[%d].SKU", i), check.Quote(it.SKU),
				fmt.Sprintf("the sku of Items[%d] again: add the quantities up in one line", first))
			continue
		}
		line[it.SKU] = i
	}
	return f.Err(ErrInvalid)
}

// Validate reports every fault of the payment at once, as Order.Validate does.
func (p Payment) Validate() error {
	var f check.Faults
	f.ID("ID", p.ID)
	f.ID("OrderNo", p.OrderNo)
	f.Range("Amount", p.Amount, 0, math.MaxInt64)
	f.Instant("At", p.At)
	return f.Err(ErrInvalid)
}
