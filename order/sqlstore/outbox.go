package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/internal/check"
)

// Message is a row of the outbox: what a close has to tell another system. OrderNo and Kind
// identify it.
type Message struct {
	OrderNo string
	Kind    string // one of Options.Outbox
	Reason  order.Reason
	At      time.Time // when the order was closed
}

// Outbox is what closes had to tell other systems (see Options.Outbox) and nobody has sent yet.
// It is relayed by an engine of its own, whose tasks are the orders with unsent messages:
//
//	eng, err := orderwheel.New(orderwheel.Config{
//		Redis:          rdb,
//		Namespace:      "outbox",
//		ReconcileEvery: time.Second,
//		Retry:          orderwheel.Retry{Attempts: -1}, // or what is dead is sent no more
//		Source:         store.Outbox(),
//		Handler: func(ctx context.Context, t executor.Task) error {
//			return store.Outbox().Relay(ctx, t.ID, t.Now, send)
//		},
//	})
//
// Its Source finds what is unsent within ReconcileEvery, but for what is dead: with bounded
// attempts, messages to a service that is away for longer than these last wait for an operator. To
// send sooner, schedule the order with that engine in Options.AfterClose; what this misses the
// Source finds.
type Outbox struct{ s *Store }

// Outbox is the store's outbox.
func (s *Store) Outbox() Outbox { return Outbox{s} }

// post writes the messages of orders that were closed.
func (t *tx) post(nos []string, reason order.Reason, atMS int64) error {
	for _, kind := range t.opts.Outbox {
		var args []any
		for _, no := range nos {
			args = append(args, no, kind, string(reason), atMS)
		}
		_, err := t.exec(`INSERT INTO outbox (order_no, kind, reason, at) VALUES `+repeated("(?, ?, ?, ?)", len(nos)), args...)
		if err != nil && t.dialect.Duplicate(err) {
			return fmt.Errorf("%w: unpaid, but the outbox has a message of its close: %w", order.ErrInconsistency, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Unpaid has the form of the engine's Config.Source: a page of the orders that have unsent
// messages, in the order of order_no, and when each was closed (see Store.Unpaid).
func (o Outbox) Unpaid(ctx context.Context, after string, limit int) (ids []string, dueMS []int64, err error) {
	ids, dueMS, err = o.s.page(ctx, `
		SELECT order_no, MIN(at) FROM `+o.s.dialect.Indexed("outbox", "outbox_unsent")+`
		WHERE sent_at IS NULL AND order_no > ?
		GROUP BY order_no ORDER BY order_no LIMIT ?`, after, limit)
	if err != nil {
		return nil, nil, fmt.Errorf("unsent messages after %q: %w", after, err)
	}
	return ids, dueMS, nil
}

// Relay sends the unsent messages of an order, one after the other, outside of any transaction, and
// notes each that send took (nil) as sent at now. One that fails holds up no other of the order;
// Relay returns the errors of all, and is called again. With nothing to send it does nothing.
//
// At least once: a crash after send, and before the note, sends the message again. The receiver has
// to know it again by OrderNo and Kind.
func (o Outbox) Relay(ctx context.Context, orderNo string, now time.Time, send func(context.Context, Message) error) error {
	var f check.Faults
	f.Instant("now", now)
	if err := f.Err(order.ErrInvalid); err != nil {
		return fmt.Errorf("relay the messages of order %q: %w", orderNo, err)
	}
	var unsent []Message
	err := o.s.retry(ctx, func() (err error) {
		unsent, err = o.unsent(ctx, orderNo)
		return err
	})
	if err != nil {
		return fmt.Errorf("relay the messages of order %q: %w", orderNo, err)
	}
	var failed []error
	for _, m := range unsent {
		err := send(ctx, m)
		if err == nil {
			err = o.sent(ctx, m, now.UnixMilli())
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("relay %q of order %q: %w", m.Kind, m.OrderNo, err))
		}
	}
	return errors.Join(failed...)
}

func (o Outbox) unsent(ctx context.Context, orderNo string) (list []Message, err error) {
	rows, err := o.s.db.QueryContext(ctx, o.s.dialect.Rebind(`
		SELECT kind, reason, at FROM outbox WHERE order_no = ? AND sent_at IS NULL ORDER BY kind`), orderNo)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		m := Message{OrderNo: orderNo}
		var atMS int64
		if err := rows.Scan(&m.Kind, (*string)(&m.Reason), &atMS); err != nil {
			return nil, err
		}
		m.At = time.UnixMilli(atMS)
		list = append(list, m)
	}
	return list, rows.Err()
}

func (o Outbox) sent(ctx context.Context, m Message, nowMS int64) error {
	return o.s.write(ctx, func(t *tx) error {
		_, err := t.exec(`UPDATE outbox SET sent_at = ? WHERE order_no = ? AND kind = ? AND sent_at IS NULL`,
			nowMS, m.OrderNo, m.Kind)
		return err
	})
}
