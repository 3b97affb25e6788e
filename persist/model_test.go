package persist_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/orderwheel/orderwheel/persist"
)

// model is the table of transitions as dumb as can be: a map, and one id at a time.
// It shares no code with the store.
type model map[string]*task

type task struct {
	due, lease int64 // -1: not
	token      string
	attempt    int
	cancelled  bool
	lost       bool
	first      int64 // -1: not run yet
	succ       int64 // -1: none
	buried     int64 // -1: not dead
	reason     string
}

func dueTask(ms int64) *task { return &task{due: ms, lease: -1, first: -1, succ: -1, buried: -1} }

func (t *task) running() bool { return t.lease >= 0 }

func (t *task) dead() bool { return t.buried >= 0 }

func (m model) schedule(id string, ms int64) {
	t := m[id]
	if t == nil || !t.running() {
		m[id] = dueTask(ms)
		return
	}
	t.succ = ms
	t.cancelled = false
}

func (m model) ensure(d persist.Due) bool {
	if m[d.ID] != nil {
		return false
	}
	m[d.ID] = dueTask(d.DueMS)
	return true
}

func (m model) cancel(id string) persist.CancelOutcome {
	t := m[id]
	if t == nil || t.dead() {
		return persist.NotFound
	}
	if t.running() {
		t.succ = -1
		t.cancelled = true
		return persist.Running
	}
	delete(m, id)
	if t.lost {
		return persist.Running
	}
	return persist.Cancelled
}

func (m model) claim(id, token string, nowMS, leaseMS int64, most int) persist.Claim {
	t := m[id]
	c := persist.Claim{ID: id}
	switch {
	case t == nil || t.dead():
		c.State = persist.Gone
	case t.running() && t.token != token:
		c.State = persist.Busy
	case t.running():
		t.lease = nowMS + leaseMS
		c.State, c.Attempt, c.FirstDueMS = persist.Claimed, t.attempt, t.first
	case t.due > nowMS:
		c.State, c.DueMS, c.LeftMS = persist.NotYet, t.due, t.due-nowMS
	case most > 0 && t.attempt >= most:
		m.entomb(id, nowMS, fmt.Sprintf("attempt %d of at most %d", t.attempt+1, most))
		c.State = persist.Buried
	default:
		if t.first < 0 {
			t.first = t.due
		}
		t.due, t.lease, t.token = -1, nowMS+leaseMS, token
		t.attempt++
		c.State, c.Attempt, c.FirstDueMS = persist.Claimed, t.attempt, t.first
	}
	return c
}

// end ends a run; done is false where the op has to say what becomes of it.
func (m model) end(id string) (s persist.Settlement, done bool) {
	t := m[id]
	switch {
	case t.succ >= 0:
		m[id] = dueTask(t.succ)
		return persist.Settlement{ID: id, State: persist.Scheduled, DueMS: t.succ}, true
	case t.cancelled:
		delete(m, id)
		return persist.Settlement{ID: id, State: persist.Settled}, true
	}
	return persist.Settlement{ID: id}, false
}

func (m model) held(l persist.Lease) bool {
	t := m[l.ID]
	return t != nil && t.running() && t.token == l.Token
}

func (m model) ack(l persist.Lease) persist.Settlement {
	if !m.held(l) {
		return persist.Settlement{ID: l.ID, State: persist.Refused}
	}
	s, done := m.end(l.ID)
	if !done {
		delete(m, l.ID)
		s.State = persist.Settled
	}
	return s
}

func (m model) retry(r persist.Retry) persist.Settlement {
	if !m.held(r.Lease) {
		return persist.Settlement{ID: r.ID, State: persist.Refused}
	}
	s, done := m.end(r.ID)
	if done {
		return s
	}
	t := m[r.ID]
	t.due, t.lease, t.token = r.DueMS, -1, ""
	if r.Uncounted {
		t.attempt--
	}
	if r.Abandoned {
		t.lost = true
	}
	if t.attempt == 0 && !t.lost {
		m[r.ID] = dueTask(r.DueMS)
	}
	return persist.Settlement{ID: r.ID, State: persist.Scheduled, DueMS: r.DueMS}
}

func (m model) reap(nowMS int64, limit int) []persist.Due {
	var over []string
	for id, t := range m {
		if t.running() && t.lease <= nowMS {
			over = append(over, id)
		}
	}
	slices.SortFunc(over, func(a, b string) int {
		return cmp.Or(cmp.Compare(m[a].lease, m[b].lease), cmp.Compare(a, b))
	})
	var dues []persist.Due
	for _, id := range over[:min(limit, len(over))] {
		s, done := m.end(id)
		if !done {
			t := m[id]
			t.due, t.lease, t.token, t.lost = nowMS, -1, "", true
			s.State, s.DueMS = persist.Scheduled, nowMS
		}
		if s.State == persist.Scheduled {
			dues = append(dues, persist.Due{ID: id, DueMS: s.DueMS})
		}
	}
	return dues
}

// window is all that is due at untilMS or before, in order.
func (m model) window(untilMS int64) []persist.Due {
	var dues []persist.Due
	for id, t := range m {
		if t.due >= 0 && t.due <= untilMS {
			dues = append(dues, persist.Due{ID: id, DueMS: t.due})
		}
	}
	slices.SortFunc(dues, func(a, b persist.Due) int {
		return cmp.Or(cmp.Compare(a.DueMS, b.DueMS), cmp.Compare(a.ID, b.ID))
	})
	return dues
}

// stored is what Redis has to hold. An id stands in due, running or dead, or nowhere;
// claims has those that run or are being retried, reasons the dead.
func (m model) stored() stored {
	s := stored{
		Due: map[string]string{}, Running: map[string]string{}, Dead: map[string]string{},
		Claims: map[string]string{}, Reasons: map[string]string{},
	}
	for id, t := range m {
		switch {
		case t.dead():
			s.Dead[id] = strconv.FormatInt(t.buried, 10)
			s.Reasons[id] = t.burial()
			continue
		case t.running():
			s.Running[id] = strconv.FormatInt(t.lease, 10)
		default:
			s.Due[id] = strconv.FormatInt(t.due, 10)
		}
		if t.running() || t.attempt > 0 || t.lost {
			s.Claims[id] = t.record()
		}
	}
	return s
}

func or(s string, is bool) string {
	if is {
		return s
	}
	return "-"
}

func (t *task) record() string {
	flags := ""
	if t.cancelled {
		flags += "c"
	}
	if t.lost {
		flags += "l"
	}
	return fmt.Sprintf("%s %d %s %s %s", or(t.token, t.token != ""), t.attempt, or(flags, flags != ""),
		or(strconv.FormatInt(t.first, 10), t.first >= 0), or(strconv.FormatInt(t.succ, 10), t.succ >= 0))
}
