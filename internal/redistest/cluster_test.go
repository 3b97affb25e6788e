package redistest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// bounded is a context that ends only when something hangs.
func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// keyAt returns a key whose slot s has.
func (c *Cluster) keyAt(s *Server) string {
	for i := 0; ; i++ {
		if key := fmt.Sprint("key", i); c.NodeOf(key) == s {
			return key
		}
	}
}

// keyCases have hash tags of every kind.
var keyCases = []string{
	"", "a", "{", "}", "{}", "{a}", "x{a}y", "{a}{b}", "{{a}}", "{}{a}", "a{b", "a}b{c}d", "{orderwheel:0}:due",
	"\x00", "\xff\xfe{\x00}\x80", "123456789", "{ }",
}

func TestTheSlotOfAKeyIsThatOfRedis(t *testing.T) {
	t.Parallel()
	c := Start(t, "--cluster-enabled", "yes", "--cluster-port", fmt.Sprint(freePort(t))).Client(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	keys := slices.Clone(keyCases)
	for range 200 {
		key := make([]byte, rnd.IntN(20))
		for i := range key {
			key[i] = "{}ab\x00\xff"[rnd.IntN(6)]
		}
		keys = append(keys, string(key))
	}
	for _, key := range keys {
		slot, err := c.ClusterKeySlot(t.Context(), key).Result()
		require.NoError(t, err)
		require.EqualValues(t, slot, Slot(key), "%q", key)
	}
}

func TestAClusterKeepsEachKeyOnTheNodeOfItsSlot(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3)
	client := c.Client(t)
	ctx := bounded(t)
	count := map[*Server]int{}
	for i := range 300 {
		key := fmt.Sprint("key", i)
		require.NoError(t, client.Set(ctx, key, i, 0).Err())
		count[c.NodeOf(key)]++
	}
	require.Len(t, c.Nodes(), 3)
	for _, s := range c.Nodes() {
		require.NotZero(t, count[s])
		size, err := s.Client(t).DBSize(ctx).Result()
		require.NoError(t, err)
		require.EqualValues(t, count[s], size)
	}
}

func TestAClusterOfOneNodeIsACluster(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 1)
	require.NoError(t, c.Client(t).Set(bounded(t), "k", "v", 0).Err())
	require.Equal(t, c.Nodes()[0], c.NodeOf("k"))
}

func TestTheOtherNodesServeWhileOneIsDeadAndItComesBackAsItWas(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3, "--appendonly", "yes", "--appendfsync", "always")
	client := c.Client(t)
	ctx := bounded(t)
	nodes := c.Nodes()
	for i, s := range nodes {
		require.NoError(t, client.Set(ctx, c.keyAt(s), i, 0).Err())
	}
	id := nodes[1].nodeID()
	nodes[1].Kill()
	for _, s := range []*Server{nodes[0], nodes[2]} {
		require.NoError(t, client.Incr(ctx, c.keyAt(s)).Err())
	}
	require.Error(t, client.Get(ctx, c.keyAt(nodes[1])).Err())

	nodes[1].Restart()
	c.WaitReady()
	require.Equal(t, id, nodes[1].nodeID())
	v, err := client.Get(bounded(t), c.keyAt(nodes[1])).Result()
	require.NoError(t, err)
	require.Equal(t, "1", v)
}

func TestTheOtherNodesServeWhileOneIsPaused(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3)
	client := c.Client(t)
	ctx := bounded(t)
	nodes := c.Nodes()
	for _, s := range nodes {
		require.NoError(t, client.Set(ctx, c.keyAt(s), "v", 0).Err())
	}
	nodes[0].Pause()
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	require.Error(t, client.Get(short, c.keyAt(nodes[0])).Err())
	require.Equal(t, "v", client.Get(ctx, c.keyAt(nodes[1])).Val())
	require.Equal(t, "v", client.Get(ctx, c.keyAt(nodes[2])).Val())
	nodes[0].Resume()
	c.WaitReady()
	require.Equal(t, "v", client.Get(bounded(t), c.keyAt(nodes[0])).Val())
}

// The ports that a Cluster had are free when its test has ended.
func TestAClusterEndsWithItsTest(t *testing.T) {
	t.Parallel()
	var ports []int
	t.Run("cluster", func(t *testing.T) {
		for _, s := range StartCluster(t, 3).Nodes() {
			ports = append(ports, s.port, s.bus)
		}
		for _, port := range ports {
			require.NoError(t, dials(port))
		}
	})
	require.Len(t, ports, 6)
	for _, port := range ports {
		require.Error(t, dials(port))
	}
}

func dials(port int) error {
	conn, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
	if err != nil {
		return err
	}
	return conn.Close()
}

func TestAMovedSlotIsServedByItsNewNode(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3)
	client := c.Client(t)
	ctx := bounded(t)
	from, to := c.Nodes()[0], c.Nodes()[2]
	tag := c.keyAt(from)
	for i := range 250 { // more than are moved at a time
		require.NoError(t, client.Set(ctx, fmt.Sprintf("{%s}:%d", tag, i), i, 0).Err())
	}
	c.MoveSlot(Slot(tag), to)
	require.Equal(t, to, c.NodeOf(tag))
	require.ErrorContains(t, from.Client(t).Get(ctx, tag).Err(), fmt.Sprintf("MOVED %d %s", Slot(tag), to.Addr()))
	require.EqualValues(t, 250, to.Client(t).DBSize(ctx).Val())
	require.Equal(t, "7", client.Get(ctx, "{"+tag+"}:7").Val(), "a client that knew the old one")
	c.WaitReady() // they agree

	c.MoveSlot(Slot(tag), from)
	require.Equal(t, from, c.NodeOf(tag))
	require.Equal(t, "8", client.Get(ctx, "{"+tag+"}:8").Val())
	require.EqualValues(t, 0, to.Client(t).DBSize(ctx).Val())
}

func TestASlotHalfWayAsksAndSaysTryAgain(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 2)
	client := c.Client(t)
	ctx := bounded(t)
	from, to := c.Nodes()[0], c.Nodes()[1]
	tag := c.keyAt(from)
	one, two, three := "{"+tag+"}:1", "{"+tag+"}:2", "{"+tag+"}:3"
	for _, key := range []string{one, two, three} {
		require.NoError(t, client.Set(ctx, key, key, 0).Err())
	}
	m := c.BeginMove(Slot(tag), to)
	old := from.Client(t)
	require.Equal(t, one, old.Get(ctx, one).Val(), "no key has moved yet")
	require.ErrorContains(t, old.Get(ctx, "{"+tag+"}:4").Err(), "ASK "+fmt.Sprint(Slot(tag))+" "+to.Addr())

	m.Keys(one)
	require.ErrorContains(t, old.Get(ctx, one).Err(), "ASK")
	require.ErrorContains(t, to.Client(t).Get(ctx, one).Err(), "MOVED", "it has not been asked")
	require.Equal(t, one, client.Get(ctx, one).Val(), "a client of the Cluster asks")
	require.ErrorContains(t, old.MGet(ctx, one, two).Err(), "TRYAGAIN")
	require.Equal(t, from, c.NodeOf(tag), "it has it until the end")

	require.Equal(t, 1, m.Some(1))
	m.End()
	require.Equal(t, to, c.NodeOf(tag))
	got, err := client.MGet(ctx, one, two, three).Result()
	require.NoError(t, err)
	require.Equal(t, []any{one, two, three}, got)
}

func TestNoWriteIsLostWhileASlotMoves(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 3)
	client := c.Client(t)
	ctx := bounded(t)
	tag := c.keyAt(c.Nodes()[0])
	var wg sync.WaitGroup
	var stop atomic.Bool
	var written [4]int64
	for i := range written {
		key := fmt.Sprintf("{%s}:%d", tag, i)
		wg.Go(func() {
			for !stop.Load() {
				n, err := client.Incr(ctx, key).Result()
				if redis.HasErrorPrefix(err, "ASK") || redis.HasErrorPrefix(err, "MOVED") {
					continue // the client follows three of them, and no more; nothing was executed
				}
				if err != nil {
					t.Errorf("%s: %v", key, err)
					return
				}
				if written[i]++; n != written[i] {
					t.Errorf("%s is %d after %d writes", key, n, written[i])
					return
				}
			}
		})
	}
	for i := range 9 {
		c.MoveSlot(Slot(tag), c.Nodes()[(i+1)%3])
	}
	stop.Store(true)
	wg.Wait()
}

func TestANodeThatWasAwayHearsOfAMove(t *testing.T) {
	t.Parallel()
	c := StartCluster(t, 4)
	nodes := c.Nodes()
	tag := c.keyAt(nodes[0])
	nodes[3].Kill()
	c.MoveSlot(Slot(tag), nodes[1])
	nodes[3].Restart()
	c.WaitReady()
	require.ErrorContains(t, nodes[3].Client(t).Get(bounded(t), tag).Err(), "MOVED "+fmt.Sprint(Slot(tag))+" "+nodes[1].Addr())
}
