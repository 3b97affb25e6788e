package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStepsAreDoneAtTheirInstantsEarliestFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var at []time.Duration // one worker, so no lock
		var steps []*step
		for _, ms := range []int{30, 10, 20, 10, 0} {
			steps = append(steps, &step{at: start.Add(time.Duration(ms) * time.Millisecond), do: func() (*step, error) {
				at = append(at, time.Since(start)/time.Millisecond)
				return nil, nil
			}})
		}
		require.NoError(t, play(t.Context(), 1, steps))
		require.Equal(t, []time.Duration{0, 10, 10, 20, 30}, at)
	})
}

func TestAStepLeadsToAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var did []string
		say := func(what string, next *step) func() (*step, error) {
			return func() (*step, error) { did = append(did, what); return next, nil }
		}
		paid := &step{at: start.Add(time.Hour), do: say("pay a", nil)}
		late := &step{at: start.Add(-time.Hour), do: say("pay b", nil)} // its instant is over: at once
		require.NoError(t, play(t.Context(), 1, []*step{
			{at: start, do: say("create a", paid)},
			{at: start.Add(time.Minute), do: say("create b", late)},
			{at: start.Add(2 * time.Hour), do: say("create c", nil)},
		}))
		require.Equal(t, []string{"create a", "create b", "pay b", "pay a", "create c"}, did)
		require.Equal(t, 2*time.Hour, time.Since(start))
	})
}

func TestNoMoreStepsAtOnceThanWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var busy, most atomic.Int64
		steps := make([]*step, 100)
		for i := range steps {
			steps[i] = &step{at: start, do: func() (*step, error) {
				n := busy.Add(1)
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
				}
				time.Sleep(time.Second)
				busy.Add(-1)
				return nil, nil
			}}
		}
		require.NoError(t, play(t.Context(), 8, steps))
		require.EqualValues(t, 8, most.Load())
		require.Equal(t, 13*time.Second, time.Since(start)) // 100 in rounds of 8
	})
}

func TestAnErrorEndsThePlayAfterTheStepsUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		broken := errors.New("broken")
		ended := false
		never := func() (*step, error) { t.Error("done after an error"); return nil, nil }
		err := play(t.Context(), 2, []*step{
			{at: start.Add(time.Second), do: func() (*step, error) { return &step{at: start, do: never}, broken }},
			{at: start, do: func() (*step, error) {
				time.Sleep(time.Minute)
				ended = true
				return &step{at: start, do: never}, errors.New("a later error")
			}},
			{at: start.Add(time.Hour), do: never},
		})
		require.ErrorIs(t, err, broken)
		require.True(t, ended)
		require.Equal(t, time.Minute, time.Since(start))
	})
}

func TestThePlayEndsWithItsContextAfterTheStepsUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var did []string
		require.NoError(t, play(ctx, 4, []*step{
			{at: start, do: func() (*step, error) {
				time.Sleep(time.Minute)
				did = append(did, "first")
				return nil, nil
			}},
			{at: start.Add(time.Hour), do: func() (*step, error) { did = append(did, "second"); return nil, nil }},
		}))
		require.Equal(t, []string{"first"}, did)
		require.Equal(t, time.Minute, time.Since(start))
	})
}

func TestNothingToPlayIsDoneAtOnce(t *testing.T) {
	t.Parallel()
	require.NoError(t, play(t.Context(), 4, nil))
}
