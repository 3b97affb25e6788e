package main

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestActsAreDoneAtTheirInstantsTheEarliestFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		line := startTimeline(ctx, 2, func(err error) { t.Error(err) })
		start := time.Now()
		var mu sync.Mutex
		var done []time.Duration
		for _, after := range []time.Duration{3 * time.Second, time.Second, 2 * time.Second, -time.Second} {
			require.True(t, line.add(ctx, act{start.Add(after), func(context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				done = append(done, time.Since(start))
				return nil
			}}))
		}
		time.Sleep(time.Minute)
		cancel()
		line.wait()
		require.Equal(t, []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second}, done)
		require.False(t, line.add(ctx, act{}))
	})
}

func TestAnActThatFailsIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, fail := context.WithCancelCause(t.Context())
		line := startTimeline(ctx, 1, fail)
		no := errors.New("no")
		line.add(ctx, act{time.Now(), func(context.Context) error { return no }})
		line.wait()
		require.Equal(t, no, context.Cause(ctx))
	})
}

func TestTheFirstWorkerDecidesHowLateABlockIs(t *testing.T) {
	t.Parallel()
	r, err := newRound(t.Context(), options{orders: 1, processes: 1}, 1, io.Discard)
	t.Cleanup(func() { require.NoError(t, r.close()) })
	require.NoError(t, err)
	for _, slip := range []time.Duration{time.Second, 2 * time.Second} {
		got, err := r.place.decide(t.Context(), 7, slip)
		require.NoError(t, err)
		require.Equal(t, time.Second, got)
	}
	slips, err := r.place.slips(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[int]time.Duration{7: time.Second}, slips)
}

func TestALateBlockMovesTheWholePlanOfItsOrders(t *testing.T) {
	t.Parallel()
	j := job{Orders: 100, Seed: 7, Start: time.UnixMilli(1_700_000_000_000), Spread: time.Minute}
	for i := range j.Orders {
		c, late := j.customer(i, 0), j.customer(i, time.Second)
		require.Equal(t, time.Second, late.createAt.Sub(c.createAt))
		require.Equal(t, time.Second, late.order.ExpireAt.Sub(c.order.ExpireAt))
		require.Equal(t, time.Second, late.extendTo.Sub(c.extendTo))
		require.Equal(t, c.payAt.IsZero(), late.payAt.IsZero())
	}
}
