package persist

import (
	"context"
	"slices"
)

// Reap takes back tasks that run with their lease over, of each shard at most limit, the
// oldest lease first. Such a task is due now and marked lost; a successor
// wins, and a task that was cancelled meanwhile is gone. Returned are those that
// are due afterwards, with their due time. Fewer than limit does not mean that none
// are left: some may be gone, so call it regularly.
//
// It also finds claims whose lease somebody removed from Redis, and drops the reasons
// of those that somebody removed from the dead: each call looks at a few, so that all
// are seen in time.
//
// ErrInvalid is returned for a limit below 1. With an error the tasks taken back
// before it are returned.
func (r *Redis) Reap(ctx context.Context, limit int) ([]Due, error) {
	if err := checkLimit(limit); err != nil {
		return nil, err
	}
	dues, err := onShards(r, func(s *shard) ([]Due, error) { return s.reap(ctx, limit) })
	return slices.Concat(dues...), err
}

func (s *shard) reap(ctx context.Context, limit int) (dues []Due, err error) {
	for limit > 0 {
		ask := min(limit, MaxBatch)
		cursor := "0"
		if c := s.reapCursor.Load(); c != nil {
			cursor = *c
		}
		rp, err := s.run(ctx, reapScript, ask, cursor)
		if err != nil {
			return dues, err
		}
		taken, next := int(rp.int()), rp.string()
		chunk := rp.dues()
		if err := rp.done(); err != nil {
			return dues, err
		}
		s.reapCursor.Store(&next)
		dues = append(dues, chunk...)
		if taken < ask {
			break
		}
		limit -= taken
	}
	return dues, nil
}
