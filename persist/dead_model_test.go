package persist_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/orderwheel/orderwheel/persist"
)

// The model of the dead, and of what only reads.

// entomb makes a task dead. What it was about to do is forgotten.
func (m model) entomb(id string, nowMS int64, reason string) {
	t := m[id]
	m[id] = &task{
		due: -1, lease: -1, succ: -1, attempt: t.attempt, first: t.first,
		buried: nowMS, reason: reason[:min(len(reason), persist.MaxReasonLen)],
	}
}

func (m model) bury(b persist.Burial, nowMS int64) persist.Settlement {
	if !m.held(b.Lease) {
		return persist.Settlement{ID: b.ID, State: persist.Refused}
	}
	s, done := m.end(b.ID)
	if !done {
		m.entomb(b.ID, nowMS, b.Reason)
		s.State = persist.Settled
	}
	return s
}

func (m model) renew(l persist.Lease, nowMS, leaseMS int64) bool {
	if !m.held(l) {
		return false
	}
	t := m[l.ID]
	t.lease = max(t.lease, nowMS+leaseMS)
	return true
}

func (m model) requeue(id string, nowMS int64) persist.Settlement {
	if t := m[id]; t == nil || !t.dead() {
		return persist.Settlement{ID: id, State: persist.Refused}
	}
	m[id] = dueTask(nowMS)
	return persist.Settlement{ID: id, State: persist.Scheduled, DueMS: nowMS}
}

func (m model) discard(id string) bool {
	if t := m[id]; t == nil || !t.dead() {
		return false
	}
	delete(m, id)
	return true
}

// dead is all that is dead, in order.
func (m model) dead() []persist.Dead {
	var list []persist.Dead
	for id, t := range m {
		if t.dead() {
			list = append(list, persist.Dead{ID: id, BuriedMS: t.buried, FirstDueMS: max(t.first, 0), Attempt: t.attempt, Reason: t.reason})
		}
	}
	slices.SortFunc(list, func(a, b persist.Dead) int {
		return cmp.Or(cmp.Compare(a.BuriedMS, b.BuriedMS), cmp.Compare(a.ID, b.ID))
	})
	return list
}

func (m model) lookup(id string) persist.Record {
	t := m[id]
	if t == nil {
		return persist.Record{ID: id}
	}
	r := persist.Record{ID: id, FirstDueMS: max(t.first, 0), Attempt: t.attempt, Cancelled: t.cancelled, Lost: t.lost}
	switch {
	case t.dead():
		r.Status, r.BuriedMS, r.Reason = persist.StatusDead, t.buried, t.reason
	case t.running():
		r.Status, r.LeaseMS, r.Successor = persist.StatusRunning, t.lease, max(t.succ, 0)
	default:
		r.Status, r.DueMS = persist.StatusDue, t.due
	}
	return r
}

func (m model) depth() (d persist.Depth) {
	for _, t := range m {
		switch {
		case t.dead():
			d.Dead++
		case t.running():
			d.Running++
		default:
			d.Due++
		}
	}
	return d
}

// burial is the record of the reasons.
func (t *task) burial() string {
	return fmt.Sprintf("%d %s %s", t.attempt, or(strconv.FormatInt(t.first, 10), t.first >= 0), t.reason)
}
