//go:build !race

package persist_test

import "fmt"

// The scripts for one id, line by line as in lua/, each guard by its name. Time is a few
// ticks; a task is small enough to be compared and kept by the million.

const (
	none int8 = -1
	ever int8 = -2 // the beginning of time: before every tick
)

// cell is what the keys hold of the id: its scores in due, running and dead, and its
// record in claims. See lua/state.lua for the fields.
type cell struct {
	due, lease, buried int8
	token, attempt     int8 // token 0: none
	cancelled, lost    bool
	first, succ        int8
}

// nowhere is an id that is gone.
var nowhere = cell{due: none, lease: none, buried: none, first: none, succ: none}

func (c *cell) fresh(due int8) {
	*c = nowhere
	c.due = due
}

func (c *cell) entomb(now int8) {
	c.fresh(none)
	c.buried = now
}

// The kinds of writes, and of what else a script is called for.
type kind int8

const (
	nothing kind = iota // the empty flush of a fence
	schedule
	cancel
	claim
	ack
	retry
	bury
	renew
	requeue
	discard
	ensure
	reap
)

var kindNames = [...]string{"fence", "schedule", "cancel", "claim", "ack", "retry", "bury", "renew", "requeue", "discard", "ensure", "reap"}

// Flags of a retry.
const (
	uncounted int8 = 1 << iota
	abandoned
)

// op is one write with its arguments.
type op struct {
	kind  kind
	token int8 // of claim, ack, retry, bury, renew
	at    int8 // due time of schedule, ensure and retry
	arg   int8 // most attempts of a claim; flags of a retry
}

func (o op) String() string {
	s := kindNames[o.kind]
	if o.kind >= claim && o.kind <= renew {
		s += fmt.Sprintf(" token%d", o.token)
	}
	switch {
	case o.kind == schedule, o.kind == ensure, o.kind == retry:
		s += fmt.Sprintf(" at %d", o.at)
	case o.kind == claim && o.arg > 0:
		s += fmt.Sprintf(" at most %d", o.arg)
	}
	if o.kind == retry && o.arg&uncounted != 0 {
		s += " uncounted"
	}
	if o.kind == retry && o.arg&abandoned != 0 {
		s += " abandoned"
	}
	return s
}

// How long a claim and a renewal last, in ticks. A renewal is the shorter one, so that it
// could shorten a lease.
const (
	claimLease = 2
	renewLease = 1
)

// answer is what a script says, by the codes of types.go.
type answer struct {
	state   int8
	attempt int8 // of Claimed
	at      int8 // first due of Claimed, due of NotYet and Scheduled
	left    int8 // of NotYet
}

// The codes, as in transitions.lua; those of one name that mean two things are apart.
const (
	notFound, cancelled, running         = 0, 1, 2
	gone, claimed, notYet, busy, wasDead = 0, 1, 2, 3, 4
	refused, settled, scheduled          = 0, 1, 2
)

// run reads the task, applies o at the tick now, and writes it.
func (g *guards) run(c *cell, o op, now int8) (a answer) {
	if o.kind == nothing || o.kind == reap && !c.found(now) {
		return answer{}
	}
	g.heal(c)
	switch o.kind {
	case schedule:
		g.schedule(c, o.at)
	case cancel:
		a.state = g.cancel(c)
	case claim:
		a = g.claim(c, o.token, now, o.arg)
	case ack:
		a = g.ack(c, o.token)
	case retry:
		a = g.retry(c, o.token, o.at, o.arg)
	case bury:
		a = g.bury(c, o.token, now)
	case renew:
		a.state = g.renew(c, o.token, now)
	case requeue:
		a = g.requeue(c, now)
	case discard:
		a.state = g.discard(c)
	case ensure:
		a.state = g.ensure(c, o.at)
	case reap:
		a = g.reap(c, now)
	}
	g.encode(c)
	return a
}

// found tells whether reap comes across the id: its lease is over, or the round over
// claims or reasons has it.
func (c *cell) found(now int8) bool {
	return c.lease != none && c.lease <= now || c.buried != none ||
		c.token != 0 || c.attempt != 0 || c.cancelled || c.lost || c.first != none || c.succ != none
}

func (g *guards) heal(c *cell) {
	switch {
	case c.due != none && c.lease != none && g.on(healDueWhileRunning):
		c.succ, c.due = c.due, none
	case c.due == none && c.lease == none && c.buried == none && c.token != 0 && g.on(healLostLease):
		c.lease = ever
	}
	if c.lease == none && g.on(healEndedRun) {
		c.token, c.cancelled, c.succ = 0, false, none
	}
	if (c.due != none || c.lease != none) && c.buried != none && g.on(healLiving) {
		c.buried = none
	}
}

// encode drops what has no place in a record.
func (g *guards) encode(c *cell) {
	switch {
	case c.lease != none:
		return
	case c.due != none && c.attempt > 0 && g.on(recordOfAttempts):
		return
	case c.due != none && c.lost && g.on(recordOfLost):
		return
	case c.due != none && !g.on(recordOnlyWhereNeeded):
		return
	}
	c.token, c.attempt, c.cancelled, c.lost, c.first, c.succ = 0, 0, false, false, none, none
}

func (g *guards) schedule(c *cell, due int8) {
	if c.lease != none && g.on(scheduleOfRunningIsSuccessor) {
		if c.succ == none || g.on(lastSuccessorWins) {
			c.succ = due
		}
		if c.cancelled && g.on(scheduleTakesCancelBack) {
			c.cancelled = false
		}
		return
	}
	old := *c
	c.fresh(due)
	if old.attempt > 0 && !g.on(scheduleForgetsAttempts) {
		c.attempt, c.first = old.attempt, old.first
	}
	if old.lost && !g.on(scheduleForgetsLost) {
		c.lost = true
	}
	if old.buried != none && !g.on(scheduleRaisesTheDead) {
		c.buried = old.buried
	}
}

func (g *guards) cancel(c *cell) int8 {
	if c.lease != none && g.on(cancelMarksRunning) {
		if g.on(cancelTakesSuccessor) {
			c.succ = none
		}
		if g.on(cancelForbidsRetry) {
			c.cancelled = true
		}
		return running
	}
	if c.due == none && g.on(cancelOnlyOfDue) {
		return notFound
	}
	lost := c.lost
	if g.on(cancelRemovesDue) {
		c.fresh(none)
	}
	if lost && g.on(cancelOfLostIsRunning) {
		return running
	}
	return cancelled
}

func (g *guards) claim(c *cell, token, now, most int8) answer {
	if c.lease != none && g.on(claimOfRunning) {
		if c.token != token && g.on(claimOfOthersIsBusy) {
			return answer{state: busy}
		}
		if g.on(claimAgainRenews) {
			c.lease = now + claimLease
		}
		if !g.on(claimAgainCountsOnce) {
			c.attempt++
		}
		a := answer{state: claimed, attempt: c.attempt, at: c.first}
		if c.first == none {
			a.at = now
		}
		return a
	}
	if c.due == none && g.on(claimOnlyOfDue) {
		return answer{state: gone}
	}
	if c.due > now && g.on(claimNotEarly) {
		return answer{state: notYet, at: c.due, left: c.due - now}
	}
	if (most > 0 || !g.on(noLimitIsNoLimit)) && c.attempt >= most && g.on(attemptLimit) {
		c.entomb(now)
		return answer{state: wasDead}
	}
	if c.first == none || !g.on(firstDueStays) {
		c.first = c.due
	}
	if g.on(claimLeavesDue) {
		c.due = none
	}
	c.lease = now + claimLease
	if g.on(claimKeepsToken) {
		c.token = token
	}
	if g.on(claimCounts) {
		c.attempt++
	}
	return answer{state: claimed, attempt: c.attempt, at: c.first}
}

func (g *guards) held(c *cell, token int8, same guard) bool {
	return (c.lease != none || !g.on(heldNeedsLease)) &&
		(c.token != 0 || !g.on(heldNeedsToken)) &&
		(c.token == token || !g.on(same))
}

// never is a guard that nothing depends on: ack of what was cancelled ends as it would
// have without.
const never guard = -1

func (g *guards) outranked(c *cell, bySuccessor, byCancel guard) (a answer, ended bool) {
	succ := c.succ != none && g.on(bySuccessor)
	stop := c.cancelled && byCancel != never && g.on(byCancel)
	if succ && stop && !g.on(successorBeforeCancel) {
		succ = false
	}
	switch {
	case succ && g.on(successorStartsAfresh):
		c.fresh(c.succ)
		return answer{state: scheduled, at: c.due}, true
	case succ:
		c.due, c.lease, c.token, c.succ, c.cancelled = c.succ, none, 0, none, false
		return answer{state: scheduled, at: c.due}, true
	case stop:
		c.fresh(none)
		return answer{state: settled}, true
	}
	return answer{}, false
}

func (g *guards) ack(c *cell, token int8) answer {
	if !g.held(c, token, tokenOfAck) {
		return answer{}
	}
	if a, ended := g.outranked(c, ackYieldsToSuccessor, never); ended {
		return a
	}
	c.fresh(none)
	return answer{state: settled}
}

func (g *guards) retry(c *cell, token, due, flags int8) answer {
	if !g.held(c, token, tokenOfRetry) {
		return answer{}
	}
	if a, ended := g.outranked(c, retryYieldsToSuccessor, retryYieldsToCancel); ended {
		return a
	}
	c.due, c.lease = due, none
	if g.on(retryDropsToken) {
		c.token = 0
	}
	if flags&uncounted != 0 && g.on(uncountedTakesBack) || flags&uncounted == 0 && !g.on(countedStaysCounted) {
		if c.attempt--; c.attempt < 0 && g.on(attemptNotBelowZero) {
			c.attempt = 0
		}
	}
	if flags&abandoned != 0 && g.on(abandonedIsLost) || flags&abandoned == 0 && !g.on(othersAreNotLost) {
		c.lost = true
	}
	if (c.attempt == 0 || !g.on(afreshOnlyWithoutAttempts)) && (!c.lost || !g.on(afreshOnlyWhereNotLost)) &&
		g.on(uncountedLeavesNoTrace) {
		c.fresh(due)
	}
	return answer{state: scheduled, at: due}
}

func (g *guards) bury(c *cell, token, now int8) answer {
	if !g.held(c, token, tokenOfBury) {
		return answer{}
	}
	if a, ended := g.outranked(c, buryYieldsToSuccessor, buryYieldsToCancel); ended {
		return a
	}
	c.entomb(now)
	return answer{state: settled}
}

func (g *guards) renew(c *cell, token, now int8) int8 {
	if !g.held(c, token, tokenOfRenew) {
		return 0
	}
	if now+renewLease > c.lease || !g.on(renewNeverShortens) {
		c.lease = now + renewLease
	}
	return 1
}

func (g *guards) requeue(c *cell, now int8) answer {
	if c.buried == none && g.on(requeueOnlyOfDead) {
		return answer{}
	}
	c.fresh(now)
	return answer{state: scheduled, at: now}
}

func (g *guards) discard(c *cell) int8 {
	if c.buried == none && g.on(discardOnlyOfDead) {
		return 0
	}
	c.fresh(none)
	return 1
}

func (g *guards) ensure(c *cell, due int8) int8 {
	if c.due != none && g.on(ensureLeavesDue) || c.lease != none && g.on(ensureLeavesRunning) ||
		c.buried != none && g.on(ensureLeavesDead) {
		return 0
	}
	c.fresh(due)
	return 1
}

// reap is lua/reap.lua after it has gone round all records, with the transition.
func (g *guards) reap(c *cell, now int8) answer {
	if c.lease == none && g.on(reapOnlyOfRunning) || c.lease > now && g.on(reapOnlyWhenOver) {
		return answer{}
	}
	if !g.on(reapTakesBack) {
		return answer{}
	}
	if a, ended := g.outranked(c, reapYieldsToSuccessor, reapYieldsToCancel); ended {
		return a
	}
	c.due, c.lease = now, none
	if g.on(reapDropsToken) {
		c.token = 0
	}
	if g.on(reapMarksLost) {
		c.lost = true
	}
	return answer{state: scheduled, at: now}
}
