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
	fsync    bool // not before it is on the disks
	timeout  time.Duration
}

// How long a write waits where nothing else is said. With appendfsync everysec an fsync
// begins up to a second after the write, and takes its time.
const (
	defaultWaitTimeout  = time.Second
	defaultFsyncTimeout = 3 * time.Second
)

// wanted is what is to be waited for, with the defaults.
func (o Options) wanted() durability {
	d := durability{replicas: o.WaitReplicas, fsync: o.WaitFsync, timeout: o.WaitTimeout}
	switch {
	case d.timeout != 0:
	case d.fsync:
		d.timeout = defaultFsyncTimeout
	default:
		d.timeout = defaultWaitTimeout
	}
	return d
}

// any reports whether there is anything to wait for.
func (d durability) any() bool { return d.replicas > 0 || d.fsync }

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
		if d.any() {
			f.add(fmt.Errorf("%w: WaitReplicas is %d and WaitFsync %v, but WAIT needs a connection of its own, which a %T does not give: "+
				"pass a *redis.Client or *redis.ClusterClient", ErrInvalid, d.replicas, d.fsync, client))
		}
	}
	return f.err()
}

// evalDurable is eval, and waits until what it wrote is where it has to be. WAIT and WAITAOF
// look at the last write of their own connection, so both go over one.
func (s *shard) evalDurable(ctx context.Context, sc *script, args []any) answer {
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
	a.shortfall = s.wait.on(ctx, conn)
	return a
}

// on waits for the last write of conn.
func (d durability) on(ctx context.Context, conn *redis.Conn) (shortfall error) {
	if d.fsync {
		return d.onDisk(ctx, conn)
	}
	n, err := conn.Wait(ctx, d.replicas, d.timeout).Result()
	switch {
	case err != nil:
		return fmt.Errorf("%w: how many replicas have it is not known: %w", ErrNotReplicated, err)
	case n < int64(d.replicas):
		return fmt.Errorf("%w: %d of %d replicas have it after %v", ErrNotReplicated, n, d.replicas, d.timeout)
	}
	return nil
}

// onDisk waits until the server, and enough replicas, have the write in their append-only
// files, and these on their disks.
func (d durability) onDisk(ctx context.Context, conn *redis.Conn) (shortfall error) {
	n, err := conn.WaitAOF(ctx, 1, d.replicas, d.timeout).Result()
	switch {
	case err != nil:
		return fmt.Errorf("%w: whether it is on a disk is not known: %w", ErrNotReplicated, err)
	case len(n) != 2:
		return fmt.Errorf("%w: whether it is on a disk is not known: WAITAOF answered %v", ErrNotReplicated, n)
	case n[0] < 1:
		return fmt.Errorf("%w: after %v it is not on the disk of the server, and on that of %d of %d replicas", ErrNotReplicated, d.timeout, n[1], d.replicas)
	case n[1] < int64(d.replicas):
		return fmt.Errorf("%w: after %v it is on the disk of the server, but on that of %d of %d replicas", ErrNotReplicated, d.timeout, n[1], d.replicas)
	}
	return nil
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
