package persist

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func TestAnOutageIsAProblemWhileACallWaits(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{})
	defer func() { _ = client.Close() }()
	r, err := New(client, Options{Shards: 2})
	require.NoError(t, err)
	require.Empty(t, r.Problems())
	a := &caller{presence: &r.shards[1].away, op: "claim"}
	a.failed(t.Context(), time.Now(), retryable, redis.ErrPoolTimeout)
	require.Len(t, r.Problems(), 1)
	require.Contains(t, r.Problems()[0], "Redis, shard 1 does not serve (retryable) since ")
	a.mu.last = a.mu.last.Add(-time.Hour)
	require.Len(t, r.Problems(), 1, "it is being repeated")
	a.answered(t.Context(), time.Now())
	require.Empty(t, r.Problems())
}

func TestAnOutageThatNoCallCanShowToBeOverIsForgotten(t *testing.T) {
	t.Parallel()
	o := newOutage()
	a := o.call("flush of users")
	o.fails(a, time.Now(), degraded)
	a.gaveUp()
	away := func(since time.Duration) bool {
		_, _, away := o.outage(o.mu.last.Add(since))
		return away
	}
	require.True(t, away(remembered))
	require.False(t, away(remembered+1))
	o.call("claim").answered(t.Context(), time.Now())
	require.True(t, away(0), "another operation says nothing of it")
	b := o.call("flush of users")
	o.fails(b, time.Now(), degraded)
	require.True(t, away(time.Hour), "it is called again, and waits")
}
