package order_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order"
)

var due = time.UnixMilli(1_700_000_000_000)

func valid() order.Order {
	return order.Order{No: "o", UserID: "u", Amount: 1, CouponID: "c", ExpireAt: due,
		Items: []order.Item{{SKU: "a", Quantity: 1}, {SKU: "b", Quantity: 1}}}
}

func TestValidOrdersPass(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*order.Order){
		"as it is":           func(*order.Order) {},
		"no coupon":          func(o *order.Order) { o.CouponID = "" },
		"never expires":      func(o *order.Order) { o.ExpireAt = time.Time{} },
		"free of charge":     func(o *order.Order) { o.Amount = 0 },
		"the longest number": func(o *order.Order) { o.No = strings.Repeat("x", 256) },
		"any script":         func(o *order.Order) { o.No = "订单 42" },
		"skus differ by case": func(o *order.Order) {
			o.Items[0].SKU, o.Items[1].SKU = "a", "A"
		},
		"the first instant": func(o *order.Order) { o.ExpireAt = time.UnixMilli(0) },
		"the last instant":  func(o *order.Order) { o.ExpireAt = time.UnixMilli(253402300799999) },
		"already expired":   func(o *order.Order) { o.ExpireAt = due.AddDate(-9, 0, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := valid()
			edit(&o)
			require.NoError(t, o.Validate())
		})
	}
}

func TestEachFaultOfAnOrderIsNamed(t *testing.T) {
	t.Parallel()
	for says, edit := range map[string]func(*order.Order){
		`No is "": give 1 to 256 bytes`: func(o *order.Order) { o.No = "" },
		`and so on, 257 bytes: give 1`:  func(o *order.Order) { o.No = strings.Repeat("x", 257) },
		`No is "a\x00": give`:           func(o *order.Order) { o.No = "a\x00" },
		`No is "\xff": give`:            func(o *order.Order) { o.No = "\xff" },
		`UserID is "": give`:            func(o *order.Order) { o.UserID = "" },
		`CouponID is "\xff": give`:      func(o *order.Order) { o.CouponID = "\xff" },
		`Amount is -1: give 0 to`:       func(o *order.Order) { o.Amount = -1 },
		`ExpireAt is 1969-12-31T23:59:59.999Z: give an instant of the years 1970 to 9999`: func(o *order.Order) { o.ExpireAt = time.UnixMilli(-1).UTC() },
		`ExpireAt is 10000-01-01T00:00:00Z: give`:                                         func(o *order.Order) { o.ExpireAt = time.UnixMilli(253402300800000).UTC() },
		`Items is empty: give at least one line`:                                          func(o *order.Order) { o.Items = nil },
		`Items[1].SKU is "": give`:                                                        func(o *order.Order) { o.Items[1].SKU = "" },
		`Items[1].SKU is "a": the sku of Items[0] again: add the quantities up`:           func(o *order.Order) { o.Items[1].SKU = "a" },
		`Items[0].Quantity is 0: give 1 to 1000000000`:                                    func(o *order.Order) { o.Items[0].Quantity = 0 },
		`Items[1].Quantity is 9223372036854775807: give 1 to`:                             func(o *order.Order) { o.Items[1].Quantity = math.MaxInt64 },
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			o := valid()
			edit(&o)
			err := o.Validate()
			require.ErrorIs(t, err, order.ErrInvalid)
			require.ErrorContains(t, err, says)
			require.NotContains(t, err.Error(), ";", "and nothing else is wrong")
		})
	}
}

func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	err := order.Order{Amount: -1, ExpireAt: time.UnixMilli(-1), Items: []order.Item{{}}}.Validate()
	for _, field := range []string{"No", "UserID", "Amount", "ExpireAt", "Items[0].SKU", "Items[0].Quantity"} {
		require.ErrorContains(t, err, field+" is ")
	}
	err = order.Payment{Amount: -1}.Validate()
	require.ErrorIs(t, err, order.ErrInvalid)
	for _, field := range []string{"ID", "OrderNo", "Amount", "At"} {
		require.ErrorContains(t, err, field+" is ")
	}
	require.NoError(t, order.Payment{ID: "p", OrderNo: "o", At: due}.Validate())
}

func TestCeilMSIsNeverEarlyAndLessThanAMillisecondLate(t *testing.T) {
	t.Parallel()
	base := due.UnixMilli()
	for d, want := range map[time.Duration]int64{
		0: base, 1: base + 1, 999_999: base + 1, 1_000_000: base + 1, 1_000_001: base + 2, -1: base, -999_999: base, -1_000_000: base - 1,
	} {
		require.Equal(t, want, order.CeilMS(due.Add(d)), d)
	}
	require.Equal(t, int64(0), order.CeilMS(time.Unix(0, 0)))
	require.Equal(t, int64(0), order.CeilMS(time.Unix(0, -1)))
	require.Equal(t, int64(-1), order.CeilMS(time.Unix(0, -1_000_001)))
}

func TestAResultSaysWhetherToComeAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		res    order.Result
		done   bool
		notYet time.Time
		says   string
	}{
		{order.Result{Outcome: order.ClosedNow}, true, time.Time{}, "closed"},
		{order.Result{Outcome: order.ClosedAlready}, true, time.Time{}, "already closed"},
		{order.Result{Outcome: order.WasPaid}, true, time.Time{}, "paid"},
		{order.Result{Outcome: order.NotYetDue, ExpireAt: due}, false, due, "not yet"},
		{order.Result{Outcome: order.NotYetDue}, true, time.Time{}, "not yet"},
		{order.Result{Outcome: order.HeldBack, AskAgain: due}, false, due, "held back"},
		{order.Result{Outcome: order.NotFound}, false, time.Time{}, "unknown order"},
		{order.Result{}, false, time.Time{}, "CloseOutcome(0)"},
	} {
		require.Equal(t, c.done, c.res.Done(), c.says)
		at, ok := c.res.NotYet()
		require.Equal(t, c.notYet, at, c.says)
		require.Equal(t, !c.notYet.IsZero(), ok, c.says)
		require.Equal(t, c.says, c.res.String())
	}
	for o, says := range map[order.PayOutcome]string{
		order.PaidNow: "paid", order.PaidAlready: "already paid", order.Refunded: "refunded", 0: "PayOutcome(0)",
	} {
		require.Equal(t, says, o.String())
	}
	for a, says := range map[order.ProviderAnswer]string{
		order.PaymentUnknown: "unknown", order.NotPaid: "not paid", order.PaidThere: "paid there", 9: "ProviderAnswer(9)",
	} {
		require.Equal(t, says, a.String())
	}
}
