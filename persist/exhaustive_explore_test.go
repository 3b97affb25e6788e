//go:build !race

package persist_test

import (
	"fmt"
	"hash/maphash"
	"strings"
)

// step is one script on the task: what it found and was asked, at the tick zero. Equal
// steps at different times are one.
type step struct {
	before cell
	op     op
}

// outcome is what the script left and said.
type outcome struct {
	after  cell
	answer answer
}

// explorer goes through every state that a play can come to, nearest first. States are
// remembered by 128 bits of a hash that nobody can know beforehand.
type explorer struct {
	g      *guards
	p      *play
	anyWay bool // whether a way out is left is not looked at

	seeds  [2]maphash.Seed
	known  map[[2]uint64]struct{}
	parent []int32 // by the number of a state: from which it was reached first
	by     []move  // and how
	ways   map[cell]string
	steps  map[step]outcome // nil: nobody asks

	transitions int
}

func newExplorer(g *guards, p *play) *explorer {
	return &explorer{
		g: g, p: p,
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		known: map[[2]uint64]struct{}{},
		ways:  map[cell]string{},
	}
}

// isNew remembers w.
func (x *explorer) isNew(w *world) bool {
	key := [2]uint64{maphash.Comparable(x.seeds[0], *w), maphash.Comparable(x.seeds[1], *w)}
	if _, ok := x.known[key]; ok {
		return false
	}
	x.known[key] = struct{}{}
	return true
}

// explore returns a shortest way to something wrong, in words; empty: nothing is.
func (x *explorer) explore() string {
	w := x.p.begin()
	x.isNew(&w)
	x.parent, x.by = append(x.parent, -1), append(x.by, move{})
	layer := []world{w}
	first := int32(0) // number of the first in layer
	for len(layer) > 0 {
		var next []world
		from := first + int32(len(layer))
		for i := range layer {
			trace := ""
			x.moves(&layer[i], func(m move) {
				if trace != "" {
					return
				}
				w := layer[i]
				x.transitions++
				if wrong := x.play(&w, m); wrong != "" {
					trace = x.tell(first+int32(i), m) + wrong
					return
				}
				if x.isNew(&w) {
					next = append(next, w)
					x.parent, x.by = append(x.parent, first+int32(i)), append(x.by, m)
				}
			})
			if trace != "" {
				return trace
			}
		}
		layer, first = next, from
	}
	return ""
}

// tell says in words how a state is reached, and the move that comes then.
func (x *explorer) tell(state int32, last move) string {
	moves := []move{last}
	for ; x.parent[state] >= 0; state = x.parent[state] {
		moves = append(moves, x.by[state])
	}
	var b strings.Builder
	w := x.p.begin()
	for i := len(moves) - 1; i >= 0; i-- {
		m := moves[i]
		_ = x.play(&w, m)
		fmt.Fprintf(&b, "tick %d: %v: %v\n", w.now, m, w.cell)
	}
	return b.String()
}

// zero is the tick of steps: their times are counted from it, none is below 0.
const zero = 20

// note keeps a step for those who replay it.
func (x *explorer) note(before cell, o op, now int8, after cell, a answer) {
	if x.steps == nil {
		return
	}
	if o.kind == schedule || o.kind == ensure || o.kind == retry {
		o.at += zero - now
	}
	if a.hasTime(o.kind) {
		a.at += zero - now
	}
	x.steps[step{before.since(now), o}] = outcome{after.since(now), a}
}

// hasTime tells whether at of the answer is a time.
func (a answer) hasTime(k kind) bool {
	switch k {
	case claim:
		return a.state == claimed || a.state == notYet
	case ack, retry, bury, requeue, reap:
		return a.state == scheduled
	}
	return false
}

// since counts the times from now on.
func (c cell) since(now int8) cell {
	for _, at := range []*int8{&c.due, &c.lease, &c.buried, &c.first, &c.succ} {
		if *at >= 0 {
			*at += zero - now
		}
	}
	return c
}

func (c cell) String() string {
	var parts []string
	add := func(words string, at int8) {
		if at == ever {
			parts = append(parts, words+" of old")
		} else if at != none {
			parts = append(parts, fmt.Sprintf("%s %d", words, at))
		}
	}
	add("due", c.due)
	add("running until", c.lease)
	add("dead since", c.buried)
	if len(parts) == 0 {
		parts = append(parts, "nowhere")
	}
	if c.token != 0 {
		parts = append(parts, fmt.Sprintf("token%d", c.token))
	}
	if c.attempt != 0 {
		parts = append(parts, fmt.Sprintf("attempt %d", c.attempt))
	}
	if c.cancelled {
		parts = append(parts, "cancelled")
	}
	if c.lost {
		parts = append(parts, "lost")
	}
	add("first", c.first)
	add("successor", c.succ)
	return strings.Join(parts, ", ")
}
