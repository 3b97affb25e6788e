package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func planOf(o options) []event { return newPlan(o, rand.New(rand.NewPCG(o.seed, 0))) }

func TestTheSameSeedGivesTheSamePlan(t *testing.T) {
	t.Parallel()
	o := options{processes: 2, kills: 30, redisKills: 5, seed: 1}
	plan := planOf(o)
	require.Equal(t, plan, planOf(o))
	o.seed = 2
	require.NotEqual(t, plan, planOf(o))
}

func TestAPlanHasWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	for _, o := range []options{
		{processes: 2, kills: 30, redisKills: 5, seed: 1}, {processes: 3, kills: 18, seed: 2}, {processes: 1, kills: 1, redisKills: 1}, {processes: 1},
	} {
		plan := planOf(o)
		require.True(t, slices.IsSortedFunc(plan, func(a, b event) int { return int(1e9 * (a.At - b.At)) }))
		count := map[action]int{}
		kills := map[step]int{}
		for _, e := range plan {
			require.Contains(t, []bool{true}, e.At >= 0 && e.At < 1)
			require.Less(t, e.Slot, o.processes)
			count[e.Do]++
			switch e.Do {
			case killWorker:
				kills[e.Step]++
			case pauseWorker:
				require.GreaterOrEqual(t, e.For, lease)
			case killRedis:
				require.Less(t, e.For, longestDown)
			}
		}
		require.Equal(t, o.kills, count[killWorker])
		require.Equal(t, o.redisKills, count[killRedis])
		require.Equal(t, (o.kills+9)/10, count[pauseWorker])
		require.InDelta(t, o.kills, 2*kills[atRandom], 1)
		if o.kills >= 2*len(namedSteps) {
			for _, s := range namedSteps {
				require.NotZero(t, kills[s], s)
			}
		}
		n := len(ofRedis(plan))
		for slot := range o.processes {
			n += len(of(plan, slot))
		}
		require.Len(t, plan, n)
	}
}

func TestTheSameSeedGivesTheSameOrders(t *testing.T) {
	t.Parallel()
	j := job{Orders: 1000, Seed: 7, Start: time.UnixMilli(1_700_000_000_000), Spread: time.Minute}
	pays, extends := 0, 0
	for i := range j.Orders {
		c := j.customer(i, time.Second)
		require.Equal(t, c, j.customer(i, time.Second))
		require.NoError(t, c.order.Validate())
		require.False(t, c.order.ExpireAt.Before(c.createAt.Add(shortestLife-time.Millisecond)))
		require.True(t, c.extendTo.After(c.order.ExpireAt))
		if !c.payAt.IsZero() {
			pays++
			require.False(t, c.payAt.Before(c.createAt))
		}
		if !c.extendAt.IsZero() {
			extends++
		}
	}
	require.InDelta(t, 350, pays, 100)
	require.InDelta(t, 200, extends, 100)
	j.Seed++
	require.NotEqual(t, job{Orders: 1000, Seed: 7, Start: j.Start, Spread: j.Spread}.customer(3, 0), j.customer(3, 0))
}

func TestAScheduleIsKnownByItsFlush(t *testing.T) {
	t.Parallel()
	for args, want := range map[*[]any]bool{
		{"evalsha", "sha", 2, "k1", "k2", "session", uint64(1), "s", 1, "5", "id"}: true,
		{"evalsha", "sha", 2, "k1", "k2", "session", uint64(1), "x", 1, "s"}:       false,
		{"evalsha", "sha", 2, "k1", "k2", "s", "s"}:                                false,
		{"evalsha", "sha", 2, "k1", "k2"}:                                          false,
		{"evalsha", "sha"}:                                                         false,
		{"evalsha", "sha", "2", "k1", "k2", "session", 1, "s"}:                     false,
	} {
		require.Equal(t, want, schedules(*args), fmt.Sprint(*args))
	}
}
