package recovery

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/wheel"
)

func TestRebuildArmsWhatIsDueLaterAndHandsOverWhatIsOverdueOldestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		now := time.Now().UnixMilli()
		const n = 2*pageSize + 500
		for i := range n {
			r.store.due = append(r.store.due, persist.Due{ID: fmt.Sprintf("old%05d", i), DueMS: now - 1_000_000 + int64(i/5000)})
		}
		for i := range n {
			r.store.due = append(r.store.due, persist.Due{ID: fmt.Sprintf("new%05d", i), DueMS: now + 1000}) // one tie over several pages
		}
		require.NoError(t, r.Rebuild(t.Context()))
		require.Len(t, r.get(&r.overdue), n)
		require.True(t, slices.IsSortedFunc(r.overdue, func(a, b wheel.Due) int { return cmp.Compare(a.DueMS, b.DueMS) }))
		require.Len(t, r.wheel.all(), n)
		require.EqualValues(t, 2*n, r.Stats().Rebuilt)
		require.Equal(t, 5, r.store.reads, "a page more only where more was promised")
	})
}

// Cases 47, 61: no limit drops what is overdue.
func TestWhatIsOverdueByDaysRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.store.put("A", time.Now().Add(-8*24*time.Hour).UnixMilli())
		r.store.put("B", 0)
		require.NoError(t, r.Rebuild(t.Context()))
		require.Len(t, r.get(&r.overdue), 2)
	})
}

// Case 48: what falls due meanwhile is handed over, and the rest keeps its time.
func TestARebuildThatTakesLongMovesNoDueTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		nowMS := time.Now().UnixMilli()
		r.store.put("meanwhile", nowMS+30_000)
		r.store.put("later", nowMS+90_000)
		r.store.window = func() { time.Sleep(30 * time.Second) }
		require.NoError(t, r.Rebuild(t.Context()))
		require.Equal(t, []wheel.Due{{ID: "meanwhile", DueMS: nowMS + 30_000}}, r.get(&r.overdue))
		require.NoError(t, r.cfg.Board.Drain(t.Context()))
		require.Equal(t, map[string]int64{"later": nowMS + 90_000}, r.armed())
	})
}

func TestRebuildReportsTheErrorThatEndedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.store.err = errors.New("WRONGTYPE")
		require.ErrorIs(t, r.Rebuild(t.Context()), r.store.err)
	})
}

func TestSweepFindsWhatIsOverdueByMoreThanGraceAndNotHeldHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		now := time.Now().UnixMilli()
		r.store.put("mine, missed", now)
		r.store.put("another's", now+1)
		r.store.put("at work here", now+2)
		r.store.put("within grace", now+800)
		r.store.put("later", now+60_000)
		r.wheel.Schedule("mine, missed", now)
		r.wheel.Schedule("within grace", now+800)
		r.held["at work here"] = true
		r.Start()
		later(time.Second + time.Millisecond)
		require.Equal(t, []wheel.Due{{ID: "mine, missed", DueMS: now}, {ID: "another's", DueMS: now + 1}}, r.get(&r.found))
		require.EqualValues(t, 2, r.Stats().Found)
		require.EqualValues(t, 1, r.Stats().Missed)
		require.NotContains(t, r.wheel.all(), "mine, missed", "its arming has been made up for")
		require.Contains(t, r.log.String(), "sweep_found")
	})
}

func TestSweepPausesWhileMoreIsReadyThanWorkersCanTakeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.store.put("A", time.Now().UnixMilli())
		r.ready.Store(11)
		r.Start()
		later(10 * time.Second)
		r.store.mu.Lock()
		require.Zero(t, r.store.reads)
		r.store.mu.Unlock()
		r.ready.Store(10)
		later(2 * time.Second)
		require.Len(t, r.get(&r.found), 1)
	})
}

// A dead instance's backlog is taken over as fast as it can be worked off, not
// a page a second.
func TestSweepGoesOnAtOnceWhileThereIsMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		for i := range 3*pageSize + 1 {
			r.store.due = append(r.store.due, persist.Due{ID: fmt.Sprintf("%05d", i), DueMS: 1})
		}
		r.store.taken = true
		r.Start()
		later(time.Second + 10*time.Millisecond)
		require.Len(t, r.get(&r.found), 3*pageSize+1)
		r.store.mu.Lock()
		reads := r.store.reads
		r.store.mu.Unlock()
		later(500 * time.Millisecond)
		r.store.mu.Lock()
		require.Equal(t, reads, r.store.reads, "and rests when there is no more")
		r.store.mu.Unlock()
	})
}

func TestReapHandsOverWhatIsDueAndArmsSuccessors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		now := time.Now().UnixMilli()
		r.store.over = []persist.Due{{ID: "A", DueMS: now}, {ID: "B", DueMS: now + 60_000}}
		r.Start()
		later(2 * time.Second)
		require.Equal(t, []wheel.Due{{ID: "A", DueMS: now}}, r.get(&r.reaped))
		require.Empty(t, r.get(&r.overdue))
		require.Equal(t, map[string]int64{"B": now + 60_000}, r.wheel.all())
		require.EqualValues(t, 2, r.Stats().Reaped)
	})
}

// Cases 35, 37, 42: an error ends no loop, is logged once while it lasts, and
// the next round covers the same range.
func TestAnErrorOfTheStoreEndsNoLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.store.put("A", time.Now().UnixMilli())
		r.store.over = []persist.Due{{ID: "B", DueMS: time.Now().UnixMilli()}}
		r.store.err = errors.New("BUSY")
		r.Start()
		later(10 * time.Second)
		require.Empty(t, r.get(&r.found))
		r.store.mu.Lock()
		r.store.err = nil
		r.store.mu.Unlock()
		later(2 * time.Second)
		require.Len(t, r.get(&r.found), 1)
		require.Len(t, r.get(&r.reaped), 1)
		require.Equal(t, 1, strings.Count(r.log.String(), "sweep_failed"))
	})
}

func TestStopIsSafeTwiceAndBeforeStart(t *testing.T) {
	r := setup(t)
	r.Stop()
	r.Start()
	r.Stop()
	r.Stop()
}
