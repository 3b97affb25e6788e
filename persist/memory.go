package persist

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Memory is a Store in the memory of this process: for tests, and for embedding where
// tasks need not outlive the process. A crash or a restart loses all of them. It needs no
// closing, has no goroutine, and its methods are safe for concurrent use.
//
// A change costs about the logarithm of what is pending. Each call is atomic as
// a whole, also beyond MaxBatch, and the outcome of none is ever unknown.
type Memory struct {
	nowMS func() int64

	mu struct {
		sync.Mutex
		tasks tasks
		turn  turnState
	}
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store. nowMS is its clock, Unix milliseconds, and may be
// called from any goroutine; nil is the clock of this machine.
func NewMemory(nowMS func() int64) *Memory {
	if nowMS == nil {
		nowMS = func() int64 { return time.Now().UnixMilli() }
	}
	m := &Memory{nowMS: nowMS}
	m.mu.tasks.all = make(map[string]*task)
	return m
}

// do makes one call: it reads the clock and works on the tasks, unless ctx has
// ended. The arguments have been checked.
func (m *Memory) do(ctx context.Context, op string, work func(s *tasks, now Sample)) error {
	now, err := m.read(ctx, op)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	work(&m.mu.tasks, now)
	return nil
}

// read reads the clock, unless ctx has ended.
func (m *Memory) read(ctx context.Context, op string) (Sample, error) {
	if err := ctx.Err(); err != nil {
		return Sample{}, fmt.Errorf("persist: %s: %w", op, err)
	}
	s := Sample{Sent: time.Now()}
	s.StoreUS = m.nowMS() * 1000
	s.Received = time.Now()
	return s, nil
}

func (s Sample) ms() int64 { return s.StoreUS / 1000 }

// Schedule is as in Store.
func (m *Memory) Schedule(ctx context.Context, dues []Due) error {
	if err := checkDues(dues); err != nil {
		return err
	}
	return m.do(ctx, "schedule", func(s *tasks, _ Sample) {
		for _, d := range dues {
			s.schedule(d.ID, d.DueMS)
		}
	})
}

// Ensure is as in Store.
func (m *Memory) Ensure(ctx context.Context, dues []Due) (ensured []bool, err error) {
	if err := checkDues(dues); err != nil {
		return nil, err
	}
	err = m.do(ctx, "ensure", func(s *tasks, _ Sample) {
		ensured = inOrder(dues, func(d Due) bool { return s.ensure(d.ID, d.DueMS) })
	})
	return ensured, err
}

// Cancel is as in Store.
func (m *Memory) Cancel(ctx context.Context, ids []string) (outcomes []CancelOutcome, err error) {
	if err := checkIDs(ids); err != nil {
		return nil, err
	}
	err = m.do(ctx, "cancel", func(s *tasks, _ Sample) {
		outcomes = inOrder(ids, s.cancel)
	})
	return outcomes, err
}

// Claim is as in Store.
func (m *Memory) Claim(ctx context.Context, token string, ids []string, lease time.Duration, maxAttempts int) (claims Claims, err error) {
	if err := errors.Join(checkClaim(token, lease), checkMaxAttempts(maxAttempts)); err != nil {
		return Claims{}, err
	}
	err = m.do(ctx, "claim", func(s *tasks, now Sample) {
		claims.Clock, claims.NowMS, claims.Sent = now, now.ms(), now.Sent
		claims.Claims = inOrder(ids, func(id string) Claim {
			return s.claim(id, token, now.ms(), ceilMS(lease), maxAttempts)
		})
	})
	return claims, err
}

// Ack is as in Store.
func (m *Memory) Ack(ctx context.Context, leases []Lease) (settlements []Settlement, err error) {
	err = m.do(ctx, "ack", func(s *tasks, _ Sample) {
		settlements = inOrder(leases, s.ack)
	})
	return settlements, err
}

// Retry is as in Store.
func (m *Memory) Retry(ctx context.Context, retries []Retry) (settlements []Settlement, err error) {
	if err := checkRetries(retries); err != nil {
		return nil, err
	}
	err = m.do(ctx, "retry", func(s *tasks, _ Sample) {
		settlements = inOrder(retries, s.retry)
	})
	return settlements, err
}

// Bury is as in Store.
func (m *Memory) Bury(ctx context.Context, burials []Burial) (settlements []Settlement, err error) {
	err = m.do(ctx, "bury", func(s *tasks, now Sample) {
		settlements = inOrder(burials, func(b Burial) Settlement { return s.buryRun(b, now.ms()) })
	})
	return settlements, err
}

// Renew is as in Store.
func (m *Memory) Renew(ctx context.Context, leases []Lease, lease time.Duration) (renewed []bool, err error) {
	if err := checkLease(lease); err != nil {
		return nil, err
	}
	err = m.do(ctx, "renew", func(s *tasks, now Sample) {
		renewed = inOrder(leases, func(l Lease) bool { return s.renew(l, now.ms(), ceilMS(lease)) })
	})
	return renewed, err
}

// Reap is as in Store.
func (m *Memory) Reap(ctx context.Context, limit int) (dues []Due, err error) {
	if err := checkLimit(limit); err != nil {
		return nil, err
	}
	err = m.do(ctx, "reap", func(s *tasks, now Sample) {
		dues = s.reap(now.ms(), limit)
	})
	return dues, err
}

// Requeue is as in Store.
func (m *Memory) Requeue(ctx context.Context, ids []string) (settlements []Settlement, err error) {
	if err := checkIDs(ids); err != nil {
		return nil, err
	}
	err = m.do(ctx, "requeue", func(s *tasks, now Sample) {
		settlements = inOrder(ids, func(id string) Settlement { return s.requeue(id, now.ms()) })
	})
	return settlements, err
}

// Discard is as in Store.
func (m *Memory) Discard(ctx context.Context, ids []string) (discarded []bool, err error) {
	if err := checkIDs(ids); err != nil {
		return nil, err
	}
	err = m.do(ctx, "discard", func(s *tasks, _ Sample) {
		discarded = inOrder(ids, s.discard)
	})
	return discarded, err
}

// Lookup is as in Store.
func (m *Memory) Lookup(ctx context.Context, ids []string) (records []Record, err error) {
	if err := checkIDs(ids); err != nil {
		return nil, err
	}
	err = m.do(ctx, "lookup", func(s *tasks, _ Sample) {
		records = inOrder(ids, func(id string) Record { return s.find(id).record() })
	})
	return records, err
}

// Depth is as in Store.
func (m *Memory) Depth(ctx context.Context) (depth Depth, err error) {
	err = m.do(ctx, "depth", func(s *tasks, _ Sample) {
		depth.Due = int64(s.in[StatusDue].count)
		depth.Running = int64(s.in[StatusRunning].count)
		depth.Dead = int64(s.in[StatusDead].count)
	})
	return depth, err
}

// Epoch tells of no loss: what this store holds is lost with the process, or not at
// all.
func (m *Memory) Epoch(ctx context.Context) (lost bool, err error) {
	_, err = m.read(ctx, "epoch")
	return false, err
}

// TakeTurn is as in Store.
func (m *Memory) TakeTurn(ctx context.Context, owner string, lease time.Duration, force bool) (turn Turn, left time.Duration, err error) {
	if err := checkTurn(owner, lease); err != nil {
		return TurnRefused, 0, err
	}
	err = m.do(ctx, "taketurn", func(_ *tasks, now Sample) {
		turn, left = m.mu.turn.ask(owner, howToTake(force), now.ms(), ceilMS(lease))
	})
	return turn, left, err
}

// EndTurn is as in Store.
func (m *Memory) EndTurn(ctx context.Context, owner string, rest time.Duration) (ended bool, err error) {
	if err := checkTurn(owner, rest); err != nil {
		return false, err
	}
	err = m.do(ctx, "endturn", func(_ *tasks, now Sample) {
		turn, _ := m.mu.turn.ask(owner, "rest", now.ms(), ceilMS(rest))
		ended = turn == TurnKept
	})
	return ended, err
}

// Now is as in Store.
func (m *Memory) Now(ctx context.Context) (Sample, error) { return m.read(ctx, "now") }

// Check warns that nothing is durable.
func (m *Memory) Check(ctx context.Context) (warnings []string, err error) {
	_, err = m.read(ctx, "check")
	return []string{"tasks are kept in the memory of this process, so a crash or a restart loses all of them: use a persist.Redis where that matters"}, err
}

// inOrder asks for every item of a list, and returns the answers in its order.
func inOrder[Q, A any](list []Q, ask func(Q) A) []A {
	answers := make([]A, len(list))
	for i, q := range list {
		answers[i] = ask(q)
	}
	return answers
}
