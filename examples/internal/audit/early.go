package audit

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
)

// forgetsUS is how long before a kill Redis may have answered what it has not
// written yet: with appendfsync everysec it lets a write wait while an fsync
// runs, for two seconds at most; and the kill is noted when it has been done.
const forgetsUS = 3_000_000

// schedule tells what the engine had been told of an order when a task of it was
// claimed.
//
//	Create, Schedule   first: the expire_at that the order was created with
//	Extend             the database has a later one, the engine not yet: a claim
//	                   at the old one is right, and its close finds "not yet"
//	Schedule returns   noted by Moved: from here on the later one is in force
//
// A kill between Extend and Schedule leaves the old one in force. A move that
// Redis may have forgotten when it was killed is not held against the engine
// either. Without a claim nothing but its own users' calls binds an engine, so
// moves by other processes do not count.
type schedule struct {
	firstMS map[string]int64  // only of orders that were moved
	moves   map[string][]move // in the order in which they were answered
	killsUS []int64
}

func readSchedule(ctx context.Context, tx *sql.Tx, n *noted) (*schedule, error) {
	s := &schedule{firstMS: map[string]int64{}, moves: map[string][]move{}, killsUS: n.killsUS}
	for _, m := range n.moves {
		s.moves[m.orderNo] = append(s.moves[m.orderNo], m)
	}
	for _, moves := range s.moves {
		slices.SortFunc(moves, func(a, b move) int { return cmp.Compare(a.atUS, b.atUS) })
	}
	rows, err := tx.QueryContext(ctx, `
		SELECT order_no, expire_at FROM audit_expiries
		WHERE rowid IN (SELECT min(rowid) FROM audit_expiries GROUP BY order_no) AND expire_at IS NOT NULL`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var orderNo string
		var ms int64
		if err := rows.Scan(&orderNo, &ms); err != nil {
			return nil, err
		}
		s.firstMS[orderNo] = ms
	}
	return s, rows.Err()
}

// inForceUS is the instant before which the call c may not be entered. lastMS is
// the expire_at that its order has in the end.
func (s *schedule) inForceUS(c *call, lastMS int64) int64 {
	ms, moved := s.firstMS[c.orderNo]
	if !moved {
		ms = lastMS
	}
	for _, m := range s.moves[c.orderNo] {
		if m.atUS > c.nowUS {
			break
		}
		if c.claim == unclaimed && m.process != c.process || s.forgotten(m) && m.expireMS > ms {
			continue
		}
		ms = m.expireMS
	}
	return 1000 * ms
}

// forgotten reports whether Redis was killed so soon after it had answered m
// that it may have lost it.
func (s *schedule) forgotten(m move) bool {
	return slices.ContainsFunc(s.killsUS, func(killUS int64) bool {
		return m.begunUS <= killUS && killUS <= m.atUS+forgetsUS
	})
}
