package persist_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/internal/faultproxy"
	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Real servers that die, hang, load, refuse. A call is cured by the event that it
// caused: the store logs redis_away, and the test then lets Redis come back.

// patient is a bed whose store calls onAway when Redis goes away.
func patient(t *testing.T, b bed, onAway func()) (bed, *events) {
	var e *events
	b.Redis, e = watch(t, b.server.Client(t), onAway)
	return b, e
}

func do(t testing.TB, c *redis.Client, args ...any) {
	t.Helper()
	require.NoError(t, c.Do(context.Background(), args...).Err(), "%v", args)
}

// requireOneOutage checks that one outage was logged, once each way.
func requireOneOutage(t *testing.T, e *events) {
	t.Helper()
	require.EqualValues(t, 1, e.away.Load(), "redis_away")
	require.EqualValues(t, 1, e.back.Load(), "redis_back")
}

func TestACallOutlivesARestartOfRedis(t *testing.T) {
	t.Parallel()
	b := setupReal(t, "--appendonly", "yes", "--appendfsync", "always")
	b.scheduled(t, past, "x")
	b.server.Kill()
	b, e := patient(t, b, b.server.Restart)
	b.claimed(t, "tok", time.Hour, "x")
	requireOneOutage(t, e)
}

// Case 83.
func TestACallWaitsWhileRedisLoads(t *testing.T) {
	t.Parallel()
	b := setupReal(t, "--key-load-delay", "2000", "--loading-process-events-interval-bytes", "1024")
	b.scheduled(t, past, ids("x", 100)...)
	pipe := b.client.Pipeline()
	for i := range 300 { // each delays the loading by 2 ms
		pipe.Set(t.Context(), fmt.Sprint("other", i), strings.Repeat("v", 100), 0)
	}
	_, err := pipe.Exec(t.Context())
	require.NoError(t, err)
	do(t, b.client, "SAVE")
	b.server.Boot()
	requireLoading(t, b.server.Addr())
	b, e := patient(t, b, nil)
	page, err := b.Window(bounded(t), persist.Cursor{}, past, 1000)
	require.NoError(t, err)
	require.Len(t, page.Due, 100)
	requireOneOutage(t, e)
}

// requireLoading waits until the server answers that it is loading.
func requireLoading(t *testing.T, addr string) {
	t.Helper()
	for ctx := bounded(t); ; {
		require.NoError(t, ctx.Err(), "it never said LOADING")
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			continue
		}
		fmt.Fprint(conn, "PING\r\n")
		line, _ := bufio.NewReader(conn).ReadString('\n')
		conn.Close()
		if strings.HasPrefix(line, "-LOADING") {
			return
		}
		require.NotEqual(t, "+PONG\r\n", line, "it has loaded already")
	}
}

// Case 84: what is settled while the server is a replica is settled after.
func TestAnAckOutlivesADemotion(t *testing.T) {
	t.Parallel()
	b := setupReal(t)
	start(t, b, "run")
	do(t, b.client, "REPLICAOF", "127.0.0.1", "1") // nobody there: it keeps its data
	b, e := patient(t, b, func() { do(t, b.client, "REPLICAOF", "NO", "ONE") })
	require.Equal(t, persist.Settled, ackX(t, b, "tok").State)
	requireOneOutage(t, e)
	b.requireEmpty(t)
}

// Case 35, with a script that really keeps Redis busy.
func TestACallOutlivesABusyScript(t *testing.T) {
	t.Parallel()
	b := setupReal(t)
	b.scheduled(t, past, "x")
	do(t, b.client, "CONFIG", "SET", "busy-reply-threshold", "1")
	conn, err := net.Dial("tcp", b.server.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	fmt.Fprint(conn, "*3\r\n$4\r\nEVAL\r\n$17\r\nwhile true do end\r\n$1\r\n0\r\n")
	for ctx := bounded(t); b.client.Ping(ctx).Err() == nil; { // until it runs
		require.NoError(t, ctx.Err())
	}
	b, e := patient(t, b, func() { do(t, b.client, "SCRIPT", "KILL") })
	b.claimed(t, "tok", time.Hour, "x")
	requireOneOutage(t, e)
}

func TestACallWaitsForReplicas(t *testing.T) {
	t.Parallel()
	b := setupReal(t)
	do(t, b.client, "CONFIG", "SET", "min-replicas-to-write", "1")
	b, e := patient(t, b, func() { do(t, b.client, "CONFIG", "SET", "min-replicas-to-write", "0") })
	b.scheduled(t, past, "x")
	requireOneOutage(t, e)
}

// MISCONF: Redis refuses writes when it cannot save.
func TestACallWaitsWhileRedisCannotSave(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "dump")
	require.NoError(t, os.Mkdir(dir, 0o755))
	b := setupReal(t, "--dir", dir, "--save", "3600 1000000")
	require.NoError(t, os.Remove(dir))
	saved := func(status string) {
		do(t, b.client, "BGSAVE")
		for ctx := bounded(t); !strings.Contains(b.client.Info(ctx, "persistence").Val(), "rdb_last_bgsave_status:"+status); {
			require.NoError(t, ctx.Err())
		}
	}
	saved("err")
	b, e := patient(t, b, func() {
		do(t, b.client, "CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
	})
	b.scheduled(t, past, "x")
	requireOneOutage(t, e)
}

// Case 82: a full Redis takes no new work, and lets go of all it has.
func TestAFullRedisTakesNoNewWorkAndLetsGoOfTheOld(t *testing.T) {
	t.Parallel()
	b := setupReal(t)
	b.scheduled(t, past, "ack", "retry", "cancel", "running", "succ", "again", "lost", "moved")
	b.claimed(t, "tok", time.Hour, "ack", "retry", "running", "succ")
	b.claimed(t, "tok", time.Millisecond, "lost")
	b.waitFor(t, b.nowMS(t)+1)
	do(t, b.client, "CONFIG", "SET", "maxmemory", "1")
	do(t, b.client, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	ctx := bounded(t)

	// New work, in each form that needs memory, is refused.
	before := b.stored(t)
	for _, due := range []persist.Due{{ID: "new", DueMS: past}, {ID: "moved", DueMS: future}, {ID: "succ", DueMS: future}} {
		stopped, cancel := context.WithCancel(ctx)
		store, e := watch(t, b.server.Client(t), cancel)
		err := store.Schedule(stopped, []persist.Due{due})
		require.ErrorIs(t, err, persist.ErrDegraded)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, persist.ErrUnknownOutcome)
		require.ErrorContains(t, err, "OOM")
		require.EqualValues(t, 1, e.away.Load())
		require.EqualValues(t, 0, e.back.Load())
	}
	require.Equal(t, before, b.stored(t), "nothing was written")

	// Everything else goes on.
	warnings, err := b.Check(ctx)
	require.NoError(t, err)
	require.Contains(t, strings.Join(warnings, "\n"), "refuses writes")
	b.claimed(t, "tok", 2*time.Hour, "running") // the same claim again: only the lease grows
	outcomes, err := b.Cancel(ctx, []string{"running"})
	require.NoError(t, err)
	require.Equal(t, []persist.CancelOutcome{persist.Running}, outcomes)
	outcomes, err = b.Cancel(ctx, []string{"cancel"})
	require.NoError(t, err)
	require.Equal(t, []persist.CancelOutcome{persist.Cancelled}, outcomes)
	settlements, err := b.Ack(ctx, []persist.Lease{{ID: "ack", Token: "tok"}})
	require.NoError(t, err)
	require.Equal(t, persist.Settled, settlements[0].State)
	settlements, err = b.Retry(ctx, []persist.Retry{{Lease: persist.Lease{ID: "retry", Token: "tok"}, DueMS: past}})
	require.NoError(t, err)
	require.Equal(t, persist.Scheduled, settlements[0].State)
	b.claimed(t, "tok2", time.Hour, "again", "retry")
	reaped, err := b.Reap(ctx, 10)
	require.NoError(t, err)
	require.Len(t, reaped, 1)
}

// The first write of a mixed batch decides, so it has to be the one that needs memory.
func TestAFullRedisRefusesABatchAsAWhole(t *testing.T) {
	t.Parallel()
	b := setupReal(t)
	start(t, b, "retry") // to schedule it removes its record
	do(t, b.client, "CONFIG", "SET", "maxmemory", "1")
	before := b.stored(t)
	stopped, cancel := context.WithCancel(bounded(t))
	store, _ := watch(t, b.server.Client(t), cancel)
	err := store.Schedule(stopped, []persist.Due{{ID: "x", DueMS: future}, {ID: "new", DueMS: future}})
	require.ErrorIs(t, err, persist.ErrDegraded)
	require.Equal(t, before, b.stored(t))
}

func TestWrongCredentialsAndPermissionsAreFatal(t *testing.T) {
	t.Parallel()
	b := setupReal(t)
	do(t, b.client, "ACL", "SETUSER", "noscripts", "on", ">pw", "~*", "+@all", "-@scripting")
	do(t, b.client, "ACL", "SETUSER", "nozadd", "on", ">pw", "~*", "+@all", "-zadd")
	do(t, b.client, "ACL", "SETUSER", "nokeys", "on", ">pw", "~other", "+@all")
	do(t, b.client, "ACL", "SETUSER", "default", ">secret", "resetpass", ">secret")
	due := []persist.Due{{ID: "x", DueMS: past}}
	for _, o := range []redis.Options{
		{}, {Password: "wrong"}, {Username: "nobody", Password: "pw"},
		{Username: "noscripts", Password: "pw"}, {Username: "nozadd", Password: "pw"}, {Username: "nokeys", Password: "pw"},
	} {
		o.Addr, o.ContextTimeoutEnabled = b.server.Addr(), true
		c := redis.NewClient(&o)
		t.Cleanup(func() { _ = c.Close() })
		require.ErrorIs(t, newStore(t, c).Schedule(bounded(t), due), persist.ErrFatal, o.Username)
		_, err := newStore(t, c).Check(bounded(t))
		require.ErrorIs(t, err, persist.ErrFatal, o.Username)
	}
}

func TestAClosedClientIsFatal(t *testing.T) {
	t.Parallel()
	b := setupMini(t)
	c := redis.NewClient(b.client.Options())
	s := newStore(t, c)
	require.NoError(t, c.Close())
	err := s.Schedule(bounded(t), []persist.Due{{ID: "x", DueMS: past}})
	require.ErrorIs(t, err, persist.ErrFatal)
	require.NotErrorIs(t, err, persist.ErrUnknownOutcome)
}

// Case 89: ctx cuts a call that Redis does not answer, also with a client that does not
// listen to it, and a cancellation as well as a deadline.
func TestTheContextCutsACallThatHangs(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, listens := range []bool{true, false} {
		c := redis.NewClient(&redis.Options{Addr: s.Addr(), ContextTimeoutEnabled: listens, ReadTimeout: time.Hour})
		store := newStore(t, c)
		_, err := store.Now(t.Context())
		require.NoError(t, err)
		s.Pause()
		hung := time.AfterFunc(10*time.Second, func() { panic("ctx does not cut the call") })
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		err = store.Schedule(ctx, []persist.Due{{ID: "x", DueMS: past}})
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, persist.ErrUnknownOutcome)
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		err = store.Schedule(ctx, []persist.Due{{ID: "x", DueMS: past}})
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, persist.ErrUnknownOutcome)
		hung.Stop()
		s.Resume()
		require.NoError(t, c.Close())
	}
}

// Case 90: the reply to a call that was cut off is not taken for that of the next.
func TestALateReplyIsNotTakenForAnother(t *testing.T) {
	t.Parallel()
	b := setupReal(t)
	c := redis.NewClient(&redis.Options{Addr: b.server.Addr(), ContextTimeoutEnabled: true, PoolSize: 1})
	t.Cleanup(func() { _ = c.Close() })
	store := newStore(t, c)
	b.scheduled(t, past, "a", "b", "c")
	for _, id := range []string{"a", "b", "c"} {
		b.server.Pause()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err := store.Window(ctx, persist.Cursor{}, past, 10)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		b.server.Resume()
		got, err := store.Claim(bounded(t), "tok", []string{id}, time.Hour, 0)
		require.NoError(t, err)
		require.Equal(t, id, got.Claims[0].ID)
		require.Equal(t, persist.Claimed, got.Claims[0].State)
	}
}

// Case 88: a pool without a free connection is no outage of Redis.
func TestABusyPoolIsRetriedAndIsNoOutage(t *testing.T) {
	t.Parallel()
	b := setupReal(t)
	c := redis.NewClient(&redis.Options{Addr: b.server.Addr(), ContextTimeoutEnabled: true, PoolSize: 1, PoolTimeout: 5 * time.Millisecond})
	t.Cleanup(func() { _ = c.Close() })
	store, e := watch(t, c, nil)
	held := c.Conn() // takes the only connection with its first command
	require.NoError(t, held.Ping(t.Context()).Err())

	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	err := store.Schedule(ctx, []persist.Due{{ID: "x", DueMS: past}})
	require.ErrorIs(t, err, persist.ErrRetryable)
	require.ErrorIs(t, err, redis.ErrPoolTimeout)

	time.AfterFunc(10*time.Millisecond, func() { _ = held.Close() })
	require.NoError(t, store.Schedule(bounded(t), []persist.Due{{ID: "x", DueMS: past}}))
	require.Zero(t, e.away.Load())
}

func TestManyCallsThatFailTogetherLogOneOutage(t *testing.T) {
	t.Parallel()
	_, p := behindProxy(t, setupMini(t))
	n := 0
	p.decide(func(faultproxy.Command) faultproxy.Action {
		if n++; n <= 60 {
			return errorReply("LOADING Redis is loading the dataset in memory")
		}
		return pass
	})
	store, e := watch(t, p.client(t), nil)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if i%2 == 0 {
				assert.NoError(t, store.Schedule(bounded(t), []persist.Due{{ID: fmt.Sprint(i), DueMS: past}}))
			} else {
				_, err := store.Now(bounded(t))
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
	requireOneOutage(t, e)
}

// Acks and reads succeed while Schedule is refused: that is no recovery.
func TestAnOutageOfOneOperationIsNotEndedByAnother(t *testing.T) {
	t.Parallel()
	_, p := behindProxy(t, setupMini(t))
	ctx, cancel := context.WithCancel(bounded(t))
	store, e := watch(t, p.client(t), cancel)
	p.faults(errorReply("OOM command not allowed when used memory > 'maxmemory'."))
	require.ErrorIs(t, store.Schedule(ctx, []persist.Due{{ID: "x", DueMS: past}}), persist.ErrDegraded)
	_, err := store.Now(t.Context())
	require.NoError(t, err)
	_, err = store.Ack(t.Context(), []persist.Lease{{ID: "x", Token: "tok"}})
	require.NoError(t, err)
	require.Zero(t, e.back.Load())
	require.NoError(t, store.Schedule(t.Context(), []persist.Due{{ID: "x", DueMS: past}}))
	requireOneOutage(t, e)
}
