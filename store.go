package orderwheel

import (
	"context"

	"github.com/orderwheel/orderwheel/persist"
)

// store is what the engine needs of the persistence: a *persist.Redis.
type store interface {
	persist.Store

	Shards() int
	ShardOf(id string) int
	Problems() []string // what is wrong with it now, in words
	Close(ctx context.Context) error
}

var _ store = (*persist.Redis)(nil)
