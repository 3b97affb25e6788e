package recovery

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/orderwheel/orderwheel/internal/arming"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/wheel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeStore holds due tasks in order, and answers by time.Now.
type fakeStore struct {
	mu    sync.Mutex
	due   []persist.Due
	over  []persist.Due // what the next Reap takes back
	err   error
	reads int
}

func (s *fakeStore) put(id string, dueMS int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due = append(s.due, persist.Due{ID: id, DueMS: dueMS})
	slices.SortFunc(s.due, func(a, b persist.Due) int {
		return cmp.Or(cmp.Compare(a.DueMS, b.DueMS), strings.Compare(a.ID, b.ID))
	})
}

func (s *fakeStore) sample() persist.Sample {
	now := time.Now()
	return persist.Sample{Sent: now, Received: now, StoreUS: now.UnixMicro()}
}

func (s *fakeStore) Window(_ context.Context, after persist.Cursor, untilMS int64, limit int) (persist.Page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.err != nil {
		return persist.Page{}, s.err
	}
	p := persist.Page{Next: after, Clock: s.sample()}
	for _, d := range s.due {
		if d.DueMS > untilMS || d.DueMS < after.DueMS || d.DueMS == after.DueMS && d.ID <= after.ID {
			continue
		}
		if len(p.Due) == limit {
			p.More = true
			break
		}
		p.Due = append(p.Due, d)
		p.Next = persist.Cursor(persist.Cursor{DueMS: d.DueMS, ID: d.ID})
	}
	return p, nil
}

func (s *fakeStore) Reap(context.Context, int) ([]persist.Due, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	over := s.over
	s.over = nil
	return over, nil
}

func (s *fakeStore) Now(context.Context) (persist.Sample, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sample(), s.err
}

// armed is a wheel that only remembers.
type armed struct{ due map[string]int64 }

func (a *armed) Schedule(id string, dueMS int64) { a.due[id] = dueMS }
func (a *armed) Cancel(id string) bool           { _, ok := a.due[id]; delete(a.due, id); return ok }
func (a *armed) Len() int                        { return len(a.due) }
func (a *armed) NextDue() (int64, bool)          { return 0, false }
func (a *armed) Start(func([]wheel.Due))         {}
func (a *armed) Stop()                           {}

type rig struct {
	*Recovery
	store          *fakeStore
	wheel          *armed
	found, overdue []wheel.Due
	held           map[string]bool
	ready          atomic.Int64
	log            bytes.Buffer
}

func setup(t *testing.T) *rig {
	r := &rig{store: &fakeStore{}, wheel: &armed{map[string]int64{}}, held: map[string]bool{}}
	take := func(into *[]wheel.Due) func([]wheel.Due) []wheel.Due {
		return func(due []wheel.Due) (taken []wheel.Due) {
			for _, d := range due {
				if !r.held[d.ID] {
					r.held[d.ID] = true
					taken = append(taken, d)
				}
			}
			*into = append(*into, taken...)
			return taken
		}
	}
	clock := NewClock()
	clock.Observe(r.store.sample())
	r.Recovery = New(Config{
		Store: r.store, Board: arming.New(r.wheel), Clock: clock, SweepEvery: time.Second, Grace: 250 * time.Millisecond,
		ReadyLimit: 10, Logger: slog.New(slog.NewTextHandler(&r.log, nil)), Ready: func() int { return int(r.ready.Load()) },
		Found: take(&r.found), Overdue: take(&r.overdue),
	})
	t.Cleanup(r.Stop)
	return r
}

func later(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

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
		require.Len(t, r.overdue, n)
		require.True(t, slices.IsSortedFunc(r.overdue, func(a, b wheel.Due) int { return cmp.Compare(a.DueMS, b.DueMS) }))
		require.Len(t, r.wheel.due, n)
		require.EqualValues(t, 2*n, r.Stats().Rebuilt)
		require.Equal(t, 5, r.store.reads, "a page more only where more was promised")
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
		r.wheel.due["mine, missed"] = now
		r.wheel.due["within grace"] = now + 800
		r.held["at work here"] = true
		r.Start()
		later(time.Second + time.Millisecond)
		require.Equal(t, []wheel.Due{{ID: "mine, missed", DueMS: now}, {ID: "another's", DueMS: now + 1}}, r.found)
		require.EqualValues(t, 1, r.Stats().Missed)
		require.EqualValues(t, 1, r.Stats().TakenOver)
		require.NotContains(t, r.wheel.due, "mine, missed", "its arming has been made up for")
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
		require.Len(t, r.found, 1)
	})
}

func TestReapHandsOverWhatIsDueAndArmsSuccessors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		now := time.Now().UnixMilli()
		r.store.over = []persist.Due{{ID: "A", DueMS: now}, {ID: "B", DueMS: now + 60_000}}
		r.Start()
		later(2 * time.Second)
		require.Equal(t, []wheel.Due{{ID: "A", DueMS: now}}, r.overdue)
		require.Equal(t, map[string]int64{"B": now + 60_000}, r.wheel.due)
		require.EqualValues(t, 2, r.Stats().Reaped)
	})
}

// Cases 35, 37, 42: an error ends no loop, is logged once while it lasts, and the
// next round covers the same range.
func TestAnErrorOfTheStoreEndsNoLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.store.put("A", time.Now().UnixMilli())
		r.store.over = []persist.Due{{ID: "B", DueMS: time.Now().UnixMilli()}}
		r.store.err = errors.New("BUSY")
		r.Start()
		later(10 * time.Second)
		require.Empty(t, r.found)
		r.store.mu.Lock()
		r.store.err = nil
		r.store.mu.Unlock()
		later(2 * time.Second)
		require.Len(t, r.found, 1)
		require.Len(t, r.overdue, 1)
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
