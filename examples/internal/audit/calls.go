package audit

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
)

// history is what the calls for one order come to.
type history struct {
	expireMS int64 // in the end
	closed   bool
	early    int64         // calls
	doneUS   int64         // when the last of its calls had returned; without end: one never did
	late     sql.NullInt64 // in microseconds, of the first call that was not before expire_at
}

// closedEarly reports whether the order was closed before its expire_at, although
// no call was early: by a wrong clock.
func (h *history) closedEarly() bool {
	return h.closed && h.early == 0 && h.doneUS < 1000*h.expireMS
}

func readCalls(ctx context.Context, tx *sql.Tx, n *noted, r *Report) error {
	s, err := readSchedule(ctx, tx, n)
	if err != nil {
		return err
	}
	orders, err := readExpiring(ctx, tx)
	if err != nil {
		return err
	}
	slices.SortFunc(n.calls, func(a, b *call) int { return int(a.entryUS - b.entryUS) })
	called := map[*history]bool{}
	for _, c := range n.calls {
		if err := r.By.add(c); err != nil {
			return err
		}
		h := orders[c.orderNo]
		if h == nil {
			continue // there is no such order, or it never expires
		}
		called[h] = true
		h.add(c, s)
	}
	var lateUS []int64
	for h := range called {
		r.Early += h.early
		if h.closedEarly() {
			r.Early++
		}
		if h.closed && h.late.Valid {
			lateUS = append(lateUS, h.late.Int64)
		}
	}
	slices.Sort(lateUS)
	r.LateMS = LateMS{P50: rankMS(lateUS, 0.50), P99: rankMS(lateUS, 0.99), Max: rankMS(lateUS, 1)}
	return nil
}

// readExpiring reads the orders that expire.
func readExpiring(ctx context.Context, tx *sql.Tx) (map[string]*history, error) {
	rows, err := tx.QueryContext(ctx, `SELECT order_no, expire_at, status = 'closed' FROM orders WHERE expire_at IS NOT NULL`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	orders := map[string]*history{}
	for rows.Next() {
		var orderNo string
		h := new(history)
		if err := rows.Scan(&orderNo, &h.expireMS, &h.closed); err != nil {
			return nil, err
		}
		orders[orderNo] = h
	}
	return orders, rows.Err()
}

// add takes the next call into account.
func (h *history) add(c *call, s *schedule) {
	if c.entryUS < s.inForceUS(c, h.expireMS) {
		h.early++
	}
	if late := c.entryUS - 1000*h.expireMS; late >= 0 && !h.late.Valid {
		h.late = sql.NullInt64{Int64: late, Valid: true}
	}
	doneUS := int64(math.MaxInt64)
	if c.commitUS.Valid {
		doneUS = c.commitUS.Int64
	}
	h.doneUS = max(h.doneUS, doneUS)
}

// add counts a call by what brought its task.
func (b *By) add(c *call) error {
	switch c.source {
	case "wheel":
		b.Wheel++
	case "sweep":
		b.Sweep++
	case "recovery":
		b.Recovery++
	case "reconcile":
		b.Reconcile++
	default:
		return fmt.Errorf("order %q was brought by %q", c.orderNo, c.source)
	}
	return nil
}

// rankMS is the q-quantile of sorted microseconds, by nearest rank, in
// milliseconds; 0 of none.
func rankMS(sortedUS []int64, q float64) float64 {
	if len(sortedUS) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(sortedUS))))
	return float64(sortedUS[max(rank, 1)-1]) / 1000
}
