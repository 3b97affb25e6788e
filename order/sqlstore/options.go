package sqlstore

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

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

	// Ask asks the payment provider about an order, before Close or CloseMany closes it: outside of
	// any transaction, and only where the order is unpaid and due. Only order.NotPaid lets it be
	// closed. Any other answer, an error, a panic, or none within AskTimeout leaves it unpaid, with
	// order.HeldBack as the outcome: the engine comes again, which counts as no attempt, and a
	// provider that is away for a day costs no order. Stats counts the answers. Abandon does not ask:
	// its user has decided, and what was paid is refunded.
	//
	// When the provider says that the order is paid, Ask may call Pay itself, or leave that to
	// whoever the provider tells.
	//
	// Ask is called by up to 16 goroutines at once, and again for the same order whenever a close is
	// repeated, after a crash too; so it must only ask. A payment that begins between its answer and
	// the commit is not seen: it becomes a refund.
	Ask func(ctx context.Context, orderNo string) (order.ProviderAnswer, error)

	// AskTimeout is how long all the calls of Ask for one Close or CloseMany may take (default 5s);
	// make it shorter than the engine's HandlerTimeout.
	AskTimeout time.Duration

	// AskAgainMin and AskAgainMax bound the pause before the provider is asked again (defaults 5s and
	// 5m). In between it is as long as the order is overdue.
	AskAgainMin, AskAgainMax time.Duration

	// AfterClose is told of each order that this store has closed, after the commit, by the goroutine
	// that closed it, which waits: be quick, and do not panic (it is logged and counted, no more). At
	// most once: what was closed just before a crash, or by a commit whose answer was lost
	// (order.ErrUnknownOutcome), is not told, for the next close finds it closed. What must not be
	// missed belongs in the Outbox.
	AfterClose func(ctx context.Context, orderNo string, reason order.Reason)

	// Logger is told the events ask_failed, batch_failed and after_close_panicked (default: discards).
	Logger *slog.Logger
}

const (
	maxKinds   = 16
	maxKindLen = 64 // bytes; the column holds as many
)

func (o Options) withDefaults() Options {
	if o.AskTimeout == 0 {
		o.AskTimeout = 5 * time.Second
	}
	if o.AskAgainMin == 0 {
		o.AskAgainMin = 5 * time.Second
	}
	if o.AskAgainMax == 0 {
		o.AskAgainMax = max(5*time.Minute, o.AskAgainMin)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

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
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"AskTimeout", o.AskTimeout}, {"AskAgainMin", o.AskAgainMin}, {"AskAgainMax", o.AskAgainMax}} {
		if d.value != 0 && d.value < time.Millisecond {
			f.Add("Options."+d.field, d.value, "give 1ms or more, or 0 for the default")
		}
	}
	if o.AskAgainMax != 0 && o.AskAgainMax < o.withDefaults().AskAgainMin {
		f.Add("Options.AskAgainMax", o.AskAgainMax, fmt.Sprintf("give AskAgainMin (%v) or more", o.withDefaults().AskAgainMin))
	}
	return f.Err(order.ErrInvalid)
}
