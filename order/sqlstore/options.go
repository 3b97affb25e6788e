package sqlstore

import (
	"math"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/internal/check"
)

// Options of a store; the zero value is what New uses.
type Options struct {
	// MaxUnpaid is how many unpaid orders a user may have, so that nobody holds the stock without
	// buying; those that never expire count too. Create of one more returns
	// order.ErrTooManyUnpaid. 0: no limit.
	MaxUnpaid int
}

// validate reports every fault at once.
func (o Options) validate() error {
	var f check.Faults
	f.Range("Options.MaxUnpaid", int64(o.MaxUnpaid), 0, math.MaxInt32)
	return f.Err(order.ErrInvalid)
}
