package persist_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// Real primaries that fail over to real replicas.

// primary is the server that clients are sent to, as by a name that points elsewhere after
// a failover. Connections that are there stay where they are.
type primary struct {
	atomic.Pointer[redistest.Server]
}

func (p *primary) client(t testing.TB) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{
		ContextTimeoutEnabled: true,
		Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, p.Load().Addr())
		},
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Case 84, whole: the primary is demoted while tasks are acknowledged, and a replica
// promoted. Each ack is settled, and kept.
func TestAcksOutliveAFailover(t *testing.T) {
	t.Parallel()
	const tasks, batch = 400, 5
	old := redistest.Start(t)
	successor := redistest.StartReplica(t, old)
	var p primary
	p.Store(old)
	// Until a call was refused by the old one, clients are sent there.
	store, e := watch(t, p.client(t), func() { p.Store(successor) })
	b := bed{Redis: store, client: successor.Client(t)}
	all := ids("x", tasks)
	b.scheduled(t, past, all...)
	b.claimed(t, "tok", time.Hour, all...)

	var acked atomic.Int64
	feed := make(chan []string)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for list := range feed {
				leases := make([]persist.Lease, len(list))
				for i, id := range list {
					leases[i] = persist.Lease{ID: id, Token: "tok"}
				}
				settlements, err := store.Ack(bounded(t), leases)
				if err != nil {
					t.Error(err)
				}
				for _, s := range settlements {
					if s.State != persist.Settled {
						t.Errorf("the ack of %q answered %v", s.ID, s.State)
					}
					acked.Add(1)
				}
			}
		})
	}
	during, after := all[:3*tasks/4], all[3*tasks/4:]
	var feeder sync.WaitGroup
	feeder.Go(func() {
		for list := range slices.Chunk(during, batch) {
			feed <- list
		}
	})
	old.Failover(successor)
	for list := range slices.Chunk(after, batch) { // surely refused at first
		feed <- list
	}
	feeder.Wait()
	close(feed)
	wg.Wait()
	require.EqualValues(t, tasks, acked.Load())
	requireOneOutage(t, e)
	b.requireEmpty(t)
	old.WaitLink()
	bed{client: old.Client(t)}.requireEmpty(t)
}

// Case 85: one of three Sentinels takes connections and never answers.
func TestASentinelThatHangsIsNoOutage(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	sentinels := redistest.StartSentinels(t, 3, server, 0)
	for _, hung := range sentinels.Nodes() {
		hung.Pause()
		store := newStore(t, sentinels.Client(t))
		_, err := store.Check(bounded(t))
		require.NoError(t, err)
		require.NoError(t, store.Schedule(bounded(t), []persist.Due{{ID: "x", DueMS: past}}))
		outcomes, err := store.Cancel(bounded(t), []string{"x"})
		require.NoError(t, err)
		require.Equal(t, []persist.CancelOutcome{persist.Cancelled}, outcomes)
		hung.Resume()
	}
}

// What the replica has got is kept when the primary dies; the calls wait for the Sentinels.
func TestTasksOutliveTheirPrimary(t *testing.T) {
	t.Parallel()
	old := redistest.Start(t)
	successor := redistest.StartReplica(t, old)
	sentinels := redistest.StartSentinels(t, 3, old, 1)
	b := bed{Redis: newStore(t, sentinels.Client(t)), client: successor.Client(t)}
	all := ids("x", 100)
	running, due := all[:50], all[50:]
	b.scheduled(t, past, all...)
	b.claimed(t, "tok", time.Hour, running...)
	successor.WaitSame(old)
	old.Kill()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	leases := make([]persist.Lease, len(running))
	for i, id := range running {
		leases[i] = persist.Lease{ID: id, Token: "tok"}
	}
	settlements, err := b.Ack(ctx, leases)
	require.NoError(t, err)
	for _, s := range settlements {
		require.Equal(t, persist.Settled, s.State, s.ID)
	}
	for _, c := range b.claimed(t, "tok2", time.Hour, due...) {
		require.Equal(t, 1, c.Attempt)
	}
	require.Len(t, b.stored(t).Running, len(due), "on the successor")
}
