package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
)

func TestCallsAreJudgedByTheFirstOfEachOrder(t *testing.T) {
	t.Parallel()
	p := scheme.Plan{Orders: 10, FirstMS: 1_000_000, Rate: 10}
	call := func(order int, late time.Duration) scheme.Call {
		return scheme.Call{Order: order, Entry: p.Order(order).ExpireAt.Add(late), Result: scheme.Closed}
	}
	f := judge(p, []scheme.Call{
		call(0, -time.Millisecond),              // early
		call(1, 7*time.Millisecond),             // the second for it
		call(1, 5*time.Millisecond),             // the first for it
		call(2, 300*time.Millisecond),           // the latest
		call(9, time.Hour), call(9, -time.Hour), // paid: no close was due
	})
	require.Equal(t, Figures{Orders: 9, Early: 1, CallsTwice: 1, LateP50MS: 5, LateP99MS: 300, LateMaxMS: 300}, f)
}

func TestWhatExpiresAfterAKillIsCountedWithoutWhatIsPaid(t *testing.T) {
	t.Parallel()
	p := scheme.Plan{Orders: 20, FirstMS: 1_000_000, Rate: 10}
	require.Equal(t, 9, expireAfter(p, p.Order(9).ExpireAt))
	require.Equal(t, 18, expireAfter(p, time.Time{}))
	require.Zero(t, expireAfter(p, p.Last()))
}

func TestQuantilesOfNothingAreZero(t *testing.T) {
	t.Parallel()
	require.Zero(t, quantile(nil, 0.99))
	require.InDelta(t, 1, quantile([]float64{1, 2, 3, 4}, 0.25), 0)
	require.InDelta(t, 4, quantile([]float64{1, 2, 3, 4}, 0.76), 0)
}

func TestTheSteadyRateLeavesTheDatabaseRoom(t *testing.T) {
	t.Parallel()
	for one := 150; one < 5000; one += 77 {
		for many := one; many < 5*one; many += 333 {
			rate := steadyRate(one, many)
			require.Less(t, 2*rate, many)
			require.LessOrEqual(t, rate, mostRate)
		}
	}
	require.Equal(t, rateStep, steadyRate(20, 30), "however slow the database is, orders expire")
}
