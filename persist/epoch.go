package persist

import (
	"context"
	"slices"
)

// Epoch raises the epoch of each shard, and tells whether one has lost writes since
// this store looked last: Redis was emptied, or restored from a copy, or has come back
// without the last that it had answered. What it lost is known to the order database
// alone. A loss is told once; lost is valid beside an error too, which is of another
// shard. Where several processes ask, one that was restored from an old copy may be
// raised beyond what the others saw before they ask: then only flushes show the loss.
//
// A store that has not looked before has nothing to compare with. A lane that was not
// used for a day, and whose session was forgotten meanwhile, may tell of a loss that
// was none.
func (r *Redis) Epoch(ctx context.Context) (lost bool, err error) {
	losses, err := onShards(r, func(s *shard) (bool, error) { return s.raise(ctx) })
	return slices.Contains(losses, true), err
}

func (s *shard) raise(ctx context.Context) (lost bool, err error) {
	before := s.epoch.Load()
	rp, err := s.run(ctx, epochScript)
	if err != nil {
		return false, err
	}
	epoch := rp.int()
	if err := rp.done(); err != nil {
		return false, err
	}
	if epoch <= before {
		s.epoch.Store(epoch)
		lost = true
	} else {
		s.epoch.CompareAndSwap(before, epoch) // else another call has seen one as good
	}
	return s.lost.Swap(false) || lost, nil
}
