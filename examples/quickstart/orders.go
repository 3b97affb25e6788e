package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/orderwheel/orderwheel/order"
)

const madeUpOrders = 1000

// makeUp invents n purchases: about half are paid in time, and one in twenty
// after the time to pay is over, so that money comes for a closed order.
func makeUp(n int, timeout time.Duration, rng *rand.Rand) []purchase {
	purchases := make([]purchase, n)
	for i := range purchases {
		p := &purchases[i]
		p.orderNo = fmt.Sprintf("order-%04d", i+1)
		switch chance := rng.Float64(); {
		case chance < 0.50:
			p.pays, p.payAfter = true, time.Duration(rng.Float64()*0.95*float64(timeout))
		case chance < 0.55:
			p.pays, p.payAfter = true, time.Duration((1.05+0.25*rng.Float64())*float64(timeout))
		}
	}
	return purchases
}

// skus are what the shop sells, with their prices.
var skus = []struct {
	id    string
	price int64
}{
	{"mug", 1200}, {"lamp", 4900}, {"chair", 12900}, {"kettle", 3500},
	{"poster", 900}, {"plant", 1900}, {"clock", 2700}, {"rug", 8900},
}

const couponWorth = 500

// cart is a purchase and what is bought.
type cart struct {
	purchase
	order order.Order // but for its ExpireAt, which is known when it is placed
}

// furnish puts one to three things into each purchase, and a coupon on one in
// five. The same purchases and seed give the same carts.
func furnish(purchases []purchase, rng *rand.Rand) []cart {
	carts := make([]cart, len(purchases))
	for i, p := range purchases {
		o := order.Order{No: p.orderNo, UserID: fmt.Sprintf("user-%d", i+1)}
		for _, s := range rng.Perm(len(skus))[:1+rng.IntN(3)] {
			it := order.Item{SKU: skus[s].id, Quantity: 1 + rng.Int64N(3)}
			o.Items = append(o.Items, it)
			o.Amount += it.Quantity * skus[s].price
		}
		if rng.IntN(5) == 0 {
			o.CouponID = fmt.Sprintf("coupon-%d", i+1)
			o.Amount -= couponWorth
		}
		carts[i] = cart{purchase: p, order: o}
	}
	return carts
}

// demand is how many units of each sku all carts hold together.
func demand(carts []cart) map[string]int64 {
	units := map[string]int64{}
	for _, c := range carts {
		for _, it := range c.order.Items {
			units[it.SKU] += it.Quantity
		}
	}
	return units
}
