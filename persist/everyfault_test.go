package persist_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// Every operation meets every fault of a real server, twice. Once it is given up: it
// says the right class, and nothing was written. Once the fault ends while it waits: then
// it answers what it would have answered, and it is done once.

// fault is one of them. Its functions may be called over and over.
type fault struct {
	open       func() *redis.Client // a new client of the server that should serve
	begin, end func()

	// What the operations say while it lasts. nil: they go on all the same.
	reads, writes, newWork error

	word string // of the server, in the error
}

// class is what op says.
func (f fault) class(op storeOp) error {
	return map[opKind]error{opReads: f.reads, opWrites: f.writes, opNewWork: f.newWork}[op.kind]
}

// meets is one operation that meets the fault, with a namespace of its own.
type meets struct {
	namespace string
	op        storeOp
	store     *persist.Redis // of the operation
	events    *events
	other     *persist.Redis // looks at its tasks
	before    []persist.Record
	says      string
	err       error
}

// everyOperation prepares the tasks of each. onAway is called when it meets the fault.
func (f fault) everyOperation(t *testing.T, round string, onAway func(op storeOp)) (list []*meets) {
	t.Helper()
	for _, op := range storeOps {
		m := &meets{namespace: round + op.name, op: op}
		f.look(t, m)
		prepare(t, m.other)
		m.before = known(t, m.other)
		m.store, m.events = watchIn(t, m.namespace, f.open(), func() { onAway(op) })
		list = append(list, m)
	}
	return list
}

// look has m look at the server that serves now.
func (f fault) look(t *testing.T, m *meets) {
	t.Helper()
	m.other, _ = watchIn(t, m.namespace, f.open(), nil)
}

// run makes all calls at once and waits for them.
func run(list []*meets, ctx func(op storeOp) context.Context) {
	var calls sync.WaitGroup
	for _, m := range list {
		calls.Go(func() { m.says, m.err = m.op.do(ctx(m.op), m.store) })
	}
	calls.Wait()
}

func (f fault) test(t *testing.T) {
	t.Helper()
	f.testGivenUp(t, "first-")
	f.testOutlived(t, "second-")
	f.testGivenUp(t, "third-") // once more: it leaves nothing behind
}

func (f fault) testGivenUp(t *testing.T, round string) {
	t.Helper()
	ctxs, cancels := map[string]context.Context{}, map[string]context.CancelFunc{}
	for _, op := range storeOps {
		ctxs[op.name], cancels[op.name] = context.WithCancel(bounded(t))
		defer cancels[op.name]()
	}
	list := f.everyOperation(t, round, func(op storeOp) { cancels[op.name]() })
	f.begin()
	run(list, func(op storeOp) context.Context { return ctxs[op.name] })
	f.end()
	for _, m := range list {
		f.look(t, m)
		class := f.class(m.op)
		if class == nil {
			require.NoError(t, m.err, m.op.name)
			require.Equal(t, m.op.says, m.says)
			require.Zero(t, m.events.away.Load(), m.op.name)
			requireDone(t, m.other, m.op, m.before)
			continue
		}
		require.ErrorIs(t, m.err, class, m.op.name)
		require.ErrorIs(t, m.err, context.Canceled, m.op.name)
		require.ErrorContains(t, m.err, f.word, m.op.name)
		require.ErrorContains(t, m.err, "persist: "+m.op.name)
		for _, other := range []error{persist.ErrRetryable, persist.ErrDegraded, persist.ErrFatal, persist.ErrInvalid} {
			require.True(t, other == class || !errors.Is(m.err, other), "%s: %v", m.op.name, m.err)
		}
		require.NotErrorIs(t, m.err, persist.ErrUnknownOutcome, "%s: it was refused", m.op.name)
		require.EqualValues(t, 1, m.events.away.Load(), m.op.name)
		requireUndone(t, m.other, m.op, m.before)

		// Made again, it is done.
		m.says, m.err = m.op.do(bounded(t), m.store)
		require.NoError(t, m.err, m.op.name)
		require.Equal(t, m.op.says, m.says)
		requireDone(t, m.other, m.op, m.before)
		require.EqualValues(t, 1, m.events.back.Load(), m.op.name)
	}
}

func (f fault) testOutlived(t *testing.T, round string) {
	t.Helper()
	var meeting sync.WaitGroup // the operations that have not met it
	met := map[string]func(){}
	for _, op := range storeOps {
		if f.class(op) != nil {
			meeting.Add(1)
			met[op.name] = sync.OnceFunc(meeting.Done)
		}
	}
	list := f.everyOperation(t, round, func(op storeOp) {
		if done := met[op.name]; done != nil {
			done()
		}
	})
	f.begin()
	var calls sync.WaitGroup
	for _, m := range list {
		calls.Go(func() {
			m.says, m.err = m.op.do(bounded(t), m.store)
			if done := met[m.op.name]; done != nil {
				done() // it came through without: found below
			}
		})
	}
	meeting.Wait()
	f.end()
	calls.Wait()
	for _, m := range list {
		f.look(t, m)
		require.NoError(t, m.err, m.op.name)
		require.Equal(t, m.op.says, m.says)
		requireDone(t, m.other, m.op, m.before)
		if f.class(m.op) == nil {
			require.Zero(t, m.events.away.Load(), m.op.name)
		} else {
			requireOneOutage(t, m.events)
		}
	}
}

// Case 35.
func TestEveryOperationOutlivesABusyServer(t *testing.T) {
	t.Parallel()
	b := setupReal(t)
	fault{
		open: func() *redis.Client { return b.server.Client(t) },
		begin: func() {
			do(t, b.client, "CONFIG", "SET", "busy-reply-threshold", "1")
			conn, err := net.Dial("tcp", b.server.Addr())
			require.NoError(t, err)
			t.Cleanup(func() { _ = conn.Close() })
			fmt.Fprint(conn, "*3\r\n$4\r\nEVAL\r\n$17\r\nwhile true do end\r\n$1\r\n0\r\n")
			for ctx := bounded(t); b.client.Ping(ctx).Err() == nil; { // until it runs
				require.NoError(t, ctx.Err())
			}
		},
		end: func() {
			do(t, b.client, "SCRIPT", "KILL")
			for ctx := bounded(t); b.client.Ping(ctx).Err() != nil; {
				require.NoError(t, ctx.Err())
			}
			do(t, b.client, "CONFIG", "SET", "busy-reply-threshold", "5000")
		},
		reads: persist.ErrRetryable, writes: persist.ErrRetryable, newWork: persist.ErrRetryable,
		word: "BUSY",
	}.test(t)
}

// pair is a primary and its replica, which change places.
type pair struct {
	primary, replica bed
}

func setupPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{primary: setupReal(t, "--repl-diskless-sync-delay", "0")}
	host, port, err := net.SplitHostPort(p.primary.server.Addr())
	require.NoError(t, err)
	p.replica = setupReal(t, "--repl-diskless-sync-delay", "0", "--replicaof", host+" "+port)
	requireFollowing(t, p.replica)
	return p
}

// requireFollowing waits until b is in step with its primary.
func requireFollowing(t *testing.T, b bed) {
	t.Helper()
	for ctx := bounded(t); !strings.Contains(b.client.Info(ctx, "replication").Val(), "master_link_status:up"); {
		require.NoError(t, ctx.Err(), "the replica does not follow")
	}
}

// follow makes from a replica of to, which has all that from has.
func follow(t *testing.T, from, to bed) {
	t.Helper()
	host, port, err := net.SplitHostPort(to.server.Addr())
	require.NoError(t, err)
	do(t, to.client, "REPLICAOF", "NO", "ONE")
	do(t, from.client, "REPLICAOF", host, port)
	requireFollowing(t, from)
}

// demote has the two change places. What was written has reached both.
func (p *pair) demote(t *testing.T) {
	t.Helper()
	written := p.primary.client.Conn()
	defer written.Close()
	// WAIT is about the writes of its connection: one behind all others.
	require.NoError(t, written.Set(t.Context(), "last", "write", 0).Err())
	n, err := written.Wait(t.Context(), 1, 10*time.Second).Result()
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	p.primary, p.replica = p.replica, p.primary
	follow(t, p.replica, p.primary)
}

// Case 84: a primary that was demoted refuses writes, and is promoted again.
func TestEveryOperationOutlivesADemotionAndAPromotion(t *testing.T) {
	t.Parallel()
	p := setupPair(t)
	client := p.primary.server.Client
	fault{
		open:   func() *redis.Client { return client(t) },
		begin:  func() { p.demote(t) },
		end:    func() { p.demote(t) },
		writes: persist.ErrRetryable, newWork: persist.ErrRetryable, // a replica can be read
		word: "READONLY",
	}.test(t)
}

// Case 84, by name: the client asks who is the primary when it dials, as behind a DNS
// name or with Sentinel. What the old one refuses goes on with the new one.
func TestEveryOperationGoesOnWithTheNewPrimary(t *testing.T) {
	t.Parallel()
	p := setupPair(t)
	var primary atomic.Pointer[redistest.Server]
	primary.Store(p.primary.server)
	fault{
		open: func() *redis.Client {
			c := redis.NewClient(&redis.Options{
				Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true,
				Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, network, primary.Load().Addr())
				},
			})
			t.Cleanup(func() { _ = c.Close() })
			return c
		},
		begin:  func() { p.demote(t) },
		end:    func() { primary.Store(p.primary.server) },
		writes: persist.ErrRetryable, newWork: persist.ErrRetryable,
		word: "READONLY",
	}.test(t)
}

// Case 83. Each of many keys delays the loading, until the test lets it go on.
func TestEveryOperationOutlivesALoadingServer(t *testing.T) {
	t.Parallel()
	b := setupReal(t, "--key-load-delay", "2000", "--rdbcompression", "no", "--loading-process-events-interval-bytes", "1024")
	pipe := b.client.Pipeline()
	for i := range 3000 {
		pipe.Set(t.Context(), fmt.Sprint("other", i), strings.Repeat("v", 200), 0)
	}
	_, err := pipe.Exec(t.Context())
	require.NoError(t, err)
	fault{
		open: func() *redis.Client { return b.server.Client(t) },
		begin: func() {
			do(t, b.client, "SAVE")
			b.server.Boot()
			requireLoading(t, b.server.Addr())
		},
		end: func() {
			do(t, b.client, "CONFIG", "SET", "key-load-delay", "0")
			for ctx := bounded(t); b.client.Ping(ctx).Err() != nil; {
				require.NoError(t, ctx.Err())
			}
		},
		reads: persist.ErrRetryable, writes: persist.ErrRetryable, newWork: persist.ErrRetryable,
		word: "LOADING",
	}.test(t)
}

// Case 82: new work is refused, and all else makes room or lets others make it.
func TestEveryOperationOutlivesAFullServer(t *testing.T) {
	t.Parallel()
	b := setupReal(t, "--maxmemory-policy", "noeviction")
	fault{
		open:    func() *redis.Client { return b.server.Client(t) },
		begin:   func() { do(t, b.client, "CONFIG", "SET", "maxmemory", "1") },
		end:     func() { do(t, b.client, "CONFIG", "SET", "maxmemory", "0") },
		newWork: persist.ErrDegraded,
		word:    "OOM",
	}.test(t)
}

// MISCONF: the server cannot save, and refuses writes until it can.
func TestEveryOperationOutlivesAServerThatCannotSave(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	dump := filepath.Join(dir, "dump.rdb")
	b := setupReal(t, "--dir", dir, "--save", "3600 1000000")
	save := func(status string) {
		do(t, b.client, "BGSAVE")
		for ctx := bounded(t); !strings.Contains(b.client.Info(ctx, "persistence").Val(), "rdb_last_bgsave_status:"+status); {
			require.NoError(t, ctx.Err())
		}
	}
	fault{
		open: func() *redis.Client { return b.server.Client(t) },
		begin: func() { // a folder stands where the file should go
			require.NoError(t, os.RemoveAll(dump))
			require.NoError(t, os.Mkdir(dump, 0o755))
			save("err")
		},
		end: func() {
			require.NoError(t, os.Remove(dump))
			save("ok")
		},
		writes: persist.ErrDegraded, newWork: persist.ErrDegraded,
		word: "MISCONF",
	}.test(t)
}

func TestEveryOperationOutlivesAServerWithoutItsReplicas(t *testing.T) {
	t.Parallel()
	b := setupReal(t)
	fault{
		open:   func() *redis.Client { return b.server.Client(t) },
		begin:  func() { do(t, b.client, "CONFIG", "SET", "min-replicas-to-write", "1") },
		end:    func() { do(t, b.client, "CONFIG", "SET", "min-replicas-to-write", "0") },
		writes: persist.ErrDegraded, newWork: persist.ErrDegraded,
		word: "NOREPLICAS",
	}.test(t)
}

// A replica that has lost its primary, and does not serve what may be old.
func TestEveryOperationOutlivesAReplicaWithoutItsPrimary(t *testing.T) {
	t.Parallel()
	b := setupReal(t, "--replica-serve-stale-data", "no")
	fault{
		open:  func() *redis.Client { return b.server.Client(t) },
		begin: func() { do(t, b.client, "REPLICAOF", "127.0.0.1", "1") }, // nobody there
		end:   func() { do(t, b.client, "REPLICAOF", "NO", "ONE") },
		reads: persist.ErrRetryable, writes: persist.ErrRetryable, newWork: persist.ErrRetryable,
		word: "MASTERDOWN",
	}.test(t)
}

// Case 94.
func TestEveryOperationOutlivesAServerThatIsDown(t *testing.T) {
	t.Parallel()
	b := setupReal(t, "--appendonly", "yes", "--appendfsync", "always")
	fault{
		open:  func() *redis.Client { return b.server.Client(t) },
		begin: b.server.Kill,
		end:   b.server.Restart,
		reads: persist.ErrRetryable, writes: persist.ErrRetryable, newWork: persist.ErrRetryable,
		word: "connection refused",
	}.test(t)
}

// flushing is a hook of a client that has another one flush the scripts before each command.
type flushing struct {
	other   *redis.Client
	flushed *atomic.Int64 // before scripts
}

func (flushing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f flushing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "eval") {
			f.flushed.Add(1)
		}
		if err := f.other.ScriptFlush(ctx).Err(); err != nil {
			return err
		}
		return next(ctx, cmd)
	}
}

func (f flushing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if strings.HasPrefix(cmd.Name(), "eval") {
				f.flushed.Add(1)
			}
		}
		if err := f.other.ScriptFlush(ctx).Err(); err != nil {
			return err
		}
		return next(ctx, cmds)
	}
}

// Cases 78 and 135: SCRIPT FLUSH between any two commands, also between the one that finds the script
// missing and the one that brings it.
func TestEveryOperationOutlivesAFlushOfTheScriptsBeforeEachCommand(t *testing.T) {
	t.Parallel()
	b := setupReal(t)
	var flushed atomic.Int64
	client := b.server.Client(t)
	client.AddHook(flushing{b.client, &flushed})
	for _, op := range storeOps {
		other, _ := watchIn(t, op.name, b.client, nil)
		prepare(t, other)
		before := known(t, other)
		store, events := watchIn(t, op.name, client, nil)
		flushed.Store(0)
		says, err := op.do(bounded(t), store)
		require.NoError(t, err, op.name)
		require.Equal(t, op.says, says)
		require.EqualValues(t, 2, flushed.Load(), "%s: by its name, and whole", op.name)
		require.Zero(t, events.away.Load(), "%s: that is no outage", op.name)
		requireDone(t, other, op, before)
	}
}

// Likewise while many call at once.
func TestManyCallersOutliveFlushesOfTheScripts(t *testing.T) {
	t.Parallel()
	b := setupReal(t)
	var flushed atomic.Int64
	var calls sync.WaitGroup
	all := ids("x", 200)
	for i := range 4 {
		client := b.server.Client(t)
		client.AddHook(flushing{b.client, &flushed})
		store := newStore(t, client)
		for n := range 50 {
			calls.Go(func() {
				id := all[i*50+n]
				if err := store.Schedule(bounded(t), []persist.Due{{ID: id, DueMS: past}}); err != nil {
					t.Error(err)
				}
				if got, err := store.Cancel(bounded(t), []string{id}); err != nil || got[0] != persist.Cancelled {
					t.Error(got, err)
				}
				if err := store.Schedule(bounded(t), []persist.Due{{ID: id, DueMS: past}}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	calls.Wait()
	require.Len(t, b.stored(t).Due, len(all))
	require.Positive(t, flushed.Load())
}
