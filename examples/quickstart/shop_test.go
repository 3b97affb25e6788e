package main

import (
	"io"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func openTestShop(t *testing.T) *shop {
	t.Helper()
	s, err := openShop(t.Context(), options{}, io.Discard)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.close()) })
	require.NoError(t, s.engine.Start(t.Context()))
	return s
}

func TestATaskThatStaysInRedisAfterAFinishedRunIsAnError(t *testing.T) {
	t.Parallel()
	for _, finished := range []bool{true, false} {
		s := openTestShop(t)
		later := float64(time.Now().Add(time.Hour).UnixMilli())
		require.NoError(t, s.redis.ZAdd(t.Context(), "{"+s.namespace+":0}:due", redis.Z{Score: later, Member: "left"}).Err())
		report, err := s.settle(t.Context(), finished)
		if finished {
			require.EqualError(t, err, "no order is open, but Redis still has 1 task")
		} else {
			require.NoError(t, err)
		}
		require.Empty(t, report.Faults())
		require.Empty(t, s.redis.Keys(t.Context(), "*").Val(), "the keys of the run are removed all the same")
	}
}

func TestKeysOfOthersStay(t *testing.T) {
	t.Parallel()
	s := openTestShop(t)
	for _, key := range []string{"{orderwheel:0}:due", "{" + s.namespace + "x:0}:due"} {
		require.NoError(t, s.redis.Set(t.Context(), key, "", 0).Err())
	}
	_, err := s.settle(t.Context(), true)
	require.NoError(t, err)
	require.Len(t, s.redis.Keys(t.Context(), "*").Val(), 2)
}

func TestTwoRunsHaveTwoNamespaces(t *testing.T) {
	t.Parallel()
	require.NotEqual(t, newNamespace(), newNamespace())
}
