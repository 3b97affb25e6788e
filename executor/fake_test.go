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
	dead    map[string]string // the reason
	forbids map[string]bool   // running, and cancelled meanwhile: no retry

	claimErr  func() error    // asked before each claim
	claimLost bool            // claims are made, and their answers never come
	answerIn  []time.Duration // how long the answers of the next claims are on their way
	settleErr func() error    // asked before each ack, retry and burial
	renewErr  func() error    // asked before each renewal
	renewed   []int           // how many ids each renewal asked for
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
		attempt: map[string]int{}, lost: map[string]bool{}, dead: map[string]string{}, forbids: map[string]bool{},
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
			s.dead[id] = "attempts used up"
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
	if s.claimLost {
		s.mu.Unlock()
		<-ctx.Done()
		s.mu.Lock()
		return persist.Claims{}, ctx.Err()
	}
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

func (s *fakeStore) Bury(ctx context.Context, burials []persist.Burial) ([]persist.Settlement, error) {
	return settle(s, burials, func(b persist.Burial) (persist.Lease, persist.Settlement) {
		if c := s.running[b.ID]; c != nil && c.token == b.Token {
			s.dead[b.ID] = b.Reason
		}
		return b.Lease, persist.Settlement{ID: b.ID, State: persist.Settled}
	})
}

func (s *fakeStore) Renew(ctx context.Context, leases []persist.Lease, lease time.Duration) ([]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewed = append(s.renewed, len(leases))
	if s.renewErr != nil {
		if err := s.renewErr(); err != nil {
			return nil, err
		}
	}
	held := make([]bool, len(leases))
	for i, l := range leases {
		if c := s.running[l.ID]; c != nil && c.token == l.Token {
			c.until, held[i] = time.Now().Add(lease), true
		}
	}
	return held, nil
}

// reap makes due what runs with its lease over.
func (s *fakeStore) reap() (due []wheel.Due) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, c := range s.running {
		if now := time.Now(); !c.until.After(now) {
			delete(s.running, id)
			s.due[id], s.lost[id] = now.UnixMilli(), true
			due = append(due, wheel.Due{ID: id, DueMS: now.UnixMilli()})
		}
	}
	return due
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

// attempts are those of what is due.
func (s *fakeStore) attempts() (list []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.due {
		list = append(list, s.attempt[id])
	}
	return list
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

// due is ids that are due at the instant at.
func due(at time.Time, ids ...string) (list []wheel.Due) {
	for _, id := range ids {
		list = append(list, wheel.Due{ID: id, DueMS: at.UnixMilli()})
	}
	return list
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

// noted is a list that handlers add to while the test reads it.
type noted[T any] struct {
	mu   sync.Mutex
	list []T
}

func (n *noted[T]) add(v T) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, v)
	return len(n.list)
}

func (n *noted[T]) all() []T {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]T(nil), n.list...)
}
