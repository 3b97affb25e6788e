package persist_test

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/persist/persisttest"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// A real Redis Cluster of three nodes. Case 138: miniredis says of every key that it is in
// slot 163, and is one node.

// clustered is a store on a Cluster with a way behind its back.
type clustered struct {
	*persist.Redis
	cluster   *redistest.Cluster
	namespace string
}

func setupCluster(t testing.TB, c *redistest.Cluster, namespace string) clustered {
	t.Helper()
	s, err := persist.New(c.Client(t), persist.Options{Namespace: namespace})
	require.NoError(t, err)
	return clustered{Redis: s, cluster: c, namespace: namespace}
}

// shards is how many a namespace has on a Cluster where nobody asks for another number.
const shards = 16

func shardOf(id string) int { return persist.ShardOf(id, shards) }

func (b clustered) key(shard int, name string) string {
	return fmt.Sprintf("{%s:%d}:%s", b.namespace, shard, name)
}

// spread schedules ids and tells which of them stand on which node.
func (b clustered) spread(t testing.TB, ms int64, ids ...string) map[*redistest.Server][]string {
	t.Helper()
	require.NoError(t, b.Schedule(bounded(t), dues(ids, ms)))
	client := b.cluster.Client(t)
	at := map[*redistest.Server][]string{}
	n := 0
	for shard := range shards {
		key := b.key(shard, "due")
		members, err := client.ZRange(bounded(t), key, 0, -1).Result()
		require.NoError(t, err)
		require.NotEmpty(t, members, "nothing is in %s", key)
		at[b.cluster.NodeOf(key)] = append(at[b.cluster.NodeOf(key)], members...)
		n += len(members)
	}
	require.Equal(t, len(ids), n)
	require.Len(t, at, len(b.cluster.Nodes()))
	return at
}

// tally counts what the nodes of a Cluster have answered.
type tally []*redis.Client

func tallyOf(t testing.TB, c *redistest.Cluster) (list tally) {
	t.Helper()
	for _, s := range c.Nodes() {
		list = append(list, s.Client(t))
	}
	return list
}

// errors counts the replies of all nodes that begin with a code.
func (list tally) errors(t testing.TB, code string) (n int) {
	t.Helper()
	re := regexp.MustCompile(`errorstat_` + code + `:count=(\d+)`)
	for _, client := range list {
		info, err := client.Info(context.Background(), "errorstats").Result()
		require.NoError(t, err)
		if m := re.FindStringSubmatch(info); m != nil {
			count, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			n += count
		}
	}
	return n
}

// noCrossSlot fails if a command ever had keys of several slots.
func (list tally) noCrossSlot(t testing.TB) {
	t.Helper()
	require.Zero(t, list.errors(t, "CROSSSLOT"))
}

// Cases 76 and 138: every script touches keys of one slot only, and says which. One Cluster
// for all: each bed has a namespace of its own.
func TestConformanceOfCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, "--appendonly", "yes", "--appendfsync", "everysec")
	replies := tallyOf(t, c)
	t.Cleanup(func() { replies.noCrossSlot(t) })
	var beds atomic.Int64
	persisttest.Run(t, func(t *testing.T) persisttest.Bed {
		namespace := fmt.Sprintf("bed%d", beds.Add(1))
		open := func(t *testing.T) persist.Store { return setupCluster(t, c, namespace) }
		return persisttest.Bed{Store: open(t), Owner: open, Shard: shardOf}
	})
}

func TestTasksOfAClusterAreSpreadOverItsNodes(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3)
	one, two := setupCluster(t, c, "one"), setupCluster(t, c, "two")
	all := ids("x", 1000)
	for _, theirs := range one.spread(t, past, all...) {
		require.Greater(t, len(theirs), 100)
	}
	two.spread(t, future, all...)

	// Two namespaces know nothing of each other.
	got, err := one.Cancel(bounded(t), all)
	require.NoError(t, err)
	require.NotContains(t, got, persist.NotFound)
	got, err = one.Cancel(bounded(t), all)
	require.NoError(t, err)
	require.NotContains(t, got, persist.Cancelled)
	d, err := two.Depth(bounded(t))
	require.NoError(t, err)
	require.Equal(t, persist.Depth{Due: 1000}, d)
	tallyOf(t, c).noCrossSlot(t)
}

// What a hash tag might make of an id does not matter: it is no key.
func TestIDsThatLookLikeHashTagsAreSpreadLikeOthers(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3)
	b := setupCluster(t, c, "odd")
	var odd []string
	for i := range 300 {
		odd = append(odd, fmt.Sprintf("{a}%d", i), fmt.Sprintf("{odd:0}:due\x00%d", i), fmt.Sprintf("}{ \xff%d", i))
	}
	odd = append(odd, "{", "}", "{}", "\x00", " ", strings.Repeat("{", persist.MaxIDLen))
	b.spread(t, past, odd...)
	got, err := b.Claim(bounded(t), "tok", odd, time.Hour, 0)
	require.NoError(t, err)
	for i, claim := range got.Claims {
		require.Equal(t, odd[i], claim.ID)
		require.Equal(t, persist.Claimed, claim.State, "%q", claim.ID)
	}
	requireSettled(t, b, "tok", odd)
	tallyOf(t, c).noCrossSlot(t)
}

func leasesOf(token string, ids []string) []persist.Lease {
	leases := make([]persist.Lease, len(ids))
	for i, id := range ids {
		leases[i] = persist.Lease{ID: id, Token: token}
	}
	return leases
}

// A slot moves while its tasks are written: calls meet MOVED, ASK and TRYAGAIN, and
// each is executed once.
func TestASlotThatMovesLosesNothingAndDoesNothingTwice(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3)
	replies := tallyOf(t, c)
	b := setupCluster(t, c, "move")
	b.spread(t, future, ids("still", 1000)...) // so that each key has something to move
	var wg sync.WaitGroup
	var stop atomic.Bool
	var runs atomic.Int64
	for w := range 4 {
		store := setupCluster(t, c, "move")
		wg.Go(func() {
			for n := 0; !stop.Load(); n++ {
				if err := fourSteps(t, store, fmt.Sprintf("tok%d-%d", w, n), ids(fmt.Sprintf("w%d-%d", w, n), 40)); err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				runs.Add(1)
			}
		})
	}
	met := func(code string, before int) { // until a call has met it
		for ctx := bounded(t); replies.errors(t, code) == before && !t.Failed(); {
			require.NoError(t, ctx.Err(), "nobody was told %s", code)
		}
	}
	idle := setupCluster(t, c, "move") // knows where the slots are at first
	_, err := idle.Depth(bounded(t))
	require.NoError(t, err)
	nodes := c.Nodes()
	for shard := range shards {
		slot := redistest.Slot(b.key(shard, "due"))
		from := slices.Index(nodes, c.NodeOf(b.key(shard, "due")))
		tryagain, ask := replies.errors(t, "TRYAGAIN"), replies.errors(t, "ASK")
		m := c.BeginMove(slot, nodes[(from+1)%3])
		if shard%2 == 0 {
			m.Keys(b.key(shard, "due"))
			met("TRYAGAIN", tryagain)
		} else {
			for m.Some(10) > 0 {
			}
			met("ASK", ask)
		}
		m.End()
	}
	stop.Store(true)
	wg.Wait()
	require.NotZero(t, runs.Load())
	moved := replies.errors(t, "MOVED")
	require.NoError(t, fourSteps(t, idle, "idle", ids("idle", 200)))
	require.Greater(t, replies.errors(t, "MOVED"), moved)
	d, err := b.Depth(bounded(t))
	require.NoError(t, err)
	require.Equal(t, persist.Depth{Due: 1000}, d, "only what nobody touched")
	replies.noCrossSlot(t)
}

// fourSteps schedules tasks, runs each twice and checks each answer: a write that was lost
// or applied twice shows in the next.
func fourSteps(t testing.TB, store persist.Store, token string, ids []string) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := store.Schedule(ctx, dues(ids, past)); err != nil {
		return err
	}
	for attempt := 1; attempt <= 2; attempt++ {
		got, err := store.Claim(ctx, fmt.Sprint(token, "-", attempt), ids, time.Hour, 0)
		if err != nil {
			return err
		}
		var retries []persist.Retry
		for i, claim := range got.Claims {
			if want := (persist.Claim{ID: ids[i], State: persist.Claimed, Attempt: attempt, FirstDueMS: past}); claim != want {
				return fmt.Errorf("the claim answered %+v, want %+v", claim, want)
			}
			retries = append(retries, persist.Retry{Lease: persist.Lease{ID: claim.ID, Token: fmt.Sprint(token, "-", attempt)}, DueMS: past + 1})
		}
		if attempt == 2 {
			break
		}
		settlements, err := store.Retry(ctx, retries)
		if err != nil {
			return err
		}
		for i, s := range settlements {
			if want := (persist.Settlement{ID: ids[i], State: persist.Scheduled, DueMS: past + 1}); s != want {
				return fmt.Errorf("the retry answered %+v, want %+v", s, want)
			}
		}
	}
	settlements, err := store.Ack(ctx, leasesOf(fmt.Sprint(token, "-2"), ids))
	if err != nil {
		return err
	}
	for i, s := range settlements {
		if want := (persist.Settlement{ID: ids[i], State: persist.Settled}); s != want {
			return fmt.Errorf("the ack answered %+v, want %+v", s, want)
		}
	}
	return nil
}

// A node that is away delays the tasks of its shards, and no others.
func TestADeadNodeDelaysOnlyItsOwnTasks(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]struct{ away, back func(*redistest.Server) }{
		"killed": {(*redistest.Server).Kill, (*redistest.Server).Restart},
		"paused": {(*redistest.Server).Pause, (*redistest.Server).Resume},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := redistest.StartCluster(t, 3, "--appendonly", "yes", "--appendfsync", "always")
			b := setupCluster(t, c, "dead")
			all := ids("x", 600)
			at := b.spread(t, past, all...)
			dead := c.Nodes()[1]
			theirs, probe := at[dead][1:], at[dead][0]
			others := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return slices.Contains(at[dead], id) })
			var wentAway atomic.Bool
			b.Redis, _ = watchCluster(t, c, "dead", func() { wentAway.Store(true) })
			_, err := b.Claim(bounded(t), "none", []string{"none"}, time.Hour, 0) // it knows the Cluster
			require.NoError(t, err)
			how.away(dead)

			// A call for them waits, and is not lost.
			type answer struct {
				persist.Claims
				error
			}
			waits := make(chan answer, 1)
			go func() {
				got, err := b.Claim(t.Context(), "tok", theirs, time.Hour, 0)
				waits <- answer{got, err}
			}()
			// One in a batch with others has no answer; the others have theirs.
			mixed := append(slices.Clone(others[:20]), probe)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			got, err := b.Claim(ctx, "probe", mixed, time.Hour, 0)
			cancel()
			require.ErrorIs(t, err, persist.ErrRetryable)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, []int{20}, persist.Missing(err, len(mixed)), "%v", err)
			requireFirstRun(t, got.Claims[:20])
			requireSettled(t, b, "probe", mixed[:20])

			// The others are run meanwhile, all of them.
			got, err = b.Claim(bounded(t), "tok", others[20:], time.Hour, 0)
			require.NoError(t, err)
			requireFirstRun(t, got.Claims)
			requireSettled(t, b, "tok", others[20:])
			for ctx := bounded(t); !wentAway.Load() && name == "killed"; runtime.Gosched() {
				require.NoError(t, ctx.Err(), "it is not said that a part of Redis is away")
			}
			require.Empty(t, waits)

			how.back(dead)
			select {
			case a := <-waits:
				require.NoError(t, a.error)
				requireFirstRun(t, a.Claims.Claims)
			case <-time.After(time.Minute):
				t.Fatal("the call does not end though the node is back")
			}
			// Whether the call that was given up was executed or not, it is the same claim.
			got, err = b.Claim(bounded(t), "probe", []string{probe}, time.Hour, 0)
			require.NoError(t, err)
			requireFirstRun(t, got.Claims)
			requireSettled(t, b, "probe", []string{probe})
			requireSettled(t, b, "tok", theirs)
			d, err := b.Depth(bounded(t))
			require.NoError(t, err)
			require.Zero(t, d)
		})
	}
}

// requireFirstRun fails unless all are claimed, for the first time.
func requireFirstRun(t testing.TB, claims []persist.Claim) {
	t.Helper()
	for _, claim := range claims {
		require.Equal(t, persist.Claim{ID: claim.ID, State: persist.Claimed, Attempt: 1, FirstDueMS: past}, claim)
	}
}

// requireSettled acknowledges claims; all of them are the token's, and end.
func requireSettled(t testing.TB, b clustered, token string, ids []string) {
	t.Helper()
	settlements, err := b.Ack(bounded(t), leasesOf(token, ids))
	require.NoError(t, err)
	require.Len(t, settlements, len(ids))
	for i, s := range settlements {
		require.Equal(t, persist.Settlement{ID: ids[i], State: persist.Settled}, s)
	}
}

func watchCluster(t testing.TB, c *redistest.Cluster, namespace string, onAway func()) (*persist.Redis, *events) {
	t.Helper()
	e := &events{Handler: slog.DiscardHandler, onAway: onAway}
	s, err := persist.New(c.Client(t), persist.Options{Namespace: namespace, Logger: slog.New(enabled{e})})
	require.NoError(t, err)
	return s, e
}

// Case 84 on a Cluster: a replica takes over for a dead master, and no ack is lost that it
// has got.
func TestAReplicaTakesOverForADeadMaster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3)
	b := setupCluster(t, c, "over")
	at := b.spread(t, past, ids("x", 300)...)
	master := c.Nodes()[1]
	mine := at[master]
	replica := c.StartReplica(master)
	got, err := b.Claim(bounded(t), "tok", mine, time.Hour, 0)
	require.NoError(t, err)
	require.Len(t, got.Claims, len(mine))
	requireSettled(t, b, "tok", mine[:50])
	replica.WaitSame(master)
	master.Kill()
	// By itself a client looks where the slots are once a minute.
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	answered := make(chan error, 1)
	var rest []persist.Settlement
	go func() {
		var err error
		rest, err = b.Ack(ctx, leasesOf("tok", mine[50:]))
		answered <- err
	}()
	c.Failover(master, replica)
	require.NoError(t, <-answered)
	for _, s := range rest {
		require.Equal(t, persist.Settled, s.State)
	}
	records, err := b.Lookup(bounded(t), mine)
	require.NoError(t, err)
	for _, r := range records {
		require.Equal(t, persist.Record{ID: r.ID}, r)
	}
}
