package recovery

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Source is the order database, as the reconciler sees it.
type Source interface {
	// Unpaid gives the unpaid orders that have an instant to expire, page by page: up to
	// limit of them that come after the id after ("" begins), in an order that does not
	// change, such as that of an index; dueMS[i] is when ids[i] expires, Unix
	// milliseconds. The last id of a page is the after of the next. An empty page ends.
	// It is called by one goroutine at a time and has to return when ctx ends. With an
	// index on (order_no) of the unpaid orders it is one range of it:
	//
	//	SELECT order_no, expire_at FROM orders
	//	WHERE status = 'unpaid' AND expire_at IS NOT NULL AND order_no > ?
	//	ORDER BY order_no LIMIT ?
	//
	// Read from the primary: a replica that is behind shows as unpaid what was paid.
	Unpaid(ctx context.Context, after string, limit int) (ids []string, dueMS []int64, err error)
}

const (
	// unpaidPage is how many orders are asked for at a time: enough to be quick, and few
	// enough that one page holds up nobody else in the store.
	unpaidPage = 500
	// sourceTimeout bounds one page.
	sourceTimeout = 30 * time.Second
)

var (
	errSourceEnded = errors.New("the Source has ended its goroutine (runtime.Goexit)")
	errSourceHangs = errors.New("recovery: the Source has not returned from an earlier call, whose ctx has ended")
	errCircle      = errors.New("recovery: the pages of the Source do not advance: each has to begin after the id it is asked for")
)

// source calls a Source that may panic, hang, or answer nonsense.
type source struct {
	Source
	busy atomic.Bool // a call has not returned
}

// orders is one page.
type orders struct {
	ids   []string
	dueMS []int64
	err   error
}

// page reads one page. A Source that does not heed its ctx is left alone with it, and
// not called again before it has returned.
func (s *source) page(ctx context.Context, after string) (orders, error) {
	if !s.busy.CompareAndSwap(false, true) {
		return orders{}, errSourceHangs
	}
	ctx, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()
	answered := make(chan orders, 1)
	go func() {
		o := orders{err: errSourceEnded} // unless it returns, or panics
		defer func() {
			s.busy.Store(false)
			answered <- o
		}()
		o.err = guarded(func() (err error) {
			o.ids, o.dueMS, err = s.Unpaid(ctx, after, unpaidPage)
			return err
		})
	}()
	select {
	case o := <-answered:
		return o, o.fault(after)
	case <-ctx.Done():
		return orders{}, fmt.Errorf("recovery: waiting for the Source's orders after %q: %w", after, ctx.Err())
	}
}

// fault is what is wrong with a page; nil: nothing.
func (o orders) fault(after string) error {
	switch {
	case o.err != nil:
		return fmt.Errorf("recovery: asking the Source for orders after %q: %w", after, o.err)
	case len(o.ids) != len(o.dueMS):
		return fmt.Errorf("recovery: the Source gave %d ids after %q, but %d times", len(o.ids), after, len(o.dueMS))
	case len(o.ids) > 0 && o.last() == after:
		return fmt.Errorf("%w: the page after %q ends with it", errCircle, after)
	}
	return nil
}

func (o orders) last() string { return o.ids[len(o.ids)-1] }

// circle finds out whether cursors come round, in constant memory. (R. P. Brent, "An
// Improved Monte Carlo Factorization Algorithm", BIT 1980, has the method.)
type circle struct {
	mark        string
	steps, next int
}

// comesRound takes in the next cursor.
func (c *circle) comesRound(cursor string) bool {
	if c.steps > 0 && cursor == c.mark {
		return true
	}
	if c.steps++; c.steps > c.next {
		c.mark, c.next = cursor, 2*c.steps
	}
	return false
}
