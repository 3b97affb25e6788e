package main

import (
	"context"
	"sync"
	"time"
)

// Orders come in blocks. When a machine is too slow, or its workers were down, a
// block comes late, and with it every instant in the plans of its customers: or
// orders would have expired before they are created, and nobody could pay or
// extend one. By how much is decided once, by whichever worker comes to it first,
// and stands in the database before any order of the block is scheduled: so a
// plan stays the same for every worker.
const (
	blockSize = 50
	ahead     = 2 // blocks: so many are under way at once
	tolerance = 200 * time.Millisecond
)

const slipsTable = `CREATE TABLE IF NOT EXISTS drill_slips (block INTEGER NOT NULL PRIMARY KEY, slip_us INTEGER NOT NULL) STRICT`

// slips reads by how much the blocks are late that have been decided.
func (p *place) slips(ctx context.Context) (slips map[int]time.Duration, err error) {
	err = retryBusy(ctx, func(ctx context.Context) error {
		slips = map[int]time.Duration{}
		rows, err := p.store.DB().QueryContext(ctx, `SELECT block, slip_us FROM drill_slips`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var block int
			var us int64
			if err := rows.Scan(&block, &us); err != nil {
				return err
			}
			slips[block] = time.Duration(us) * time.Microsecond
		}
		return rows.Err()
	})
	return slips, err
}

// decide makes slip that of a block, unless another worker was first, and gives
// the one that stands.
func (p *place) decide(ctx context.Context, block int, slip time.Duration) (time.Duration, error) {
	var us int64
	err := retryBusy(ctx, func(ctx context.Context) error {
		_, err := p.store.DB().ExecContext(ctx, `INSERT OR IGNORE INTO drill_slips VALUES (?, ?)`, block, slip.Microseconds())
		if err != nil {
			return err
		}
		return p.store.DB().QueryRowContext(ctx, `SELECT slip_us FROM drill_slips WHERE block = ?`, block).Scan(&us)
	})
	return time.Duration(us) * time.Microsecond, err
}

// customers brings the slot's orders to the timeline, block by block, and what
// is still to be done of each.
func (s *shop) customers(ctx context.Context, j job, t *timeline) error {
	slips, err := s.place.slips(ctx)
	if err != nil {
		return err
	}
	have, err := s.place.states(ctx)
	if err != nil {
		return err
	}
	var slip time.Duration
	var created []*sync.WaitGroup // the orders of each block
	for block := 0; block*blockSize < j.Orders; block++ {
		decided, ok := slips[block]
		if !ok {
			at := j.customer(block*blockSize, slip).createAt
			if !sleepUntil(ctx, at) || block >= ahead && !waitFor(ctx, created[block-ahead]) {
				return ctx.Err()
			}
			if late := time.Since(at); late > tolerance {
				slip += late
			}
			if decided, err = s.place.decide(ctx, block, slip); err != nil {
				return err
			}
		}
		slip = decided
		creating := new(sync.WaitGroup)
		created = append(created, creating)
		for i := block * blockSize; i < min(j.Orders, (block+1)*blockSize); i++ {
			if i%j.Processes != j.Slot {
				continue
			}
			for _, a := range s.acts(j.customer(i, slip), have, creating) {
				if !t.add(ctx, a) {
					return ctx.Err()
				}
			}
		}
	}
	return nil
}

// waitFor waits for w; false: ctx has ended first.
func waitFor(ctx context.Context, w *sync.WaitGroup) bool {
	done := make(chan struct{})
	go func() {
		w.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}
