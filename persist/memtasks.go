package persist

import "fmt"

// tasks is what a Memory holds, and the transitions: the table of the package
// documentation, line by line, one id at a time. It knows no clock and no lock.
//
// An id of all stands in the set of its status and in no other; an id that
// is gone is not in all.
type tasks struct {
	all map[string]*task
	in  [StatusDead + 1]sorted // by Status; that of StatusGone stays empty
}

type task struct {
	id     string
	status Status
	atMS   int64 // due, end of the lease, or burial: what orders it within its set

	attempt int
	ran     bool  // firstMS is known
	firstMS int64 // due time of the first attempt
	lost    bool

	token     string // running
	cancelled bool   // running
	again     bool   // running: it has a successor
	againMS   int64

	reason string // dead
}

// find returns the task of id; one that is gone is made up, and not kept yet.
func (s *tasks) find(id string) *task {
	if t, ok := s.all[id]; ok {
		return t
	}
	return &task{id: id}
}

// move puts t where to says, and forgets what belongs to a run or a burial.
func (s *tasks) move(t *task, to Status, atMS int64) {
	if t.status != StatusGone {
		s.in[t.status].remove(Cursor{DueMS: t.atMS, ID: t.id})
	}
	t.status, t.atMS = to, atMS
	t.token, t.cancelled, t.again, t.againMS, t.reason = "", false, false, 0, ""
	if to == StatusGone {
		delete(s.all, t.id)
		return
	}
	s.all[t.id] = t
	s.in[to].insert(Cursor{DueMS: t.atMS, ID: t.id})
}

// fresh makes t due with no past.
func (s *tasks) fresh(t *task, dueMS int64) {
	t.attempt, t.ran, t.firstMS, t.lost = 0, false, 0, false
	s.move(t, StatusDue, dueMS)
}

// lease moves the end of a running task's lease.
func (s *tasks) lease(t *task, untilMS int64) {
	s.in[StatusRunning].remove(Cursor{DueMS: t.atMS, ID: t.id})
	t.atMS = untilMS
	s.in[StatusRunning].insert(Cursor{DueMS: t.atMS, ID: t.id})
}

func (t *task) held(token string) bool { return t.status == StatusRunning && t.token == token }

func (s *tasks) schedule(id string, dueMS int64) {
	t := s.find(id)
	if t.status == StatusRunning {
		t.again, t.againMS, t.cancelled = true, dueMS, false
		return
	}
	s.fresh(t, dueMS)
}

func (s *tasks) ensure(id string, dueMS int64) bool {
	t := s.find(id)
	if t.status != StatusGone {
		return false
	}
	s.fresh(t, dueMS)
	return true
}

func (s *tasks) cancel(id string) CancelOutcome {
	t := s.find(id)
	switch t.status {
	case StatusRunning:
		t.again, t.againMS, t.cancelled = false, 0, true
		return Running
	case StatusDue:
		s.move(t, StatusGone, 0)
		if t.lost {
			return Running
		}
		return Cancelled
	}
	return NotFound
}

func (s *tasks) claim(id, token string, nowMS, leaseMS int64, maxAttempts int) Claim {
	t := s.find(id)
	c := Claim{ID: id}
	switch {
	case t.held(token): // its answer was lost
		s.lease(t, nowMS+leaseMS)
	case t.status == StatusRunning:
		c.State = Busy
		return c
	case t.status != StatusDue:
		return c
	case t.atMS > nowMS:
		c.State, c.DueMS, c.LeftMS = NotYet, t.atMS, t.atMS-nowMS
		return c
	case maxAttempts > 0 && t.attempt >= maxAttempts:
		s.bury(t, nowMS, spentReason(t.attempt, maxAttempts))
		c.State = Buried
		return c
	default:
		if !t.ran {
			t.ran, t.firstMS = true, t.atMS
		}
		t.attempt++
		s.move(t, StatusRunning, nowMS+leaseMS)
		t.token = token
	}
	c.State, c.Attempt, c.FirstDueMS = Claimed, t.attempt, t.firstMS
	return c
}

// bury makes t dead.
func (s *tasks) bury(t *task, nowMS int64, reason string) {
	t.lost = false
	s.move(t, StatusDead, nowMS)
	t.reason = reason
}

// spentReason is the reason of a task that is buried because its attempts are used up.
func spentReason(attempts, limit int) string {
	return fmt.Sprintf("attempt %d of at most %d", attempts+1, limit)
}

// settle ends a run that token holds. A successor wins, then a cancel; otherwise
// end does what the operation is for, and says where that leaves the task.
func (s *tasks) settle(l Lease, end func(t *task) (SettleState, int64)) Settlement {
	t := s.find(l.ID)
	a := Settlement{ID: l.ID}
	if !t.held(l.Token) {
		return a // Refused
	}
	if state, dueMS, ok := s.outranked(t); ok {
		a.State, a.DueMS = state, dueMS
		return a
	}
	a.State, a.DueMS = end(t)
	return a
}

// outranked ends a run by its successor or its cancel, if it has one.
func (s *tasks) outranked(t *task) (state SettleState, dueMS int64, ok bool) {
	switch {
	case t.again:
		dueMS = t.againMS
		s.fresh(t, dueMS)
		return Scheduled, dueMS, true
	case t.cancelled:
		s.move(t, StatusGone, 0)
		return Settled, 0, true
	}
	return 0, 0, false
}

func (s *tasks) ack(l Lease) Settlement {
	return s.settle(l, func(t *task) (SettleState, int64) {
		s.move(t, StatusGone, 0)
		return Settled, 0
	})
}

func (s *tasks) retry(r Retry) Settlement {
	return s.settle(r.Lease, func(t *task) (SettleState, int64) {
		if r.Uncounted {
			t.attempt = max(0, t.attempt-1)
		}
		t.lost = t.lost || r.Abandoned
		if t.attempt == 0 && !t.lost {
			s.fresh(t, r.DueMS) // as if it had never run
		} else {
			s.move(t, StatusDue, r.DueMS)
		}
		return Scheduled, r.DueMS
	})
}

func (s *tasks) buryRun(b Burial, nowMS int64) Settlement {
	return s.settle(b.Lease, func(t *task) (SettleState, int64) {
		s.bury(t, nowMS, cutReason(b.Reason))
		return Settled, 0
	})
}

func (s *tasks) renew(l Lease, nowMS, leaseMS int64) bool {
	t := s.find(l.ID)
	if !t.held(l.Token) {
		return false
	}
	s.lease(t, max(t.atMS, nowMS+leaseMS))
	return true
}

// reap takes back up to limit of the runs whose lease is over.
func (s *tasks) reap(nowMS int64, limit int) (dues []Due) {
	for range limit {
		oldest, ok := s.in[StatusRunning].first()
		if !ok || oldest.DueMS > nowMS {
			break
		}
		t := s.all[oldest.ID]
		state, dueMS, ok := s.outranked(t)
		if !ok {
			t.lost = true
			s.move(t, StatusDue, nowMS)
			state, dueMS = Scheduled, nowMS
		}
		if state == Scheduled {
			dues = append(dues, Due{ID: t.id, DueMS: dueMS})
		}
	}
	return dues
}

func (s *tasks) requeue(id string, nowMS int64) Settlement {
	t := s.find(id)
	if t.status != StatusDead {
		return Settlement{ID: id}
	}
	s.fresh(t, nowMS)
	return Settlement{ID: id, State: Scheduled, DueMS: nowMS}
}

func (s *tasks) discard(id string) bool {
	t := s.find(id)
	if t.status != StatusDead {
		return false
	}
	s.move(t, StatusGone, 0)
	return true
}

// record is what Lookup says of t.
func (t *task) record() Record {
	r := Record{
		ID: t.id, Status: t.status, FirstDueMS: t.firstMS, Attempt: t.attempt,
		Cancelled: t.cancelled, Lost: t.lost, Successor: t.againMS, Reason: t.reason,
	}
	switch t.status {
	case StatusDue:
		r.DueMS = t.atMS
	case StatusRunning:
		r.LeaseMS = t.atMS
	case StatusDead:
		r.BuriedMS = t.atMS
	}
	return r
}
