package scheme

import (
	"strconv"
	"time"
)

const (
	// idBase makes ids as long as order numbers are.
	idBase = 2026_093012345600000
	// paidEvery is one in how many orders is paid in time.
	paidEvery = 10
	// Skus is how many articles the orders are of.
	Skus = 1000
)

// Plan is the orders of one run. They are created in the order in which they expire, as
// they are where every order has the same time to pay.
type Plan struct {
	Orders  int
	FirstMS int64 // when order 0 expires, Unix milliseconds
	Rate    int   // how many expire a second
	// MixedEvery has each such order, from the first on, expire MixedLater after its turn:
	// times to pay that differ. 0: none.
	MixedEvery int
	MixedLater time.Duration
}

// Order is order number i.
func (p Plan) Order(i int) Order {
	return Order{ID: strconv.Itoa(idBase + i), UserID: int64(i), ExpireAt: time.UnixMilli(p.dueMS(i))}
}

func (p Plan) dueMS(i int) int64 {
	due := p.FirstMS + int64(i)*1000/int64(p.Rate)
	if p.MixedEvery > 0 && i%p.MixedEvery == 0 {
		due += p.MixedLater.Milliseconds()
	}
	return due
}

// Last is when the last of them expires.
func (p Plan) Last() time.Time {
	var last int64
	for i := range p.Orders {
		last = max(last, p.dueMS(i))
	}
	return time.UnixMilli(last)
}

// Paid tells whether order i is paid in time.
func (p Plan) Paid(i int) bool { return i%paidEvery == paidEvery-1 }

// Unpaid is how many are not paid in time.
func (p Plan) Unpaid() int { return p.Orders - p.Orders/paidEvery }

// Index is the number of the order with this id. False: there is none.
func (p Plan) Index(id string) (int, bool) {
	n, err := strconv.Atoi(id)
	i := n - idBase
	return i, err == nil && i >= 0 && i < p.Orders
}
