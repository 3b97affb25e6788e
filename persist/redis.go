package persist

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/redis/go-redis/v9"
)

// Options are the optional parts of New. The zero value is good.
type Options struct {
	// Namespace keeps the tasks of several engines on one Redis apart. 1 to 64
	// letters, digits, or any of _ . : -; DefaultNamespace where empty.
	Namespace string

	// Shards is over how many parts the tasks are spread, each under keys of its
	// own. 0: 16 with a *redis.ClusterClient, else 1; at most MaxShards. It cannot
	// be changed while tasks are stored: Check compares it with what was stored.
	Shards int

	// WaitReplicas is how many replicas must have a write of Schedule, Cancel, Requeue or
	// Discard before it is answered (WAIT): else, after WaitTimeout (1s where it is
	// 0), the error is ErrNotReplicated. So that a failover does not lose it; claims
	// and their ends do not wait, since what is lost of them runs again. 0: none.
	WaitReplicas int
	WaitTimeout  time.Duration

	// WaitFsync has these writes wait until they are on the disk of the server, and on that
	// of WaitReplicas replicas, too (WAITAOF), so that a crash loses none of them. It needs
	// Redis 7.2 and appendonly yes. With appendfsync everysec a write then takes up to
	// a second, and a shard takes MaxBatch ids in that time, so ask many at once; with always
	// it takes no longer than without. WaitTimeout is 3s then, where it is 0.
	WaitFsync bool

	// MaxPending is how many tasks may be due, now or later; a Schedule of a new one more
	// is refused with ErrOverloaded, and of one that is due or running it is not. What
	// has been accepted is never refused its way: retries, successors, Ensure and Requeue
	// may go beyond. Each shard takes its part of MaxPending, rounded up: of several, one
	// may be full a little before the others. All stores of a namespace should have the
	// same. 0: there is no limit.
	MaxPending int

	// Logger gets the events redis_away and redis_back, each once per change of a
	// shard. nil: nothing is logged.
	Logger *slog.Logger
}

// Redis is the store. Its methods are safe for concurrent use. Its goroutines end
// with the calls that they work for, or soon after: see "A call that hangs" in the
// package documentation. The client is the caller's.
type Redis struct {
	client redis.UniversalClient
	shards []*shard

	maxPending int // 0: there is no limit
}

var _ Store = (*Redis)(nil)

// New returns the store of one namespace. It does not talk to Redis yet: Check
// does. Every fault is reported at once, and wraps ErrInvalid: no client, a
// *redis.Ring (it spreads keys over servers that know nothing of each other, and
// loses them when one is away), a bad Namespace or number of Shards.
func New(client redis.UniversalClient, opts Options) (*Redis, error) {
	if opts.Namespace == "" {
		opts.Namespace = DefaultNamespace
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	err := errors.Join(checkClient(client), checkNamespace(opts.Namespace), checkShards(opts.Shards), checkMaxPending(opts.MaxPending),
		checkDurability(client, opts.wanted()))
	if err != nil {
		return nil, err
	}
	if opts.Shards == 0 {
		opts.Shards = defaultShards(client)
	}
	r := &Redis{client: client, maxPending: opts.MaxPending}
	for n := range opts.Shards {
		r.shards = append(r.shards, newShard(client, opts, n))
	}
	return r, nil
}

func defaultShards(client redis.UniversalClient) int {
	if _, ok := client.(*redis.ClusterClient); ok {
		return shardsOfCluster
	}
	return shardsOfOne
}

func checkClient(client redis.UniversalClient) error {
	if v := reflect.ValueOf(client); client == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return fmt.Errorf("%w: client is nil: pass a *redis.Client or *redis.ClusterClient", ErrInvalid)
	}
	if _, ok := client.(*redis.Ring); ok {
		return fmt.Errorf("%w: client is a *redis.Ring, which moves keys when a server is away: "+
			"pass a *redis.Client (single or Sentinel) or *redis.ClusterClient", ErrInvalid)
	}
	return nil
}

func checkNamespace(namespace string) error {
	if !namespaceRE.MatchString(namespace) {
		return fmt.Errorf("%w: Namespace is %q: use 1 to 64 letters, digits, or any of _ . : -", ErrInvalid, namespace)
	}
	return nil
}

func checkShards(n int) error {
	if n < 0 || n > MaxShards {
		return fmt.Errorf("%w: Shards is %d: use 1 to %d, or 0 for the default", ErrInvalid, n, MaxShards)
	}
	return nil
}

// Shards is over how many parts the tasks are spread.
func (r *Redis) Shards() int { return len(r.shards) }

// Close waits until no write is under way, ends the store's sessions, and takes them
// out of Redis; but for one of which a late copy of a write may still arrive. What is
// not taken out stays until a Check in this namespace finds that it was not used for a
// day: an entry for each lane, as large as the answer of its last flush. The store may
// be used after Close.
func (r *Redis) Close(ctx context.Context) error {
	_, err := onShards(r, func(s *shard) (struct{}, error) { return struct{}{}, s.close(ctx) })
	return err
}
