package persist_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// bed is a store under test with a way behind its back.
type bed struct {
	*persist.Redis
	client *redis.Client // looks at Redis directly
	mini   *miniredis.Miniredis
	server *redistest.Server
}

// Exactly one of mini and server is set.
const (
	keyDue     = "{orderwheel:0}:due"
	keyRunning = "{orderwheel:0}:running"
	keyClaims  = "{orderwheel:0}:claims"
	keyDead    = "{orderwheel:0}:dead"
	keyReasons = "{orderwheel:0}:reasons"

	keySessions = "{orderwheel:0}:sessions"
	keyShards   = "{orderwheel:0}:shards"
	keyEpoch    = "{orderwheel:0}:epoch"

	keyReconcile = "{orderwheel:0}:reconcile"
)

// onBoth runs a test against miniredis and against a real redis-server.
func onBoth(t *testing.T, test func(t *testing.T, b bed)) {
	t.Helper()
	t.Parallel()
	t.Run("miniredis", func(t *testing.T) { t.Parallel(); test(t, setupMini(t)) })
	t.Run("redis", func(t *testing.T) { t.Parallel(); test(t, setupReal(t)) })
}

func setupMini(t testing.TB) bed {
	t.Helper()
	m, client := redistest.MiniServer(t)
	return bed{Redis: newStore(t, client), client: client, mini: m}
}

func setupReal(t testing.TB, args ...string) bed {
	t.Helper()
	s := redistest.Start(t, args...)
	client := s.Client(t)
	return bed{Redis: newStore(t, client), client: client, server: s}
}

func newStore(t testing.TB, client redis.UniversalClient) *persist.Redis {
	t.Helper()
	s, err := persist.New(client, persist.Options{})
	require.NoError(t, err)
	return s
}

// bounded is a context that ends only when something hangs.
func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// nowMS is the store's clock.
func (b bed) nowMS(t testing.TB) int64 {
	t.Helper()
	s, err := b.Now(t.Context())
	require.NoError(t, err)
	return s.StoreUS / 1000
}

// waitFor returns when the store's clock shows ms or later.
func (b bed) waitFor(t testing.TB, ms int64) {
	t.Helper()
	if b.mini != nil {
		b.mini.SetTime(time.UnixMilli(ms))
		return
	}
	for ctx := bounded(t); b.nowMS(t) < ms; {
		require.NoError(t, ctx.Err(), "the store's clock stands still")
	}
}

// waitForWaiting returns when n ids wait for a flush.
func (b bed) waitForWaiting(t testing.TB, n int) {
	t.Helper()
	for ctx := bounded(t); b.Waiting() != n; runtime.Gosched() {
		require.NoError(t, ctx.Err(), "%d ids wait, not %d", b.Waiting(), n)
	}
}

// scheduled makes ids due at ms.
func (b bed) scheduled(t testing.TB, ms int64, ids ...string) {
	t.Helper()
	require.NoError(t, b.Schedule(bounded(t), due(ms, ids...)))
}

// due makes tasks of ids, all for one millisecond.
func due(ms int64, ids ...string) []persist.Due {
	dues := make([]persist.Due, len(ids))
	for i, id := range ids {
		dues[i] = persist.Due{ID: id, DueMS: ms}
	}
	return dues
}

// claimed claims ids, all of which have to be due.
func (b bed) claimed(t testing.TB, token string, lease time.Duration, ids ...string) []persist.Claim {
	t.Helper()
	got, err := b.Claim(bounded(t), token, ids, lease, 0)
	require.NoError(t, err)
	require.Len(t, got.Claims, len(ids))
	for i, c := range got.Claims {
		require.Equal(t, ids[i], c.ID)
		require.Equal(t, persist.Claimed, c.State, "claim of %q", c.ID)
	}
	return got.Claims
}

// stored is all that Redis holds, as an operator sees it.
type stored struct {
	Due, Running, Dead map[string]string // id -> score, in Redis' own digits
	Claims, Reasons    map[string]string
}

func (b bed) stored(t testing.TB) stored {
	t.Helper()
	ctx := t.Context()
	scores := func(key string) map[string]string {
		m := map[string]string{}
		for _, id := range b.client.ZRange(ctx, key, 0, -1).Val() {
			// Not ZRANGE WITHSCORES: go-redis makes floats of it.
			score, err := b.client.ZScore(ctx, key, id).Result()
			require.NoError(t, err)
			m[id] = strconv.FormatFloat(score, 'f', -1, 64)
		}
		return m
	}
	records := func(key string) map[string]string {
		m, err := b.client.HGetAll(ctx, key).Result()
		require.NoError(t, err)
		return m
	}
	return stored{
		Due: scores(keyDue), Running: scores(keyRunning), Dead: scores(keyDead),
		Claims: records(keyClaims), Reasons: records(keyReasons),
	}
}

// requireEmpty fails if a key is left, but for those that do not belong to a task.
func (b bed) requireEmpty(t testing.TB) {
	t.Helper()
	left, err := b.client.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.Empty(t, slices.DeleteFunc(left, func(key string) bool {
		return key == keySessions || key == keyShards || key == keyEpoch || key == keyReconcile
	}))
}

// ids makes n ids.
func ids(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s-%06d", prefix, i)
	}
	return list
}

// events is a slog.Handler that counts events and hands each to a hook.
type events struct {
	slog.Handler
	away, back atomic.Int64
	onAway     func()
}

func (e *events) Handle(_ context.Context, r slog.Record) error {
	switch r.Message {
	case "redis_away":
		e.away.Add(1)
		if e.onAway != nil {
			e.onAway()
		}
	case "redis_back":
		e.back.Add(1)
	}
	return nil
}

// watch returns a store on client whose outages call onAway, once each.
func watch(t testing.TB, client redis.UniversalClient, onAway func()) (*persist.Redis, *events) {
	t.Helper()
	return watchIn(t, "", client, onAway)
}

// watchIn is watch in a namespace.
func watchIn(t testing.TB, namespace string, client redis.UniversalClient, onAway func()) (*persist.Redis, *events) {
	t.Helper()
	e := &events{Handler: slog.DiscardHandler, onAway: onAway}
	s, err := persist.New(client, persist.Options{Namespace: namespace, Logger: slog.New(enabled{e})})
	require.NoError(t, err)
	return s, e
}

// enabled makes events be asked for every record.
type enabled struct{ *events }

func (enabled) Enabled(context.Context, slog.Level) bool { return true }

func (e enabled) WithAttrs([]slog.Attr) slog.Handler { return e }
