package sqlstore

import (
	"fmt"
	"math"
	"slices"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/internal/check"
)

// Options of a store; the zero value is what New uses.
type Options struct {
	// MaxUnpaid is how many unpaid orders a user may have, so that nobody holds the stock without
	// buying; those that never expire count too. Create of one more returns
	// order.ErrTooManyUnpaid. 0: no limit.
	MaxUnpaid int

	// Outbox names the kinds of messages that each close, by Close, CloseMany and Abandon, leaves for
	// other systems: "release-preauth" for a payment that is reserved elsewhere, "stock" for the stock
	// of another service. A row of the table outbox for each is written in the transaction of the
	// close, and so exactly when the order is closed; see Outbox for how it is sent. At most 16, each 1
	// to 64 bytes.
	Outbox []string
}

const (
	maxKinds   = 16
	maxKindLen = 64 // bytes; the column holds as many
)

// validate reports every fault at once.
func (o Options) validate() error {
	var f check.Faults
	f.Range("Options.MaxUnpaid", int64(o.MaxUnpaid), 0, math.MaxInt32)
	if len(o.Outbox) > maxKinds {
		f.Add("Options.Outbox", fmt.Sprintf("a list of %d", len(o.Outbox)), fmt.Sprintf("give at most %d kinds", maxKinds))
	}
	for i, kind := range o.Outbox {
		field := fmt.Sprintf("Options.Outbox[%d]", i)
		f.ID(field, kind)
		if len(kind) > maxKindLen && len(kind) <= check.MaxIDLen {
			f.Add(field, check.Quote(kind), fmt.Sprintf("give at most %d bytes", maxKindLen))
		}
		if slices.Contains(o.Outbox[:i], kind) {
			f.Add(field, check.Quote(kind), "name each kind once")
		}
	}
	return f.Err(order.ErrInvalid)
}
