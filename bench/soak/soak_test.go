package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/internal/redistest"
)

func TestEveryTaskOfAShortSoakComesToItsEnd(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t).Addr()
	watcher := newClient(addr)
	defer watcher.Close()
	s := newSamples(2*time.Second, io.Discard)
	var out strings.Builder
	o := options{d: 2 * time.Second, rate: 200, seed: uint64(time.Now().UnixNano())}
	t.Logf("seed %d", o.seed)
	require.NoError(t, underLoad(t.Context(), o, addr, watcher, s, &out))
	require.Regexp(t, `scheduled [1-9].* early 0, not run 0`, out.String())
	require.NotEmpty(t, s.values)
	for i, f := range watched[:4] {
		require.Positive(t, s.values[0][i], f.name)
	}
	left, err := watcher.ZCard(t.Context(), "{orderwheel:0}:due").Result()
	require.NoError(t, err)
	require.Zero(t, left)
}

func TestWhatGrowsIsFound(t *testing.T) {
	t.Parallel()
	for i, f := range watched {
		s := newSamples(time.Minute, io.Discard)
		for n := range 90 {
			v := figures{50 * mib, 90, 6, 20 * mib, 700}
			if n >= 60 {
				v[i] = v[i]*1.1 + 1.1*f.slack
			}
			s.values = append(s.values, v)
		}
		var out strings.Builder
		faults := s.judge(&out)
		require.Len(t, faults, 1, out.String())
		require.ErrorContains(t, faults[0], f.name+" grew from ")
	}
}

func TestWhatSwingsOrShrinksIsNoGrowth(t *testing.T) {
	t.Parallel()
	s := newSamples(time.Minute, io.Discard)
	for n := range 90 {
		v := figures{50 * mib, 90, 6, 20 * mib, 700}
		if n%3 == 0 {
			v = figures{90 * mib, 900, 60, 90 * mib, 7000}
		}
		if n > 60 {
			v[0] = 10 * mib
		}
		s.values = append(s.values, v)
	}
	require.Empty(t, s.judge(io.Discard))
}

func TestTooFewLooksAreNoSuccess(t *testing.T) {
	t.Parallel()
	require.NotEmpty(t, newSamples(time.Minute, io.Discard).judge(io.Discard))
}

func TestLooksCountAfterTheWarmUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSamples(8*time.Minute, io.Discard)
		ctx, cancel := context.WithTimeout(t.Context(), s.d)
		defer cancel()
		require.NoError(t, s.watch(ctx, func(context.Context) (figures, error) { return figures{}, nil }))
		require.InDelta(t, 7*60, len(s.values), 2)
	})
}

func TestALostTaskIsFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		l.note("lost", succeed)
		l.note("runs", succeed)
		require.NoError(t, l.handle(t.Context(), executor.Task{ID: "runs", Attempt: 1, Due: time.Now()}))
		require.ErrorContains(t, l.drain(t.Context()), "lost: 1 tasks")
		require.NoError(t, l.faults())
	})
}

func TestAnEarlyRunIsFound(t *testing.T) {
	t.Parallel()
	l := newLedger()
	require.NoError(t, l.handle(t.Context(), executor.Task{ID: "id", Attempt: 1, Due: time.Now().Add(time.Hour)}))
	require.ErrorContains(t, l.faults(), "1 runs were early")
}

func TestATaskFailsOnceAsPlanned(t *testing.T) {
	t.Parallel()
	l := newLedger()
	l.note("fails", fail)
	require.Error(t, l.handle(t.Context(), executor.Task{ID: "fails", Attempt: 1}))
	require.Equal(t, 1, l.size())
	require.NoError(t, l.handle(t.Context(), executor.Task{ID: "fails", Attempt: 2}))
	l.note("later", notYet)
	require.Error(t, l.handle(t.Context(), executor.Task{ID: "later", Attempt: 1, Now: time.Now()}))
	require.NoError(t, l.handle(t.Context(), executor.Task{ID: "later", Attempt: 1, Now: time.Now()}))
	l.note("panics", panics)
	require.Panics(t, func() { _ = l.handle(t.Context(), executor.Task{ID: "panics", Attempt: 1}) })
	require.NoError(t, l.handle(t.Context(), executor.Task{ID: "panics", Attempt: 2}))
	require.Zero(t, l.size())
}

func TestWrongFlagsAreRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-d", "1s"}, {"-rate", "1"}, {"-rate", "1000000"}, {"more"}, {"-what"}} {
		require.Equal(t, 2, run(t.Context(), args, io.Discard, io.Discard), args)
	}
	require.Equal(t, 0, run(t.Context(), []string{"-h"}, io.Discard, io.Discard))
}
