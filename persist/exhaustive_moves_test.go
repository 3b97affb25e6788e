//go:build !race

package persist_test

import "fmt"

// What can happen next.

// The things of which there is only so much in a play.
type budget int

const (
	schedules budget = iota
	cancels
	claims
	settlements // ack, retry, bury, renew
	operations  // requeue, discard, ensure
	losses      // of answers
	delays      // of copies
	giveUps
	crashes
	ticks
	hands
	budgets
)

// play bounds what happens: how often, and with which arguments.
type play struct {
	name    string
	left    [budgets]int8
	after   []int8 // schedule: so many ticks after the first
	most    []int8 // claim: attempts at most
	ends    []op   // ack, retry, bury, renew; at: so many ticks from now
	noToken bool   // settle also without a token
}

// The doings of a move.
type doing int8

const (
	toCall doing = iota
	toAgain
	toGiveUp
	toFence
	toArrive
	toCrash
	toTick
	toReap
	toHand
)

type move struct {
	do    doing
	which int8 // the lane, the copy, the instance, or what the hand does
	op    op
	how   int8
}

// moves calls f with all that can happen next.
func (x *explorer) moves(w *world, f func(move)) {
	for lane := range int8(lanes) {
		x.laneMoves(w, lane, f)
	}
	for i := range int8(maxCopies) {
		if w.copies[i].lane != none {
			f(move{do: toArrive, which: i})
		}
	}
	for i := range int8(instances) {
		if w.left[crashes] > 0 && w.lanes[lanesEach*i].status != crashed && w.used {
			f(move{do: toCrash, which: i})
		}
	}
	if w.left[ticks] > 0 {
		f(move{do: toTick})
	}
	f(move{do: toReap})
	if w.left[hands] > 0 {
		for i := range int8(len(byHands)) {
			if byHands[i].can(w) {
				f(move{do: toHand, which: i})
			}
		}
	}
}

func (x *explorer) laneMoves(w *world, lane int8, f func(move)) {
	hang := w.left[delays] > 0 && (w.copies[0].lane == none || w.copies[1].lane == none)
	switch l := &w.lanes[lane]; l.status {
	case crashed:
		return
	case waiting:
		f(move{do: toAgain, which: lane, how: answered})
		if w.left[losses] > 0 && !l.executed {
			f(move{do: toAgain, which: lane, how: lost})
		}
		if hang {
			f(move{do: toAgain, which: lane, how: hangs})
		}
		if w.left[giveUps] > 0 {
			f(move{do: toGiveUp, which: lane})
		}
		if !x.g.on(oneInFlight) {
			x.calls(w, lane, func(o op) { f(move{do: toCall, which: lane, op: o}) })
		}
		return
	case fencing:
		f(move{do: toFence, which: lane})
	}
	if lane >= lanesEach && !w.used {
		return
	}
	x.calls(w, lane, func(o op) {
		f(move{do: toCall, which: lane, op: o, how: answered})
		if w.left[losses] > 0 {
			f(move{do: toCall, which: lane, op: o, how: lost})
		}
		if hang {
			f(move{do: toCall, which: lane, op: o, how: hangs})
		}
	})
}

// calls calls f with every call that the lane may make.
func (x *explorer) calls(w *world, lane int8, f func(op)) {
	which := lane % lanesEach
	if which == ofUsers {
		if w.left[schedules] > 0 {
			for _, at := range x.p.after {
				f(op{kind: schedule, at: 1 + at})
			}
		}
		if w.left[cancels] > 0 {
			f(op{kind: cancel})
		}
		if w.left[operations] > 0 {
			f(op{kind: requeue})
			f(op{kind: discard})
			for _, at := range x.p.after {
				f(op{kind: ensure, at: 1 + at})
			}
		}
		return
	}
	usable, unsure := w.usable[lane/lanesEach], w.unsure[lane/lanesEach]
	for token := int8(0); token <= w.tokens; token++ {
		bit := uint8(1) << token
		if which == ofRuns && w.left[claims] > 0 && unsure&bit != 0 {
			f(op{kind: claim, token: token, arg: x.p.most[0]})
		}
		if w.left[settlements] == 0 || usable&bit == 0 && (token > 0 || !x.p.noToken) {
			continue
		}
		for _, end := range x.p.ends {
			if (end.kind == ack) != (which == ofAcks) {
				continue
			}
			o := op{kind: end.kind, token: token, arg: end.arg}
			if o.kind == retry {
				o.at = w.now + end.at
			}
			f(o)
		}
	}
	if which == ofRuns && w.left[claims] > 0 {
		for _, most := range x.p.most {
			f(op{kind: claim, token: w.tokens + 1, arg: most})
		}
	}
}

// spent is what a call of each kind is counted as.
var spent = [...]budget{
	schedule: schedules, cancel: cancels, claim: claims, ack: settlements, retry: settlements,
	bury: settlements, renew: settlements, requeue: operations, discard: operations, ensure: operations,
}

// play makes a move, and returns what it shows to be wrong.
func (x *explorer) play(w *world, m move) (wrong string) {
	switch m.do {
	case toCall:
		w.left[spent[m.op.kind]]--
		wrong = x.call(w, m.which, m.op, m.how)
	case toAgain:
		wrong = x.again(w, m.which, m.how)
	case toGiveUp:
		x.giveUp(w, m.which)
	case toFence:
		wrong = x.send(w, m.which)
	case toArrive:
		wrong = x.arrive(w, m.which)
	case toCrash:
		w.crash(m.which)
	case toTick:
		w.left[ticks]--
		w.now++
	case toReap:
		_, wrong = x.script(w, op{kind: reap}, true)
	case toHand:
		w.left[hands]--
		byHands[m.which].do(w)
	}
	if wrong != "" {
		return wrong
	}
	x.settle(w)
	return x.judge(w)
}

func (m move) String() string {
	who := fmt.Sprintf("instance %d", m.which/lanesEach+1)
	fares := [...]string{
		"and is answered", "which is executed, and the answer is lost", "and the copy hangs",
	}
	switch m.do {
	case toCall:
		return fmt.Sprintf("%s calls %v, %s", who, m.op, fares[m.how])
	case toAgain:
		return fmt.Sprintf("%s (%s) sends it again, %s", who, laneName(m.which), fares[m.how])
	case toGiveUp:
		return fmt.Sprintf("the ctx of the call of %s (%s) ends", who, laneName(m.which))
	case toFence:
		return fmt.Sprintf("the fence of %s (%s) is answered", who, laneName(m.which))
	case toArrive:
		return "a copy that hung arrives"
	case toCrash:
		return fmt.Sprintf("instance %d crashes", m.which+1)
	case toTick:
		return "time passes"
	case toReap:
		return "an instance reaps"
	}
	return byHands[m.which].words
}

func laneName(lane int8) string {
	return [...]string{ofUsers: "users", ofRuns: "runs", ofAcks: "acks"}[lane%lanesEach]
}

// handiwork is something that an operator does to the keys, see "Keys" in doc.go.
type handiwork struct {
	words string
	can   func(w *world) bool
	do    func(w *world)
}

var byHands = []handiwork{
	{
		words: "a hand removes the lease",
		can:   func(w *world) bool { return w.cell.lease != none },
		do:    func(w *world) { w.cell.lease, w.story.until = none, w.now },
	},
	{
		words: "a hand removes the record",
		can: func(w *world) bool {
			return w.cell.lease != none || w.cell.due != none && (w.cell.attempt > 0 || w.cell.lost)
		},
		do: removeRecord,
	},
	{
		words: "a hand makes it due at the next tick",
		can:   func(*world) bool { return true },
		do:    makeDue,
	},
	{
		words: "a hand moves it from running to due, at the next tick",
		can:   func(w *world) bool { return w.cell.lease != none },
		do: func(w *world) {
			w.cell.lease, w.cell.due = none, w.now+1
			s := &w.story
			s.alive, s.owed, s.at, s.holder, s.until, s.ban = true, false, w.cell.due, 0, none, false
		},
	},
	{
		words: "a hand removes it from due",
		can:   func(w *world) bool { return w.cell.due != none },
		do: func(w *world) {
			w.cell.due = none
			w.story.over()
		},
	},
	{
		words: "a hand removes it from dead",
		can:   func(w *world) bool { return w.cell.buried != none },
		do: func(w *world) {
			w.cell.buried = none
			w.story.over()
		},
	},
	{
		words: "a hand writes attempt 0 into the record",
		can:   func(w *world) bool { return w.cell.lease != none && w.cell.attempt > 0 },
		do:    func(w *world) { w.cell.attempt, w.story.runs = 0, 0 },
	},
}

// removeRecord takes all that claims has away: a run has no token then that anybody knows.
func removeRecord(w *world) {
	c, s := &w.cell, &w.story
	c.token, c.attempt, c.cancelled, c.lost, c.first, c.succ = 0, 0, false, false, none, none
	s.runs, s.first, s.work, s.ban = 0, none, false, false // of the cancel, too
	if c.lease != none {
		s.holder, s.alive, s.owed, s.at = byHand, true, false, none
	}
}

// makeDue writes into due and looks at nothing else.
func makeDue(w *world) {
	c, s := &w.cell, &w.story
	c.due = w.now + 1
	s.ban = false
	switch {
	case c.lease != none:
		s.alive, s.owed, s.at = true, true, c.due
	case s.alive:
		s.at = c.due
	default:
		s.afresh(c.due)
	}
}
