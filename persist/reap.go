package persist

import "context"

// Reap takes back tasks that run with their lease over, at most limit of them, the
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
	var dues []Due
	for limit > 0 {
		ask := min(limit, MaxBatch)
		cursor := "0"
		if c := r.reapCursor.Load(); c != nil {
			cursor = *c
		}
		rp, err := r.run(ctx, reapScript, ask, cursor)
		if err != nil {
			return dues, err
		}
		taken, next := int(rp.int()), rp.string()
		chunk := rp.dues()
		if err := rp.done(); err != nil {
			return dues, err
		}
		r.reapCursor.Store(&next)
		dues = append(dues, chunk...)
		if taken < ask {
			break
		}
		limit -= taken
	}
	return dues, nil
}
