package executor

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/internal/arming"
	"github.com/orderwheel/orderwheel/persist"
)

// awayStore is a store that can be away: its calls hang until it is back, or until
// their ctx ends.
type awayStore struct {
	*fakeStore
	gate struct {
		sync.Mutex
		back     chan struct{} // nil: it is there
		executes bool          // it executes claims, and only their answers are lost
	}
}

func (s *awayStore) leave(executes bool) {
	s.gate.Lock()
	defer s.gate.Unlock()
	s.gate.back, s.gate.executes = make(chan struct{}), executes
}

func (s *awayStore) comeBack() {
	s.gate.Lock()
	defer s.gate.Unlock()
	close(s.gate.back)
	s.gate.back = nil
}

// wait waits until the store is there.
func (s *awayStore) wait(ctx context.Context, meanwhile func()) error {
	s.gate.Lock()
	back, executes := s.gate.back, s.gate.executes
	s.gate.Unlock()
	if back == nil {
		return nil
	}
	if executes {
		meanwhile()
	}
	select {
	case <-back:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *awayStore) Claim(ctx context.Context, token string, ids []string, lease time.Duration, most int) (persist.Claims, error) {
	err := s.wait(ctx, func() { _, _ = s.fakeStore.Claim(ctx, token, ids, lease, most) })
	if err != nil {
		return persist.Claims{}, err
	}
	return s.fakeStore.Claim(ctx, token, ids, lease, most)
}

func (s *awayStore) Ack(ctx context.Context, leases []persist.Lease) ([]persist.Settlement, error) {
	if err := s.wait(ctx, func() {}); err != nil {
		return nil, err
	}
	return s.fakeStore.Ack(ctx, leases)
}

func (s *awayStore) Retry(ctx context.Context, retries []persist.Retry) ([]persist.Settlement, error) {
	if err := s.wait(ctx, func() {}); err != nil {
		return nil, err
	}
	return s.fakeStore.Retry(ctx, retries)
}

func (s *awayStore) Bury(ctx context.Context, burials []persist.Burial) ([]persist.Settlement, error) {
	if err := s.wait(ctx, func() {}); err != nil {
		return nil, err
	}
	return s.fakeStore.Bury(ctx, burials)
}

func (s *awayStore) Renew(ctx context.Context, leases []persist.Lease, lease time.Duration) ([]bool, error) {
	if err := s.wait(ctx, func() {}); err != nil {
		return nil, err
	}
	return s.fakeStore.Renew(ctx, leases, lease)
}

// oneCall is one call of the handler.
type oneCall struct {
	id        string
	unclaimed bool
	at        time.Duration // since the test began
	attempt   int
	due       time.Duration // since the test began
}

// callsSeen records the calls of a handler, and fails the test when an id runs twice
// at once.
type callsSeen struct {
	t     *testing.T
	start time.Time
	then  func(oneCall) error // what the handler does; nil: nothing

	lock sync.Mutex
	list []oneCall
	runs map[string]bool
	most int // at once
}

func (c *callsSeen) handle(_ context.Context, task Task) error {
	one := oneCall{task.ID, task.Unclaimed, time.Since(c.start), task.Attempt, task.Due.Sub(c.start)}
	c.lock.Lock()
	if c.runs[task.ID] {
		c.t.Errorf("%q runs twice at once", task.ID)
	}
	if task.Now.Before(task.Due) {
		c.t.Errorf("%q runs at %v and is due at %v", task.ID, task.Now, task.Due)
	}
	c.runs[task.ID] = true
	c.most = max(c.most, len(c.runs))
	c.list = append(c.list, one)
	c.lock.Unlock()
	defer func() {
		c.lock.Lock()
		defer c.lock.Unlock()
		delete(c.runs, task.ID)
	}()
	if c.then == nil {
		return nil
	}
	return c.then(one)
}

// of are the calls for id: of those with a claim, or without.
func (c *callsSeen) of(id string, unclaimed bool) (of []oneCall) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, one := range c.list {
		if one.id == id && one.unclaimed == unclaimed {
			of = append(of, one)
		}
	}
	return of
}

func (c *callsSeen) all() []oneCall {
	c.lock.Lock()
	defer c.lock.Unlock()
	return slices.Clone(c.list)
}

// atOnce is how many ran at once, at most.
func (c *callsSeen) atOnce() int {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.most
}

// awayRig is a rig on a store that can be away.
type awayRig struct {
	*rig
	*callsSeen
	far *awayStore
}

// setupAway makes one; then is what the handler does.
func setupAway(t *testing.T, then func(oneCall) error, change ...func(*Config)) awayRig {
	c := &callsSeen{t: t, start: time.Now(), then: then, runs: map[string]bool{}}
	far := &awayStore{}
	change = append([]func(*Config){func(cfg *Config) {
		far.fakeStore = cfg.Store.(*fakeStore)
		cfg.Store = far
	}}, change...)
	return awayRig{setup(t, c.handle, change...), c, far}
}

// The user's calls, as the engine makes them. answer is what the store does, and may
// take its time.
func (r awayRig) move(id string, at time.Time, answer func()) {
	r.cfg.Calls.Begin(id)
	answer()
	r.store.schedule(id, at.UnixMilli())
	r.UserScheduled(id, at.UnixMilli())
}

func (r awayRig) cancel(id string, answer func()) (cancelled bool) {
	r.cfg.Calls.Begin(id)
	answer()
	cancelled = r.store.cancel(id)
	return !r.UserCancelled(id) && cancelled
}

// fail is a call without an answer.
func (r awayRig) fail(id string, how arming.End, answer func()) {
	r.cfg.Calls.Begin(id)
	answer()
	r.UserFailed(id, how == arming.Unknown)
}

// now is an answer that takes no time.
func now() {}
