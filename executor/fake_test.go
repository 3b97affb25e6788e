package executor

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/internal/arming"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/wheel"
)

// fakeStore keeps the states of the real one in plain maps, with one goroutine
// in it at a time. It answers by time.Now, which a synctest bubble controls.
type fakeStore struct {
	mu      sync.Mutex
	due     map[string]int64
	running map[string]*fakeClaim
	first   map[string]int64
	attempt map[string]int
	lost    map[string]bool
	forbids map[string]bool // running, and cancelled meanwhile: no retry

	claimErr  func() error    // asked before each claim
	answerIn  []time.Duration // how long the answers of the next claims are on their way
	settleErr func() error    // asked before each ack and retry
	tokens    []string        // of every claim call, also those that failed
	maxClaim  int             // most ids in one claim
	maxHeld   int             // most ids running at once
}

type fakeClaim struct {
	token string
	until time.Time
}

func newFakeStore() *fakeStore {
	return &fakeStore{
		due: map[string]int64{}, running: map[string]*fakeClaim{}, first: map[string]int64{},
		attempt: map[string]int{}, lost: map[string]bool{}, forbids: map[string]bool{},
	}
}

func (s *fakeStore) schedule(id string, dueMS int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due[id], s.first[id], s.attempt[id] = dueMS, dueMS, 0
}

func (s *fakeStore) cancel(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, due := s.due[id]
	delete(s.due, id)
	s.forbids[id] = s.running[id] != nil
	return due && s.running[id] == nil
}

func (s *fakeStore) Claim(ctx context.Context, token string, ids []string, lease time.Duration, maxAttempts int) (persist.Claims, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = append(s.tokens, token)
	if s.claimErr != nil {
		if err := s.claimErr(); err != nil {
			return persist.Claims{}, err
		}
	}
	now := time.Now()
	answer := persist.Claims{NowMS: now.UnixMilli(), Sent: now, Clock: persist.Sample{Sent: now, Received: now, StoreUS: now.UnixMicro()}}
	s.maxClaim = max(s.maxClaim, len(ids))
	for _, id := range ids {
		dueMS, isDue := s.due[id]
		c := persist.Claim{ID: id}
		switch {
		case s.running[id] != nil && s.running[id].token == token:
			c.State, c.Attempt, c.FirstDueMS = persist.Claimed, s.attempt[id], s.first[id]
		case s.running[id] != nil:
			c.State = persist.Busy
		case isDue && dueMS <= now.UnixMilli() && maxAttempts > 0 && s.attempt[id] >= maxAttempts:
			delete(s.due, id)
			c.State = persist.Buried
		case isDue && dueMS <= now.UnixMilli():
			delete(s.due, id)
			s.attempt[id]++
			s.running[id] = &fakeClaim{token: token, until: now.Add(lease)}
			c.State, c.Attempt, c.FirstDueMS = persist.Claimed, s.attempt[id], s.first[id]
		case isDue:
			c.State, c.DueMS, c.LeftMS = persist.NotYet, dueMS, dueMS-now.UnixMilli()
		}
		answer.Claims = append(answer.Claims, c)
	}
	s.maxHeld = max(s.maxHeld, len(s.running))
	if len(s.answerIn) > 0 {
		wait := s.answerIn[0]
		s.answerIn = s.answerIn[1:]
		s.mu.Unlock()
		time.Sleep(wait)
		s.mu.Lock()
	}
	return answer, nil
}

func (s *fakeStore) Ack(ctx context.Context, leases []persist.Lease) ([]persist.Settlement, error) {
	return settle(s, leases, func(l persist.Lease) (persist.Lease, persist.Settlement) {
		return l, persist.Settlement{ID: l.ID, State: persist.Settled}
	})
}

func (s *fakeStore) Retry(ctx context.Context, retries []persist.Retry) ([]persist.Settlement, error) {
	return settle(s, retries, func(r persist.Retry) (persist.Lease, persist.Settlement) {
		if _, successor := s.due[r.ID]; successor {
			return r.Lease, persist.Settlement{ID: r.ID} // it wins
		}
		if s.forbids[r.ID] {
			return r.Lease, persist.Settlement{ID: r.ID, State: persist.Settled}
		}
		if c := s.running[r.ID]; c != nil && c.token == r.Token {
			s.due[r.ID] = r.DueMS
			s.lost[r.ID] = s.lost[r.ID] || r.Abandoned
			if r.Uncounted {
				s.attempt[r.ID]--
			}
		}
		return r.Lease, persist.Settlement{ID: r.ID}
	})
}

// settle ends the leases of a batch that are current, with the answer that op
// gives, and refuses the others.
func settle[T any](s *fakeStore, batch []T, op func(T) (persist.Lease, persist.Settlement)) ([]persist.Settlement, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settleErr != nil {
		if err := s.settleErr(); err != nil {
			return nil, err
		}
	}
	var answers []persist.Settlement
	for _, one := range batch {
		lease, a := op(one)
		if c := s.running[lease.ID]; c != nil && c.token == lease.Token {
			delete(s.running, lease.ID)
			delete(s.forbids, lease.ID)
			if dueMS, ok := s.due[lease.ID]; ok { // by the retry, or by a successor
				a = persist.Settlement{ID: lease.ID, State: persist.Scheduled, DueMS: dueMS}
			}
		} else {
			a = persist.Settlement{ID: lease.ID}
		}
		answers = append(answers, a)
	}
	return answers, nil
}

// left is what stands in the store: due ids and running ids.
func (s *fakeStore) left() (due, running int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.due), len(s.running)
}

// timers is a wheel of one time.Timer per id: enough for tests in a synctest
// bubble.
type timers struct {
	mu    sync.Mutex
	armed map[string]*time.Timer
	fire  func([]wheel.Due)
}

func (w *timers) Schedule(id string, dueMS int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.armed[id]; t != nil {
		t.Stop()
	}
	var t *time.Timer
	t = time.AfterFunc(time.Until(time.UnixMilli(dueMS)), func() {
		w.mu.Lock()
		mine := w.armed[id] == t
		if mine {
			delete(w.armed, id)
		}
		w.mu.Unlock()
		if mine {
			w.fire([]wheel.Due{{ID: id, DueMS: dueMS}})
		}
	})
	w.armed[id] = t
}

func (w *timers) Cancel(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.armed[id]
	delete(w.armed, id)
	return t != nil && t.Stop()
}

func (w *timers) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.armed)
}
func (w *timers) NextDue() (int64, bool)  { return 0, false }
func (w *timers) Start(func([]wheel.Due)) {}
func (w *timers) Stop()                   {}

// rig is an executor on a fakeStore, with a wheel of timers.
type rig struct {
	*Executor
	store *fakeStore
	wheel *timers
}

// setup starts an executor; change may alter its Config first. It is stopped,
// and must stop, at the end of the test.
func setup(t *testing.T, handler Handler, change ...func(*Config)) *rig {
	t.Helper()
	r := &rig{store: newFakeStore(), wheel: &timers{armed: map[string]*time.Timer{}}}
	cfg := Config{
		Store: r.store, Board: arming.New(r.wheel), Handler: handler, Workers: 4,
		Lease: 30 * time.Second, HandlerTimeout: 30 * time.Second,
		Backoff: Backoff{Base: time.Second, Cap: time.Minute},
		NowMS:   func() int64 { return time.Now().UnixMilli() },
		LowerMS: func() int64 { return time.Now().UnixMilli() },
		Calls:   new(arming.Calls),
		Observe: func(persist.Sample) {},
		Logger:  slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&cfg)
	}
	r.Executor = New(cfg)
	r.wheel.fire = func(due []wheel.Due) { r.Offer(due, FromWheel) }
	cfg.Board.Start()
	t.Cleanup(func() { require.NoError(t, cfg.Board.Stop(context.Background())) })
	require.NoError(t, r.Start())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		require.NoError(t, r.Stop(ctx))
	})
	return r
}

// requireClaim is for tests of what happens under claims alone.
func requireClaim(c *Config) { c.RequireClaim = true }

// schedule makes id due in the store and arms it.
func (r *rig) schedule(id string, at time.Time) {
	r.store.schedule(id, at.UnixMilli())
	r.cfg.Board.UserScheduled(id, at.UnixMilli())
}

// sweep offers what is overdue in the store, as recovery does.
func (r *rig) sweep() {
	r.store.mu.Lock()
	var due []wheel.Due
	for id, dueMS := range r.store.due {
		if dueMS <= time.Now().UnixMilli() {
			due = append(due, wheel.Due{ID: id, DueMS: dueMS})
		}
	}
	r.store.mu.Unlock()
	r.Offer(due, FromSweep)
}

// later lets that much time pass in the bubble, and waits until all is at rest.
func later(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
