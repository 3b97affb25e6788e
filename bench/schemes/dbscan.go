package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
)

// dbScan has a job read unpaid orders that have expired, by the index on status and
// expire_at, a page at a time, and close them one after the other.
//
// Where it is used: nearly everywhere first, and as the safety net of all others later. It
// needs nothing but the order database, forgets nothing, and a restart changes nothing.
//
// What it risks: an order is closed up to a period late. Each scan asks the database,
// also when nothing is due. Two instances read the same page and close the same orders,
// so the close must decide by a conditional update, or the instances must share the
// users out among them: here by user_id modulo shards.
type dbScan struct {
	env     *scheme.Env
	sharded bool
	loops   *scheme.Loops
}

const (
	scanPage = 500
	shards   = 10
)

func newDBScan(env *scheme.Env) scheme.Scheme { return &dbScan{env: env} }

func newDBScanSharded(env *scheme.Env) scheme.Scheme { return &dbScan{env: env, sharded: true} }

func (s *dbScan) Start(ctx context.Context) error {
	s.loops = scheme.NewLoops(ctx)
	s.loops.Every(s.env.Every, s.scan)
	return nil
}

// scan closes all that has expired. A page that is not full is the last one.
func (s *dbScan) scan(ctx context.Context) {
	for ctx.Err() == nil {
		ids, err := s.overdue(ctx)
		if err != nil {
			alarm(ctx, s.env, "scan", err)
			return
		}
		failed := false
		for _, id := range ids {
			if ctx.Err() != nil {
				return
			}
			if err := s.env.Handle(context.WithoutCancel(ctx), id); err != nil {
				alarm(ctx, s.env, "close", err)
				failed = true // the next scan finds it again
			}
		}
		if len(ids) < scanPage || failed {
			return
		}
	}
}

func (s *dbScan) overdue(ctx context.Context) ([]string, error) {
	query := "SELECT order_no FROM orders WHERE status = 0 AND expire_at <= ?"
	if s.sharded {
		query += " AND user_id % " + strconv.Itoa(shards) + " IN (" + s.shards() + ")"
	}
	rows, err := s.env.DB.QueryContext(ctx, query+" ORDER BY expire_at LIMIT "+strconv.Itoa(scanPage), time.Now().UnixMilli())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// shards are those of this instance, dealt out like cards.
func (s *dbScan) shards() string {
	var mine []string
	for n := s.env.Instance; n < shards; n += s.env.Instances {
		mine = append(mine, strconv.Itoa(n))
	}
	return strings.Join(mine, ",")
}

func (s *dbScan) Add(context.Context, scheme.Order) error { return nil }

func (s *dbScan) Remove(context.Context, string) error { return nil }

func (s *dbScan) Stop() { s.loops.Stop() }
