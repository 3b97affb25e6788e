package recovery

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
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
	"github.com/orderwheel/orderwheel/internal/logbuffer"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/wheel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeStore holds due tasks in order, and answers by time.Now, which may be off.
type fakeStore struct {
	*persist.Memory // the turns, and what is ensured

	mu    sync.Mutex
	due   []persist.Due
	over  []persist.Due // what the next Reap takes back
	err   error
	reads int
	taken bool // what has been read is claimed at once
	lost  bool // the next Epoch tells so

	asked  []persist.Cursor // of each Window
	offset time.Duration    // of its clock to ours
	window func()           // called in each Window, if not nil
}

func newFakeStore() *fakeStore {
	s := new(fakeStore)
	s.Memory = persist.NewMemory(func() int64 { return time.Now().UnixMilli() })
	return s
}

func (s *fakeStore) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due = slices.DeleteFunc(s.due, func(d persist.Due) bool { return d.ID == id })
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
	return persist.Sample{Sent: now, Received: now, StoreUS: now.Add(s.offset).UnixMicro()}
}

func (s *fakeStore) Window(_ context.Context, after persist.Cursor, untilMS int64, limit int) (persist.Page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	s.asked = append(s.asked, after)
	if s.window != nil {
		s.window()
	}
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
	if s.taken {
		s.due = s.due[len(p.Due):]
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

func (s *fakeStore) Epoch(context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := s.lost
	s.lost = false
	return lost, s.err
}

// set changes the store under its lock.
func (s *fakeStore) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *fakeStore) readCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

// armed is a wheel that only remembers.
type armed struct {
	mu  sync.Mutex
	due map[string]int64
}

func newArmed() *armed { return &armed{due: map[string]int64{}} }

func (a *armed) Schedule(id string, dueMS int64) { a.mu.Lock(); defer a.mu.Unlock(); a.due[id] = dueMS }

func (a *armed) Cancel(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.due[id]
	delete(a.due, id)
	return ok
}

func (a *armed) Len() int                { a.mu.Lock(); defer a.mu.Unlock(); return len(a.due) }
func (a *armed) NextDue() (int64, bool)  { return 0, false }
func (a *armed) Start(func([]wheel.Due)) {}
func (a *armed) Stop()                   {}

func (a *armed) all() map[string]int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.due)
}

// ticking is a wheel that also fires, though not on time.
type ticking struct {
	*armed
	nowMS func() int64
	quit  chan struct{}
	once  sync.Once
}

func newTicking(nowMS func() int64) *ticking {
	return &ticking{armed: newArmed(), nowMS: nowMS, quit: make(chan struct{})}
}

func (w *ticking) Start(fire func([]wheel.Due)) {
	go func() {
		for {
			select {
			case <-w.quit:
				return
			case <-time.After(100 * time.Millisecond):
				if due := w.expired(w.nowMS()); len(due) > 0 {
					fire(due)
				}
			}
		}
	}()
}

func (w *ticking) expired(nowMS int64) (due []wheel.Due) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, ms := range w.due {
		if ms <= nowMS {
			due = append(due, wheel.Due{ID: id, DueMS: ms})
			delete(w.due, id)
		}
	}
	return due
}

func (w *ticking) Stop() { w.once.Do(func() { close(w.quit) }) }

// offers are the ids that were handed over, by where they came from.
type offers struct {
	mu                                 sync.Mutex
	found, overdue, reaped, reconciled []wheel.Due
	held                               map[string]bool
}

func (o *offers) take(into *[]wheel.Due) func([]wheel.Due) []wheel.Due {
	return func(due []wheel.Due) (taken []wheel.Due) {
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, d := range due {
			if !o.held[d.ID] {
				o.held[d.ID] = true
				taken = append(taken, d)
			}
		}
		*into = append(*into, taken...)
		return taken
	}
}

func (o *offers) get(from *[]wheel.Due) []wheel.Due {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(*from)
}

type rig struct {
	*Recovery
	offers
	store *fakeStore
	wheel *armed
	ready atomic.Int64
	fired func([]wheel.Due) // what the wheel fires, where it is not nil
	log   logbuffer.Buffer
}

// armed is what the wheel in use holds.
func (r *rig) armed() map[string]int64 {
	return r.cfg.Board.Wheel().(interface{ all() map[string]int64 }).all()
}

// ticks gives the rig a wheel that fires.
func ticks(c *Config) { c.Board = arming.New(newTicking(c.Clock.NowMS)) }

func setup(t *testing.T, change ...func(*Config)) *rig {
	r := &rig{store: newFakeStore(), wheel: newArmed()}
	r.held = map[string]bool{}
	clock := NewClock()
	clock.Observe(r.store.sample())
	cfg := Config{
		Store: r.store, Board: arming.New(r.wheel), Clock: clock, SweepEvery: time.Second, Grace: 250 * time.Millisecond,
		Horizon: time.Hour, ReconcileEvery: 5 * time.Minute,
		NewWheel:   func() wheel.Wheel { return newTicking(clock.NowMS) },
		ReadyLimit: 10, Logger: slog.New(slog.NewTextHandler(&r.log, nil)), Ready: func() int { return int(r.ready.Load()) },
		Found: r.take(&r.found), Overdue: r.take(&r.overdue), Reaped: r.take(&r.reaped), Reconciled: r.take(&r.reconciled),
	}
	for _, f := range change {
		f(&cfg)
	}
	r.Recovery = New(cfg)
	r.cfg.Board.Start()
	r.cfg.Board.StartWheel(func(due []wheel.Due) {
		if r.fired != nil {
			r.fired(due)
		}
	})
	t.Cleanup(func() {
		r.Stop()
		require.NoError(t, r.cfg.Board.Stop(context.Background()))
		r.cfg.Board.Wheel().Stop()
	})
	return r
}

func later(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
