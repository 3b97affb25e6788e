package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// event is one harm that is done to a run.
type event struct {
	At   float64 // when: the share of the time in which orders are created
	Do   action
	Slot int           // whose worker
	Step step          // of a kill: where
	For  time.Duration // how long Redis is down, or the worker stands still
}

// action is what an event does.
type action string

// The actions.
const (
	killWorker  action = "kill"  // kill -9
	pauseWorker action = "pause" // SIGSTOP, and SIGCONT past its lease
	killRedis   action = "redis" // kill -9, and a restart with the same files
)

const (
	pausesPer   = 10                  // kills: a pause for every so many
	pastLease   = lease               // a pause lasts a lease and up to this
	longestDown = 3 * time.Second / 2 // of Redis
)

func (e event) String() string {
	switch e.Do {
	case killWorker:
		return fmt.Sprintf("kill worker %d: %s", e.Slot, e.Step)
	case pauseWorker:
		return fmt.Sprintf("pause worker %d for %v", e.Slot, e.For.Round(time.Millisecond))
	}
	return fmt.Sprintf("kill Redis for %v", e.For.Round(time.Millisecond))
}

// newPlan draws the events of a round: half of the kills at random, the others
// at the named steps in turn. They are spread evenly, each at random within its
// part of the time. The same numbers of rng give the same plan.
func newPlan(o options, rng *rand.Rand) []event {
	var plan []event
	spread := func(n int, draw func(i int) event) {
		for i := range n {
			e := draw(i)
			e.At = (float64(i) + rng.Float64()) / float64(n)
			plan = append(plan, e)
		}
	}
	steps := slices.Clone(namedSteps)
	rng.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	first := rng.IntN(2) // whether the first kill is at a step
	spread(o.kills, func(i int) event {
		e := event{Do: killWorker, Slot: rng.IntN(o.processes), Step: atRandom}
		if i%2 == first {
			e.Step = steps[i/2%len(steps)]
		}
		return e
	})
	spread((o.kills+pausesPer-1)/pausesPer, func(int) event {
		return event{Do: pauseWorker, Slot: rng.IntN(o.processes), For: lease + time.Duration(rng.Float64()*float64(pastLease))}
	})
	spread(o.redisKills, func(int) event {
		return event{Do: killRedis, For: time.Duration(rng.Float64() * float64(longestDown))}
	})
	slices.SortStableFunc(plan, func(a, b event) int { return cmp.Compare(a.At, b.At) })
	return plan
}

// of returns the events of a plan for one worker's slot.
func of(plan []event, slot int) []event {
	return slices.DeleteFunc(slices.Clone(plan), func(e event) bool { return e.Do == killRedis || e.Slot != slot })
}

// ofRedis returns those for Redis.
func ofRedis(plan []event) []event {
	return slices.DeleteFunc(slices.Clone(plan), func(e event) bool { return e.Do != killRedis })
}
