package persisttest

import (
	"cmp"
	"maps"
	"slices"

	"github.com/orderwheel/orderwheel/persist"
)

// model is the contract as dumb as can be: a map, one id at a time, and the instant is
// an argument. An id that is gone is not in it. It shares no code with any store.
type model map[string]entry

type entry struct {
	persist.Record
	token     string
	ran       bool // FirstDueMS is known; 0 is a due time too
	succeeded bool // it has a successor; likewise
}

func dueAt(id string, ms int64) entry {
	return entry{Record: persist.Record{ID: id, Status: persist.StatusDue, DueMS: ms}}
}

func (m model) clone() model { return maps.Clone(m) }

func (m model) lookup(id string) persist.Record {
	if e, ok := m[id]; ok {
		return e.Record
	}
	return persist.Record{ID: id}
}

func (m model) schedule(d persist.Due) {
	e := m[d.ID]
	if e.Status != persist.StatusRunning {
		m[d.ID] = dueAt(d.ID, d.DueMS)
		return
	}
	e.succeeded, e.Successor, e.Cancelled = true, d.DueMS, false
	m[d.ID] = e
}

func (m model) cancel(id string) persist.CancelOutcome {
	e := m[id]
	switch e.Status {
	case persist.StatusRunning:
		e.succeeded, e.Successor, e.Cancelled = false, 0, true
		m[id] = e
		return persist.Running
	case persist.StatusDue:
		delete(m, id)
		if e.Lost {
			return persist.Running
		}
		return persist.Cancelled
	}
	return persist.NotFound
}

func (m model) claim(id, token string, nowMS, leaseMS int64, maxAttempts int) persist.Claim {
	e := m[id]
	switch {
	case e.Status == persist.StatusRunning && e.token != token:
		return persist.Claim{ID: id, State: persist.Busy}
	case e.Status == persist.StatusRunning:
		e.LeaseMS = nowMS + leaseMS
	case e.Status != persist.StatusDue:
		return persist.Claim{ID: id, State: persist.Gone}
	case e.DueMS > nowMS:
		return persist.Claim{ID: id, State: persist.NotYet, DueMS: e.DueMS, LeftMS: e.DueMS - nowMS}
	case maxAttempts != 0 && e.Attempt+1 > maxAttempts:
		m.die(e, nowMS, "")
		return persist.Claim{ID: id, State: persist.Buried}
	default:
		if !e.ran {
			e.ran, e.FirstDueMS = true, e.DueMS
		}
		e.Attempt++
		e.Status, e.DueMS, e.LeaseMS, e.token = persist.StatusRunning, 0, nowMS+leaseMS, token
	}
	m[id] = e
	return persist.Claim{ID: id, State: persist.Claimed, Attempt: e.Attempt, FirstDueMS: e.FirstDueMS}
}

// die makes e dead; the empty reason stands for what a store says of spent attempts.
func (m model) die(e entry, nowMS int64, reason string) {
	m[e.ID] = entry{Record: persist.Record{
		ID: e.ID, Status: persist.StatusDead, BuriedMS: nowMS, FirstDueMS: e.FirstDueMS, Attempt: e.Attempt, Reason: reason,
	}}
}

func (m model) holds(l persist.Lease) bool {
	e := m[l.ID]
	return e.Status == persist.StatusRunning && e.token == l.Token
}

// end ends a run; where neither successor nor cancel says how, otherwise does.
func (m model) end(l persist.Lease, otherwise func(e entry) persist.Settlement) persist.Settlement {
	e := m[l.ID]
	switch {
	case !m.holds(l):
		return persist.Settlement{ID: l.ID, State: persist.Refused}
	case e.succeeded:
		m[l.ID] = dueAt(l.ID, e.Successor)
		return persist.Settlement{ID: l.ID, State: persist.Scheduled, DueMS: e.Successor}
	case e.Cancelled:
		delete(m, l.ID)
		return persist.Settlement{ID: l.ID, State: persist.Settled}
	}
	return otherwise(e)
}

func (m model) ack(l persist.Lease) persist.Settlement {
	return m.end(l, func(entry) persist.Settlement {
		delete(m, l.ID)
		return persist.Settlement{ID: l.ID, State: persist.Settled}
	})
}

func (m model) retry(r persist.Retry) persist.Settlement {
	return m.end(r.Lease, func(e entry) persist.Settlement {
		e.Status, e.DueMS, e.LeaseMS, e.token = persist.StatusDue, r.DueMS, 0, ""
		if r.Uncounted && e.Attempt > 0 {
			e.Attempt--
		}
		if r.Abandoned {
			e.Lost = true
		}
		if e.Attempt == 0 && !e.Lost {
			e = dueAt(r.ID, r.DueMS)
		}
		m[r.ID] = e
		return persist.Settlement{ID: r.ID, State: persist.Scheduled, DueMS: r.DueMS}
	})
}

func (m model) bury(b persist.Burial, nowMS int64) persist.Settlement {
	return m.end(b.Lease, func(e entry) persist.Settlement {
		m.die(e, nowMS, b.Reason)
		return persist.Settlement{ID: b.ID, State: persist.Settled}
	})
}

func (m model) renew(l persist.Lease, nowMS, leaseMS int64) bool {
	if !m.holds(l) {
		return false
	}
	e := m[l.ID]
	if nowMS+leaseMS > e.LeaseMS {
		e.LeaseMS = nowMS + leaseMS
	}
	m[l.ID] = e
	return true
}

func (m model) reap(nowMS int64, limit int) []persist.Due {
	var over []entry
	for _, e := range m {
		if e.Status == persist.StatusRunning && e.LeaseMS <= nowMS {
			over = append(over, e)
		}
	}
	slices.SortFunc(over, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.LeaseMS, b.LeaseMS), cmp.Compare(a.ID, b.ID))
	})
	var due []persist.Due
	for _, e := range over[:min(limit, len(over))] {
		s := m.end(persist.Lease{ID: e.ID, Token: e.token}, func(e entry) persist.Settlement {
			e.Status, e.DueMS, e.LeaseMS, e.token, e.Lost = persist.StatusDue, nowMS, 0, "", true
			m[e.ID] = e
			return persist.Settlement{State: persist.Scheduled, DueMS: nowMS}
		})
		if s.State == persist.Scheduled {
			due = append(due, persist.Due{ID: e.ID, DueMS: s.DueMS})
		}
	}
	return due
}

func (m model) requeue(id string, nowMS int64) persist.Settlement {
	if m[id].Status != persist.StatusDead {
		return persist.Settlement{ID: id, State: persist.Refused}
	}
	m[id] = dueAt(id, nowMS)
	return persist.Settlement{ID: id, State: persist.Scheduled, DueMS: nowMS}
}

func (m model) ensure(d persist.Due) bool {
	if m[d.ID].Status != persist.StatusGone {
		return false
	}
	m[d.ID] = dueAt(d.ID, d.DueMS)
	return true
}

func (m model) discard(id string) bool {
	if m[id].Status != persist.StatusDead {
		return false
	}
	delete(m, id)
	return true
}

// window is all that is due at untilMS or before, in order.
func (m model) window(untilMS int64) []persist.Due {
	var due []persist.Due
	for id, e := range m {
		if e.Status == persist.StatusDue && e.DueMS <= untilMS {
			due = append(due, persist.Due{ID: id, DueMS: e.DueMS})
		}
	}
	slices.SortFunc(due, func(a, b persist.Due) int {
		return cmp.Or(cmp.Compare(a.DueMS, b.DueMS), cmp.Compare(a.ID, b.ID))
	})
	return due
}

// dead is the ids of all that are dead, in order.
func (m model) dead() []string {
	var dead []entry
	for _, e := range m {
		if e.Status == persist.StatusDead {
			dead = append(dead, e)
		}
	}
	slices.SortFunc(dead, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.BuriedMS, b.BuriedMS), cmp.Compare(a.ID, b.ID))
	})
	var ids []string
	for _, e := range dead {
		ids = append(ids, e.ID)
	}
	return ids
}
