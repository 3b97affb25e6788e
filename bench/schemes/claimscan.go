package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
)

// The tables whose scan is timed: all orders in them are closed, so a scan finds nothing.
const (
	smallTable = 10_000
	bigTable   = 200_000
	scanTries  = 11
)

// closeAll closes all orders, and makes the table anew: what an index entry that has just been changed
// costs is not the matter here.
const closeAll = "UPDATE orders SET status = 2; ALTER TABLE orders FORCE; ANALYZE TABLE orders"

// claimsOfScan try whether a scan costs more when the table is bigger, with the index and without.
func claimsOfScan(ctx context.Context, o options, _ Report, s *servers) ([]Claim, error) {
	if !picked(o, s, "db-scan") {
		return nil, nil
	}
	var with, without [2]time.Duration
	for i, n := range []int{smallTable, bigTable} {
		if err := scheme.Create(ctx, s.db, scheme.Plan{Orders: n, Rate: 1000}); err != nil {
			return nil, err
		}
		if _, err := s.db.ExecContext(ctx, closeAll); err != nil {
			return nil, err
		}
		var err error
		if with[i], err = scanTakes(ctx, s, ""); err != nil {
			return nil, err
		}
		if without[i], err = scanTakes(ctx, s, "IGNORE INDEX (status)"); err != nil {
			return nil, err
		}
	}
	ratio := func(d [2]time.Duration) float64 { return float64(d[1]) / float64(d[0]) }
	figure := func(d [2]time.Duration) string {
		return fmt.Sprintf("a scan that finds nothing takes %.2f ms among %d closed orders, %.2f ms among %d",
			d[0].Seconds()*1000, smallTable, d[1].Seconds()*1000, bigTable)
	}
	return []Claim{
		{"the cost of a scan grows with the table: without an index", verdict(ratio(without) > 5), figure(without)},
		{"the cost of a scan grows with the table: with an index on status and expire_at", verdict(ratio(with) > 5), figure(with)},
	}, nil
}

// scanTakes is the median time of a scan.
func scanTakes(ctx context.Context, s *servers, hint string) (time.Duration, error) {
	var took []time.Duration
	for range scanTries {
		began := time.Now()
		rows, err := s.db.QueryContext(ctx, "SELECT order_no FROM orders "+hint+" WHERE status = 0 AND expire_at <= ? ORDER BY expire_at LIMIT 500",
			time.Now().UnixMilli())
		if err != nil {
			return 0, err
		}
		for rows.Next() {
		}
		if err := rows.Close(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}
