package main

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/orderwheel/orderwheel/examples/internal/local"
	"github.com/orderwheel/orderwheel/executor"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"))
}

func TestAGroupThatIsNotFilledRefundsEveryoneOnce(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	enough, err := local.Patiently(func(openFor time.Duration) error {
		out.Reset()
		return run(t.Context(), openFor, &out)
	})
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("open for %v:", enough)+`
  kettles  filled with 3 of 3; 0 payments refunded, 0 in all
  teapots  open with 2 of 3; 0 payments refunded, 0 in all
  spoons   open with 0 of 3; 0 payments refunded, 0 in all
the time is over:
  kettles  filled with 3 of 3; 0 payments refunded, 0 in all
  teapots  failed with 2 of 3; 2 payments refunded, 3980 in all
  spoons   failed with 0 of 3; 0 payments refunded, 0 in all
the handler run once more for all:
  kettles  filled with 3 of 3; 0 payments refunded, 0 in all
  teapots  failed with 2 of 3; 2 payments refunded, 3980 in all
  spoons   failed with 0 of 3; 0 payments refunded, 0 in all
`, out.String())
}

var expireAt = time.UnixMilli(1_800_000_000_000)

// setup is a group that needs two and has ann.
func setup(t *testing.T) groups {
	t.Helper()
	place, err := local.Open(t.Context(), schema)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, place.Close()) })
	g := groups{place.DB}
	require.NoError(t, g.open(t.Context(), "g", 2, expireAt))
	filled, err := g.join(t.Context(), "g", "ann", "p-ann", 100, expireAt.Add(-time.Hour))
	require.NoError(t, err)
	require.False(t, filled)
	return g
}

func (g groups) requireState(t *testing.T, want state) {
	t.Helper()
	got, err := g.state(t.Context(), "g")
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestOneOfManyTakesTheLastPlace(t *testing.T) {
	t.Parallel()
	g := setup(t)
	var filled, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			ok, err := g.join(t.Context(), "g", fmt.Sprint("user-", i), fmt.Sprint("p-", i), 100, expireAt.Add(-time.Millisecond))
			if ok {
				filled.Add(1)
			} else if err != nil {
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, filled.Load())
	require.EqualValues(t, 7, refused.Load())
	g.requireState(t, state{status: "filled", needs: 2, members: 2})
	require.NoError(t, g.expire(t.Context(), executor.Task{ID: "g", Now: expireAt}))
	g.requireState(t, state{status: "filled", needs: 2, members: 2})
}

func TestWhoPaysTwiceTakesOnePlace(t *testing.T) {
	t.Parallel()
	g := setup(t)
	_, err := g.join(t.Context(), "g", "ann", "p-ann", 100, expireAt.Add(-time.Hour))
	require.Error(t, err)
	g.requireState(t, state{status: "open", needs: 2, members: 1})
}

func TestNobodyJoinsAGroupThatIsOver(t *testing.T) {
	t.Parallel()
	g := setup(t)
	_, err := g.join(t.Context(), "g", "bob", "p-bob", 100, expireAt) // not failed yet, but its time is over
	require.ErrorIs(t, err, errNotOpen)
	for range 2 {
		require.NoError(t, g.expire(t.Context(), executor.Task{ID: "g", Now: expireAt}))
		g.requireState(t, state{status: "failed", needs: 2, members: 1, refunds: 1, refunded: 100})
	}
	_, err = g.join(t.Context(), "g", "bob", "p-bob", 100, expireAt.Add(-time.Hour))
	require.ErrorIs(t, err, errNotOpen)
}

func TestAHandlerThatIsEarlyComesBackAtTheInstant(t *testing.T) {
	t.Parallel()
	g := setup(t)
	require.Equal(t, executor.RetryAt(expireAt), g.expire(t.Context(), executor.Task{ID: "g", Now: expireAt.Add(-time.Millisecond)}))
	require.ErrorContains(t, g.expire(t.Context(), executor.Task{ID: "none", Now: expireAt}), `group "none": `)
	g.requireState(t, state{status: "open", needs: 2, members: 1})
}
