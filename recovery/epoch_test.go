package recovery

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Case 52: an emptied store is noticed within a sweep, and filled again at once.
func TestALossOfTheStoreIsReconciledAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orders := newFakeSource()
		r := setup(t, withSource(orders))
		require.NoError(t, r.Rebuild(t.Context()))
		r.Start()
		later(2500 * time.Millisecond)
		require.Zero(t, r.Stats().ReconcileFound)
		dueMS := time.Now().UnixMilli() + 60_000
		orders.put("A", dueMS) // as if it had stood in the store until now
		r.store.set(func() { r.store.lost = true })
		later(r.cfg.SweepEvery)
		require.EqualValues(t, 1, r.Stats().EpochsLost)
		require.Contains(t, r.log.String(), "epoch_lost")
		require.EqualValues(t, 1, r.Stats().ReconcileFound)
		require.Equal(t, dueMS, r.armed()["A"])
		require.NotContains(t, fmt.Sprint(r.Problems()), "lost writes", "it is reconciled")
	})
}

// Whose turn it is does not matter then, but that nobody works.
func TestALossIsReconciledAfterTheRoundThatBeganBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orders := newFakeSource()
		r := setup(t, withSource(orders))
		r.Start()
		later(time.Second)
		_, _, err := r.store.TakeTurn(t.Context(), "another", 30*time.Second, true)
		require.NoError(t, err)
		orders.put("A", 1)
		r.store.set(func() { r.store.lost = true })
		later(10 * time.Second)
		require.Zero(t, r.Stats().ReconcileFound)
		require.Contains(t, fmt.Sprint(r.Problems()), "is not reconciled with the order database yet")
		later(21 * time.Second)
		require.EqualValues(t, 1, r.Stats().ReconcileFound)
		require.NotContains(t, fmt.Sprint(r.Problems()), "lost writes")
	})
}

// A loss while a round is under way, part of which has been read.
func TestALossWithinARoundIsReconciledByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		orders := newFakeSource()
		r := setup(t, withSource(orders))
		orders.put("B", 1)
		orders.during = func(page int) {
			if page == 1 {
				r.store.set(func() { r.store.lost = true })
				orders.put("A", 1) // behind the cursor
				time.Sleep(2 * time.Second)
			}
		}
		r.Start()
		later(4 * time.Second)
		require.EqualValues(t, 2, r.Stats().ReconcileFound)
		require.NotContains(t, fmt.Sprint(r.Problems()), "lost writes")
	})
}

func TestALossWithoutASourceIsToldForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t, ticks)
		r.store.set(func() { r.store.lost = true })
		r.Start()
		later(59 * time.Minute)
		require.Contains(t, fmt.Sprint(r.Problems()), "there is no Source to reconcile with: schedule every unpaid order again")
		later(2 * time.Minute)
		require.Empty(t, r.Problems())
	})
}

// A copy that was restored has tasks that no wheel knows.
func TestAfterALossAllIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		require.NoError(t, r.Rebuild(t.Context()))
		r.Start()
		later(time.Second)
		dueMS := time.Now().UnixMilli() + 60_000
		r.store.put("restored", dueMS)
		r.store.set(func() { r.store.lost = true })
		later(2 * time.Second)
		require.Equal(t, dueMS, r.armed()["restored"])
	})
}
