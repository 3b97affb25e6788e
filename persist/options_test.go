package persist_test

import (
	"strings"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestNewReportsEveryFaultAtOnce(t *testing.T) {
	t.Parallel()
	for _, client := range []redis.UniversalClient{nil, (*redis.Client)(nil), (*redis.ClusterClient)(nil)} {
		_, err := persist.New(client, persist.Options{Namespace: "no {braces}"})
		require.ErrorIs(t, err, persist.ErrInvalid)
		require.ErrorContains(t, err, "client is nil")
		require.ErrorContains(t, err, `Namespace is "no {braces}"`)
	}
}

func TestNewRefusesARing(t *testing.T) {
	t.Parallel()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	t.Cleanup(func() { _ = ring.Close() })
	_, err := persist.New(ring, persist.Options{})
	require.ErrorIs(t, err, persist.ErrInvalid)
	require.ErrorContains(t, err, "Ring")
}

func TestNamespaces(t *testing.T) {
	t.Parallel()
	c := redistest.Mini(t)
	for namespace, ok := range map[string]bool{
		"": true, "a": true, "shop:orders.v2_x-9": true, strings.Repeat("n", 64): true,
		strings.Repeat("n", 65): false, " ": false, "a b": false, "{a}": false, "a}": false, "Ä": false, "a\n": false, "a/b": false,
	} {
		_, err := persist.New(c, persist.Options{Namespace: namespace})
		require.Equal(t, ok, err == nil, "%q: %v", namespace, err)
	}
}

func TestNamespacesKeepTasksApart(t *testing.T) {
	t.Parallel()
	c := redistest.Mini(t)
	one, err := persist.New(c, persist.Options{Namespace: "one"})
	require.NoError(t, err)
	two, err := persist.New(c, persist.Options{Namespace: "two"})
	require.NoError(t, err)
	require.NoError(t, one.Schedule(t.Context(), []persist.Due{{ID: "x", DueMS: past}}))
	got, err := two.Cancel(t.Context(), []string{"x"})
	require.NoError(t, err)
	require.Equal(t, persist.NotFound, got[0])
	require.Equal(t, []string{"{one:0}:due"}, c.Keys(t.Context(), "*").Val())
}

func TestScheduleReportsEveryFaultAndWritesNothing(t *testing.T) {
	t.Parallel()
	b := setupMini(t)
	err := b.Schedule(t.Context(), []persist.Due{
		{ID: "good", DueMS: past},
		{ID: "", DueMS: past},
		{ID: strings.Repeat("x", persist.MaxIDLen+1), DueMS: past},
		{ID: "early", DueMS: -1},
		{ID: "late", DueMS: persist.MaxDueMS + 1},
	})
	require.ErrorIs(t, err, persist.ErrInvalid)
	for _, part := range []string{"ID of task 1 is empty", "ID of task 2", "257 bytes", "DueMS of task 3 is -1", "DueMS of task 4 is 253402300800000", "use 1 to 256 bytes"} {
		require.ErrorContains(t, err, part)
	}
	b.requireEmpty(t)

	err = b.Schedule(t.Context(), make([]persist.Due, 100_000))
	require.ErrorIs(t, err, persist.ErrInvalid)
	require.Less(t, len(err.Error()), 2000)
}

func TestBadArgumentsAreInvalid(t *testing.T) {
	t.Parallel()
	b := setupMini(t)
	ctx := t.Context()
	for _, token := range []string{"", "-", "a b", "a\n", "Ä", strings.Repeat("t", 65)} {
		_, err := b.Claim(ctx, token, []string{"x"}, time.Second, 0)
		require.ErrorIs(t, err, persist.ErrInvalid, "%q", token)
	}
	for _, lease := range []time.Duration{0, -1} {
		_, err := b.Claim(ctx, "tok", []string{"x"}, lease, 0)
		require.ErrorIs(t, err, persist.ErrInvalid, "%v", lease)
	}
	_, err := b.Claim(ctx, "", []string{"x"}, 0, -1)
	for _, part := range []string{"token is \"\"", "lease is 0s", "maxAttempts is -1"} { // all of them at once
		require.ErrorContains(t, err, part)
	}
	for _, lease := range []time.Duration{0, -1} {
		_, err = b.Renew(ctx, []persist.Lease{{ID: "x", Token: "tok"}}, lease)
		require.ErrorIs(t, err, persist.ErrInvalid, "%v", lease)
	}
	bad := []string{"good", "", strings.Repeat("x", persist.MaxIDLen+1)}
	invalid := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, persist.ErrInvalid)
		require.ErrorContains(t, err, "task 1 is empty")
		require.ErrorContains(t, err, "task 2")
	}
	_, err = b.Requeue(ctx, bad)
	invalid(err)
	_, err = b.Discard(ctx, bad)
	invalid(err)
	_, err = b.Lookup(ctx, bad)
	invalid(err)
	_, err = b.Cancel(ctx, bad)
	invalid(err)
	for _, limit := range []int{0, -1} {
		_, err = b.Dead(ctx, persist.Cursor{}, limit)
		require.ErrorIs(t, err, persist.ErrInvalid)
	}
	_, err = b.Retry(ctx, []persist.Retry{{DueMS: -1}, {DueMS: persist.MaxDueMS + 1}})
	require.ErrorIs(t, err, persist.ErrInvalid)
	require.ErrorContains(t, err, "task 0")
	require.ErrorContains(t, err, "task 1")
	_, err = b.Reap(ctx, 0)
	require.ErrorIs(t, err, persist.ErrInvalid)
	_, err = b.Window(ctx, persist.Cursor{}, 1, 0)
	require.ErrorIs(t, err, persist.ErrInvalid)
}

func TestATokenMayBeAnyWord(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		for _, token := range []string{"t", "--", "0", "!~/%#", strings.Repeat("t", 64)} {
			b.scheduled(t, past, "x")
			b.claimed(t, token, time.Nanosecond, "x") // rounded up to 1 ms
			require.Equal(t, persist.Settled, ackX(t, b, token).State, token)
		}
		b.requireEmpty(t)
	})
}
