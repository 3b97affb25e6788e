package redistest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAReplicaHasWhatItsPrimaryHas(t *testing.T) {
	t.Parallel()
	s := Start(t)
	c := s.Client(t)
	ctx := bounded(t)
	require.NoError(t, c.Set(ctx, "before", "v", 0).Err())
	r := StartReplica(t, s)
	require.Equal(t, "v", r.Client(t).Get(ctx, "before").Val())
	require.NoError(t, c.Set(ctx, "after", "v", 0).Err())
	r.WaitSame(s)
	require.Equal(t, "v", r.Client(t).Get(ctx, "after").Val())
}

func TestAReplicaTakesNoWriteUntilItIsPromoted(t *testing.T) {
	t.Parallel()
	s := Start(t)
	r := StartReplica(t, s)
	c := r.Client(t)
	ctx := bounded(t)
	require.ErrorContains(t, c.Set(ctx, "k", "v", 0).Err(), "READONLY")
	r.Promote()
	require.NoError(t, c.Set(ctx, "k", "v", 0).Err())
	require.Zero(t, s.Client(t).Exists(ctx, "k").Val())
}

func TestTwoServersCanChangeTheirRoles(t *testing.T) {
	t.Parallel()
	s := Start(t)
	r := StartReplica(t, s)
	ctx := bounded(t)
	r.Promote()
	s.ReplicaOf(r)
	s.WaitLink()
	c := r.Client(t)
	require.NoError(t, c.Set(ctx, "k", "v", 0).Err())
	s.WaitSame(r)
	require.Equal(t, "v", s.Client(t).Get(ctx, "k").Val())
}

// A server that restarts has the role that it had, not the one that it began with.
func TestARestartedServerHasTheRoleThatItHad(t *testing.T) {
	t.Parallel()
	s := Start(t)
	r := StartReplica(t, s)
	ctx := bounded(t)
	r.Restart()
	r.WaitLink()
	require.ErrorContains(t, r.Client(t).Set(ctx, "k", "v", 0).Err(), "READONLY")
	r.Promote()
	r.Restart()
	require.NoError(t, r.Client(t).Set(ctx, "k", "v", 0).Err())
}

func TestAReplicaOutlivesItsPrimary(t *testing.T) {
	t.Parallel()
	s := Start(t)
	require.NoError(t, s.Client(t).Set(bounded(t), "k", "v", 0).Err())
	r := StartReplica(t, s)
	s.Kill()
	r.Promote()
	require.Equal(t, "v", r.Client(t).Get(bounded(t), "k").Val())
}

func TestAFailoverLosesNothing(t *testing.T) {
	t.Parallel()
	s := Start(t)
	r := StartReplica(t, s)
	ctx := bounded(t)
	c := s.Client(t)
	begun, written := make(chan struct{}), make(chan int64)
	go func() {
		var last int64
		for {
			if last == 1 {
				close(begun)
			}
			n, err := c.Incr(ctx, "k").Result()
			if err != nil {
				written <- last
				return
			}
			last = n
		}
	}()
	<-begun
	s.Failover(r)
	last := <-written // the next was refused
	got, err := r.Client(t).Get(ctx, "k").Int64()
	require.NoError(t, err)
	require.Equal(t, last, got)
	s.WaitLink()
	require.ErrorContains(t, c.Incr(ctx, "k").Err(), "READONLY")
}

func TestAClusterGoesOnWithAReplicaOfADeadMaster(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3)
	master := c.Nodes()[1]
	key := c.keyAt(master)
	client := c.Client(t)
	r := c.StartReplica(master)
	require.NoError(t, client.Set(bounded(t), key, "v", 0).Err())
	r.WaitSame(master)
	require.Equal(t, master, c.NodeOf(key))
	master.Kill()
	c.Failover(master, r)
	require.Equal(t, r, c.NodeOf(key))
	require.Equal(t, r, c.Nodes()[1])
	require.Equal(t, "v", r.Client(t).Get(bounded(t), key).Val())

	master.Restart() // it finds a successor, and follows it
	master.WaitLink()
	c.WaitReady()
	c.Failover(r, master)
	require.Equal(t, master, c.NodeOf(key))
	require.Equal(t, "v", master.Client(t).Get(bounded(t), key).Val())
}
