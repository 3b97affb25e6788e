package persist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrOverloaded: MaxPending tasks are due already, now or later, and this id is not one of
// them, nor running. It was not scheduled; nothing else was changed.
var ErrOverloaded = errors.New("too many tasks are pending")

// scheduleWithin is Schedule where MaxPending bounds what is due.
func (r *Redis) scheduleWithin(ctx context.Context, dues []Due) error {
	x := exchange[Due, bool]{
		ask:  flushed(scheduleWithinWrite, r.mostPerShard()),
		id:   func(d Due) string { return d.ID },
		add:  func(args []any, d Due) []any { return append(args, d.ID, d.DueMS) },
		read: func(rp *reply, _ Due) bool { return rp.int() == 1 },
	}
	admitted, err := x.each(ctx, r, dues)
	missing, now := Missing(err, len(dues)), time.Now()
	var refused []int
	for i, ok := range admitted { // none where all are missing
		if _, none := slices.BinarySearch(missing, i); !ok && !none {
			refused = append(refused, i)
			r.shards[r.ShardOf(dues[i].ID)].overloaded.Store(&now)
		}
	}
	if len(refused) == 0 {
		return err
	}
	overloaded := fmt.Errorf("persist: schedule: %w: MaxPending is %d", ErrOverloaded, r.maxPending)
	if len(refused) == len(dues) {
		return overloaded // whether replicas have what changed nothing is of no interest
	}
	if partial := (*PartialError)(nil); errors.As(err, &partial) {
		err = partial.Err
	}
	missing = append(refused, missing...)
	slices.Sort(missing)
	return &PartialError{Missing: missing, Err: errors.Join(overloaded, err)}
}

// mostPerShard is MaxPending of one shard, rounded up.
func (r *Redis) mostPerShard() int { return (r.maxPending + len(r.shards) - 1) / len(r.shards) }

func checkMaxPending(n int) error {
	if n < 0 {
		return fmt.Errorf("%w: MaxPending is %d: use 1 or more, or 0 for no limit", ErrInvalid, n)
	}
	return nil
}
