package persist

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// durability is what the writes of users wait for.
type durability struct {
	replicas int
	timeout  time.Duration
}

const defaultWaitTimeout = time.Second

func checkDurability(client redis.UniversalClient, d durability) error {
	var f faults
	if d.replicas < 0 {
		f.add(fmt.Errorf("%w: WaitReplicas is %d: use 0 (do not wait) or more", ErrInvalid, d.replicas))
	}
	if d.timeout < time.Millisecond {
		f.add(fmt.Errorf("%w: WaitTimeout is %v: use at least 1ms", ErrInvalid, d.timeout))
	}
	switch client.(type) {
	case *redis.Client, *redis.ClusterClient:
	default:
		if d.replicas > 0 {
			f.add(fmt.Errorf("%w: WaitReplicas is %d, but WAIT needs a connection of its own, which a %T does not give: "+
				"pass a *redis.Client or *redis.ClusterClient", ErrInvalid, d.replicas, client))
		}
	}
	return f.err()
}

// evalReplicated is eval, and waits until enough replicas have what it wrote. WAIT
// counts those that have the last write of its own connection, so both go over one.
func (s *shard) evalReplicated(ctx context.Context, sc *script, args []any) answer {
	conn, err := s.conn(ctx)
	if err != nil {
		return answer{err: err} // nothing was sent
	}
	defer conn.Close()
	a := s.evalOn(ctx, conn, sc, args)
	if a.err != nil {
		s.follow(ctx, a.err)
		return a
	}
	n, err := conn.Wait(ctx, s.wait.replicas, s.wait.timeout).Result()
	switch {
	case err != nil:
		a.shortfall = fmt.Errorf("%w: how many replicas have it is not known: %w", ErrNotReplicated, err)
	case n < int64(s.wait.replicas):
		a.shortfall = fmt.Errorf("%w: %d of %d replicas have it after %v", ErrNotReplicated, n, s.wait.replicas, s.wait.timeout)
	}
	return a
}

// conn is a connection of its own to the server that has the shard.
func (s *shard) conn(ctx context.Context) (*redis.Conn, error) {
	if c, ok := s.client.(*redis.ClusterClient); ok {
		node, err := c.MasterForKey(ctx, s.keys.due)
		if err != nil {
			return nil, err
		}
		return node.Conn(), nil
	}
	return s.client.(*redis.Client).Conn(), nil
}

// follow has a Cluster's client look where the slots are: when one has moved, which the
// client notices by itself, but not on a connection of its own; and when a server
// does not answer, whose replica may have taken over: the client would look after
// a minute. It looks in the background, and no more often than a few times a second.
func (s *shard) follow(ctx context.Context, err error) {
	if c, ok := s.client.(*redis.ClusterClient); ok && (isRedirection(err) || isSilence(err)) {
		c.ReloadState(ctx)
	}
}
