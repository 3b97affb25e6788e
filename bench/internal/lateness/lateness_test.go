package lateness

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQuantilesAreWhereTheStepOfADelayEnds(t *testing.T) {
	t.Parallel()
	c := new(Counts)
	require.Zero(t, c.Quantile(1), "nothing counted")
	for range 98 {
		c.Add(250 * time.Microsecond)
	}
	c.Add(7 * time.Millisecond)
	c.Add(12*time.Second + time.Millisecond)
	require.InDelta(t, 0.3, c.Quantile(0.5), 1e-9)
	require.InDelta(t, 7.1, c.Quantile(0.99), 1e-9)
	require.InDelta(t, 12_010, c.Quantile(1), 1e-9)
	require.Zero(t, c.Early())
}

func TestEarlyIsCountedAndNotLate(t *testing.T) {
	t.Parallel()
	c := new(Counts)
	c.Add(-time.Nanosecond)
	c.Add(0)
	require.EqualValues(t, 1, c.Early())
	require.InDelta(t, 0.1, c.Quantile(1), 1e-9)
}

func TestADelayBeyondAllStepsIsInTheLast(t *testing.T) {
	t.Parallel()
	c := new(Counts)
	c.Add(24 * time.Hour)
	require.InDelta(t, 1_010_000, c.Quantile(1), 1e-6)
}

func TestTheCanaryOfAnIdleMachineIsNotLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := StartWatch()
		time.Sleep(time.Second)
		w.Stop()
		require.InDelta(t, 0.1, w.Canary.Quantile(1), 1e-9)
		require.Positive(t, w.Peak)
	})
}
