//go:build !race

package persist_test

import "slices"

// The world around the id: two instances with three lanes each, the sessions that Redis
// keeps of them, and what is on its way.

// The lanes of an instance: see shard.go.
const (
	ofUsers int8 = iota
	ofRuns
	ofAcks
	lanesEach
)

const (
	instances = 2
	lanes     = lanesEach * instances
	maxCopies = 2 // that hang somewhere at a time
)

// The states of a lane.
const (
	atRest  int8 = iota
	waiting      // a call waits for its answer
	fencing      // nobody waits, and an empty flush is on its way
	crashed
)

// laneOf is a lane: see lane.go.
type laneOf struct {
	status   int8
	number   int8 // of the last flush
	at       int8 // of the flush that is on its way
	op       op   // that is in it
	executed bool // by right, see story
	said     answer
	overlaps bool // a cancel: something that could bring the task back was under way meanwhile
}

// session is what Redis keeps of a lane; last 0: nothing.
type session struct {
	last  int8
	saved answer
}

// hanging is a copy of a flush that has not arrived.
type hanging struct {
	lane, number   int8 // lane none: there is none
	op             op
	executed, over bool // the call
}

type world struct {
	now    int8
	cell   cell
	story  story
	lanes  [lanes]laneOf
	kept   [lanes]session
	copies [maxCopies]hanging
	usable [instances]uint8 // tokens that the instance may settle with, by bit: also those of old
	unsure [instances]uint8 // and of those, that it may claim with again
	tokens int8             // so many were made
	used   bool             // instance 0 has called something: until then instance 1 does not
	left   [budgets]int8
}

func (p *play) begin() world {
	w := world{now: 1, cell: nowhere, story: untold, left: p.left}
	for i := range w.copies {
		w.copies[i].lane = none
	}
	return w
}

// brings tells whether o may bring the task back.
func (o op) brings() bool { return o.kind == schedule || o.kind == requeue || o.kind == ensure }

// flush is lua/flush.lua: ok is false where it refuses. wrong is what the story
// says to it.
func (x *explorer) flush(w *world, lane int8, number int8, o op) (a answer, ok bool, wrong string) {
	s := &w.kept[lane]
	if s.last != 0 {
		if s.last == number && x.g.on(sameNumberIsAnswered) {
			return s.saved, true, ""
		}
		if s.last > number && x.g.on(lowerNumberIsRefused) {
			return answer{}, false, ""
		}
	}
	byRight := true
	l := &w.lanes[lane]
	own := l.status != crashed && l.at == number && l.op == o
	if own {
		byRight = !l.executed
	}
	for i := range w.copies {
		if c := &w.copies[i]; c.lane == lane && c.number == number && c.op == o {
			byRight = byRight && !c.executed && !c.over
			c.executed = true
		}
	}
	a, wrong = x.script(w, o, byRight)
	if own && byRight {
		l.executed, l.said = true, a
	}
	if x.g.on(sessionIsKept) {
		*s = session{last: number, saved: a}
	}
	return a, true, wrong
}

// script runs o and tells it.
func (x *explorer) script(w *world, o op, byRight bool) (a answer, wrong string) {
	if o.kind == nothing || o.kind == reap && !w.cell.found(w.now) {
		return answer{}, ""
	}
	before, seen := w.cell, w.cell
	x.g.heal(&seen)
	x.g.encode(&seen)
	a = x.g.run(&w.cell, o, w.now)
	x.note(before, o, w.now, w.cell, a)
	return a, w.story.tell(o, w.now, seen, w.cell, a, byRight)
}

// How a copy of a flush fares.
const (
	answered int8 = iota
	lost          // executed, and its answer is lost
	hangs         // it arrives later or never
)

// call begins a call on a lane.
func (x *explorer) call(w *world, lane int8, o op, how int8) (wrong string) {
	l := &w.lanes[lane]
	other := *l // of another call, where there is one on its way
	if l.number == 0 || x.g.on(numberGoesUp) {
		l.number++
	}
	l.status, l.at, l.op, l.executed, l.said = waiting, l.number, o, false, answer{}
	l.overlaps = false
	w.used = true
	switch {
	case o.brings():
		w.story.ban = false
		for i := range w.lanes {
			if c := &w.lanes[i]; c.status == waiting && c.op.kind == cancel {
				c.overlaps = true
			}
		}
	case o.kind == cancel:
		l.overlaps = w.brought()
	case o.kind == claim && o.token > w.tokens:
		w.tokens = o.token
	}
	wrong = x.transmit(w, lane, how)
	if other.status == waiting {
		other.number = l.number
		*l = other
	}
	return wrong
}

// transmit makes a copy of what the lane sends.
func (x *explorer) transmit(w *world, lane, how int8) (wrong string) {
	l := &w.lanes[lane]
	switch how {
	case answered:
		wrong = x.send(w, lane)
	case lost:
		w.left[losses]--
		_, _, wrong = x.flush(w, lane, l.at, l.op)
	case hangs:
		w.left[delays]--
		i := slices.IndexFunc(w.copies[:], func(c hanging) bool { return c.lane == none })
		w.copies[i] = hanging{lane: lane, number: l.at, op: l.op, executed: l.executed}
	}
	return wrong
}

// brought tells whether something that may bring the task back is under way, and not
// executed.
func (w *world) brought() bool {
	for i := range w.lanes {
		if l := &w.lanes[i]; l.status == waiting && l.op.brings() && !l.executed {
			return true
		}
	}
	return slices.ContainsFunc(w.copies[:], func(c hanging) bool {
		return c.lane != none && c.op.brings() && !c.executed && !c.over
	})
}

// again sends the flush of a lane once more.
func (x *explorer) again(w *world, lane int8, how int8) string {
	l := &w.lanes[lane]
	if !x.g.on(sameNumberAgain) {
		l.number++
		l.at = l.number
	}
	return x.transmit(w, lane, how)
}

// send has the flush of a lane executed and answered.
func (x *explorer) send(w *world, lane int8) string {
	l := &w.lanes[lane]
	a, ok, wrong := x.flush(w, lane, l.at, l.op)
	switch {
	case wrong != "":
		return wrong
	case !ok:
		return "e: a call that waits was refused as late"
	case l.op.kind != nothing && !l.executed:
		return "a: a call was answered and not executed"
	case l.op.kind != nothing && a != l.said:
		return "g: a call was not answered what its execution said"
	}
	for i := range w.copies {
		if c := &w.copies[i]; c.lane == lane && c.number <= l.at {
			c.over = true
		}
	}
	bit := uint8(1) << l.op.token
	switch i := lane / lanesEach; l.op.kind {
	case cancel:
		if a.state != notFound && !l.overlaps {
			w.story.ban = true
		}
	case claim:
		if a.state == claimed {
			w.usable[i] |= bit
		}
		w.unsure[i] &^= bit
	}
	*l = laneOf{number: l.number}
	return ""
}

// giveUp ends the ctx of the call that waits: its outcome is unknown.
func (x *explorer) giveUp(w *world, lane int8) {
	w.left[giveUps]--
	l := &w.lanes[lane]
	if l.op.kind == claim {
		w.usable[lane/lanesEach] |= 1 << l.op.token
		w.unsure[lane/lanesEach] |= 1 << l.op.token
	}
	*l = laneOf{number: l.number}
	if x.g.on(fenceAfterUnknown) {
		l.status = fencing
		l.number++
		l.at = l.number
	}
}

// crash ends an instance. What it had under way may still arrive, and its sessions stay.
func (w *world) crash(i int8) {
	w.left[crashes]--
	for lane := range lanesEach {
		w.lanes[lanesEach*i+lane] = laneOf{status: crashed}
	}
	w.usable[i], w.unsure[i] = 0, 0
}

// arrive has a copy that hung executed. Nobody hears the answer.
func (x *explorer) arrive(w *world, i int8) string {
	c := w.copies[i]
	_, _, wrong := x.flush(w, c.lane, c.number, c.op)
	w.copies[i] = hanging{lane: none}
	return wrong
}

// settle brings the world into a form in which states that differ in nothing that
// matters are equal.
func (x *explorer) settle(w *world) {
	if w.copies[0].lane == none || w.copies[1].lane != none && before(w.copies[1], w.copies[0]) {
		w.copies[0], w.copies[1] = w.copies[1], w.copies[0]
	}
	for i := range w.lanes {
		l, s := &w.lanes[i], &w.kept[i]
		lone := w.copies[0].lane != int8(i) && w.copies[1].lane != int8(i)
		switch {
		case l.status == crashed && lone:
			*s = session{} // nothing comes that it could be compared with
		case l.status == atRest && lone && s.last == l.number && !x.g.out[numberGoesUp]:
			*l, *s = laneOf{}, session{} // numbers are only compared with one another
		}
	}
}

func before(a, b hanging) bool {
	if a.lane != b.lane {
		return a.lane < b.lane
	}
	return a.number < b.number
}

// judge looks at the lanes, and for a way out.
func (x *explorer) judge(w *world) string {
	for i := range w.lanes {
		l := &w.lanes[i]
		if l.status == crashed {
			continue
		}
		if w.kept[i].last > l.number {
			return "e: a writer is shut out"
		}
		for _, c := range w.copies {
			if l.status == atRest && c.lane == int8(i) && !c.executed && c.number > w.kept[i].last {
				return "e: a writer is at rest, and a copy of what it gave up can still be executed"
			}
		}
	}
	if x.anyWay {
		return ""
	}
	return x.wayOut(w.cell)
}

// wayOut looks for a way to gone or dead from a state of the task. It takes the one that
// every engine has: the lease ends, any instance reaps, claims under a new token and
// acknowledges. It also takes the one where each run dies with its process: then the
// claim after the last attempt ends it. A new process has a session of its own, so that
// nothing but the task decides.
func (x *explorer) wayOut(c cell) string {
	if known, ok := x.ways[c]; ok {
		return known
	}
	wrong := ""
	now := int8(40)
	runs := func(settle bool, most int8) {
		d := c
		for token := int8(100); token < 104; token++ {
			x.g.run(&d, op{kind: reap}, now)
			a := x.g.run(&d, op{kind: claim, token: token, arg: most}, now)
			if settle && a.state == claimed {
				x.g.run(&d, op{kind: ack, token: token}, now)
			}
			now += claimLease
		}
		if d.due != none || d.lease != none {
			wrong = "e: no way to gone or dead is left"
		}
	}
	runs(true, 0)
	runs(false, 1)
	x.ways[c] = wrong
	return wrong
}
