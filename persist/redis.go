package persist

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// Options are the optional parts of New. The zero value is good.
type Options struct {
	// Namespace keeps the tasks of several engines on one Redis apart. 1 to 64
	// letters, digits, or any of _ . : -; DefaultNamespace where empty.
	Namespace string

	// Logger gets the events redis_away and redis_back, each once per change.
	// nil: nothing is logged.
	Logger *slog.Logger
}

// Redis is the store. Its methods are safe for concurrent use. Its goroutines end
// with the calls that they work for, or soon after: see "A call that hangs" in the
// package documentation. The client is the caller's.
type Redis struct {
	client  redis.UniversalClient
	keys    keys
	backoff backoff
	away    presence

	user, work *lane // of what users and operators write; of what an executor does

	// reapCursor is where Reap goes on in its round over the records. Any value
	// is right; it only says which are looked at next.
	reapCursor atomic.Pointer[string]
}

var _ Store = (*Redis)(nil)

// New returns the store of one namespace. It does not talk to Redis yet: Check
// does. Every fault is reported at once, and wraps ErrInvalid: no client, a
// *redis.Ring (it spreads keys over servers that know nothing of each other, and
// loses them when one is away), or a bad Namespace.
func New(client redis.UniversalClient, opts Options) (*Redis, error) {
	if opts.Namespace == "" {
		opts.Namespace = DefaultNamespace
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if err := errors.Join(checkClient(client), checkNamespace(opts.Namespace)); err != nil {
		return nil, err
	}
	r := &Redis{
		client:  client,
		keys:    shardKeys(opts.Namespace),
		backoff: defaultBackoff,
		away:    presence{log: opts.Logger},
	}
	r.user, r.work = newLane(r, "flush of users"), newLane(r, "flush of work")
	return r, nil
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

// Close waits until no write is under way, ends the store's sessions, and takes them
// out of Redis; but for one of which a late copy of a write may still arrive. What is
// not taken out stays until a Check in this namespace finds that it was not used for a
// day: an entry for each lane, as large as the answer of its last flush. The store may
// be used after Close.
func (r *Redis) Close(ctx context.Context) error {
	args := []any{"hdel", r.keys.sessions}
	for _, l := range []*lane{r.user, r.work} {
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
	a := r.try(ctx, func() answer { return send(ctx, r.client, args) })
	if a.cut {
		a.err = ctx.Err()
	}
	if a.err != nil {
		return fmt.Errorf("persist: close: %w", a.err)
	}
	return nil
}
