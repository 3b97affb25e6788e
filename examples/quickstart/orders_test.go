package main

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

func TestMadeUpOrdersAreHalfPaidInTimeAndSomeTooLate(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		const timeout = 30 * time.Minute
		inTime, tooLate := 0, 0
		seen := map[string]bool{}
		for _, p := range makeUp(madeUpOrders, timeout, seeded(seed)) {
			require.False(t, seen[p.orderNo])
			seen[p.orderNo] = true
			switch {
			case p.pays && p.payAfter < timeout:
				inTime++
			case p.pays:
				tooLate++
			}
			require.GreaterOrEqual(t, p.payAfter, time.Duration(0))
		}
		require.Len(t, seen, madeUpOrders)
		require.InDelta(t, madeUpOrders/2, inTime, 80, "seed %d", seed)
		require.InDelta(t, madeUpOrders/20, tooLate, 40, "seed %d", seed)
	}
}

func TestCartsAreValidOrdersAndDependOnTheSeedOnly(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		purchases := makeUp(madeUpOrders, time.Hour, seeded(seed))
		carts := furnish(purchases, seeded(seed))
		require.Equal(t, carts, furnish(purchases, seeded(seed)))
		require.NotEqual(t, carts, furnish(purchases, seeded(seed+1)))

		coupons := map[string]bool{}
		units := demand(carts)
		for i, c := range carts {
			require.Equal(t, purchases[i], c.purchase)
			require.Equal(t, c.orderNo, c.order.No)
			require.NoError(t, c.order.Validate())
			require.LessOrEqual(t, len(c.order.Items), 3)
			for _, it := range c.order.Items {
				units[it.SKU] -= it.Quantity
			}
			if id := c.order.CouponID; id != "" {
				require.False(t, coupons[id], "a coupon of its own")
				coupons[id] = true
			}
		}
		require.InDelta(t, madeUpOrders/5, len(coupons), 80, "seed %d", seed)
		require.Len(t, units, len(skus))
		for sku, left := range units {
			require.Zero(t, left, sku)
		}
	}
}
