package persist

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// How many shards there are by default. One ZSet is enough for what one server
// can do; on a Cluster the shards spread over its servers.
const (
	shardsOfOne     = 1
	shardsOfCluster = 16

	// MaxShards bounds Options.Shards.
	MaxShards = 1024
)

// The lanes of a shard.
const (
	users = iota // what users and operators write
	runs         // claims, and what becomes of them but acks
	acks
	lanes
)

// shard is a part of the tasks: those whose ids the hash gives it. Its keys stand
// under one hash tag, so on one server of a Cluster. Shards know nothing of each
// other: one whose server is away holds up none of the others.
type shard struct {
	number  int
	name    string // for errors; empty where it is the only one
	client  redis.UniversalClient
	cluster bool // client follows redirections
	keys    keys
	backoff backoff
	away    presence
	wait    durability

	lanes [lanes]*lane

	epoch atomic.Int64 // as last seen; 0: never
	lost  atomic.Bool  // a flush has shown that writes were lost

	overloaded atomic.Pointer[time.Time] // when a new task was refused last; nil: never

	// reapCursor is where Reap goes on in its round over the records. Any value
	// is right; it only says which are looked at next.
	reapCursor atomic.Pointer[string]
}

func newShard(client redis.UniversalClient, opts Options, number int) *shard {
	_, cluster := client.(*redis.ClusterClient)
	s := &shard{
		number:  number,
		client:  client,
		cluster: cluster,
		keys:    shardKeys(opts.Namespace, number),
		backoff: defaultBackoff,
		away:    presence{log: opts.Logger},
	}
	if opts.Shards > 1 {
		s.name = fmt.Sprintf("shard %d", number)
		s.away.log = opts.Logger.With(slog.Int("shard", number))
	}
	s.wait = opts.wanted()
	for i, op := range [lanes]string{users: "flush of users", runs: "flush of runs", acks: "flush of acks"} {
		s.lanes[i] = newLane(s, op)
	}
	s.lanes[users].durable = s.wait.any()
	return s
}

// close ends the sessions of the shard's lanes, and takes out of Redis what can be
// taken.
func (s *shard) close(ctx context.Context) error {
	args := []any{"hdel", s.keys.sessions}
	for _, l := range s.lanes {
		forget, err := l.finish(ctx)
		if err != nil {
			return fmt.Errorf("persist: close: writes are under way: %w", err)
		}
		if forget != "" {
			args = append(args, forget)
		}
	}
	if len(args) == 2 {
		return nil
	}
	a := s.try(ctx, func() answer { return send(ctx, s.client, args) })
	if a.cut {
		a.err = ctx.Err()
	}
	if a.err != nil {
		return fmt.Errorf("persist: close: %w", a.err)
	}
	return nil
}

// ShardOf is the shard that has an id, from 0 on: FNV-1a, 32 bits, modulo their
// number. Another rule would not find again what is stored.
func (r *Redis) ShardOf(id string) int {
	if len(r.shards) == 1 {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return int(h.Sum32() % uint32(len(r.shards)))
}

// part is what a batch has for one shard.
type part struct {
	shard  *shard
	places []int // in the batch, ascending
}

// split splits a batch of n by the shards of its ids.
func (r *Redis) split(n int, id func(i int) string) []part {
	if n == 0 {
		return nil
	}
	places := make([][]int, len(r.shards))
	for i := range n {
		s := r.ShardOf(id(i))
		places[s] = append(places[s], i)
	}
	parts := make([]part, 0, min(n, len(r.shards)))
	for s, p := range places {
		if len(p) > 0 {
			parts = append(parts, part{r.shards[s], p})
		}
	}
	return parts
}

// atOnce calls do for 0 to n-1, all at once, and returns when all have.
func atOnce(n int, do func(i int)) {
	if n == 1 {
		do(0)
		return
	}
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// onShards calls do for every shard, all at once, and returns the answers in
// their order, and the errors.
func onShards[A any](r *Redis, do func(s *shard) (A, error)) ([]A, error) {
	answers, errs := make([]A, len(r.shards)), make([]error, len(r.shards))
	atOnce(len(r.shards), func(i int) { answers[i], errs[i] = do(r.shards[i]) })
	return answers, join(errs)
}
