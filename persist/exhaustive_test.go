//go:build !race

package persist_test

import (
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Every interleaving of the scripts for one id and two instances, within small bounds. See
// exhaustive_story_test.go for the properties, exhaustive_guards_test.go for what is
// taken out.

// plays are the bounds. Each play has much of one thing: much of all would be more states
// than a test can visit. In all of them two instances work, time passes, leases run out, and
// anyone reaps at any time.
func plays() []*play {
	some := []op{{kind: ack}, {kind: bury}, {kind: renew}, {kind: retry}}
	all := append(some, op{kind: retry, at: 1}, op{kind: retry, arg: uncounted, at: 1},
		op{kind: retry, arg: abandoned}, op{kind: retry, arg: uncounted | abandoned})
	list := []*play{
		// Everything that the table has, on a network that loses nothing.
		{
			name: "table", after: []int8{0, 1}, most: []int8{0, 1}, ends: all,
			left: [budgets]int8{schedules: 3, cancels: 1, claims: 2, settlements: 2, operations: 1, ticks: 3},
		},
		// The same without operators, for what takes several explorations.
		{
			name: "short table", after: []int8{0, 1}, most: []int8{0}, ends: all,
			left: [budgets]int8{schedules: 2, cancels: 1, claims: 2, settlements: 2, ticks: 2},
		},
		// What an operator does by hand.
		{
			name: "hand", after: []int8{0}, most: []int8{0, 1}, ends: all, noToken: true,
			left: [budgets]int8{schedules: 1, cancels: 1, claims: 2, settlements: 1, ticks: 2, hands: 1},
		},
		// A lost answer, a late copy, a caller that gives up, and a crash; one run.
		{
			name: "network", after: []int8{0}, most: []int8{0}, ends: some,
			left: [budgets]int8{schedules: 2, cancels: 1, claims: 1, settlements: 1, losses: 1, delays: 1, giveUps: 1, crashes: 1, ticks: 2},
		},
		// Two late copies; one run.
		{
			name: "late", after: []int8{0}, most: []int8{0}, ends: []op{{kind: ack}, {kind: retry}},
			left: [budgets]int8{schedules: 2, cancels: 1, claims: 1, settlements: 1, delays: 2, giveUps: 1, ticks: 2},
		},
		// A late copy (which is a lost answer when it arrives at once), a caller that gives up, and
		// a crash; two runs.
		{
			name: "runs", after: []int8{0}, most: []int8{0}, ends: some,
			left: [budgets]int8{schedules: 2, cancels: 1, claims: 2, settlements: 1, delays: 1, giveUps: 1, crashes: 1, ticks: 2},
		},
	}
	if os.Getenv("ORDERWHEEL_LONG") == "1" {
		list = append(list, longPlays(some, all)...)
	}
	return list
}

// longPlays have some millions of states.
func longPlays(some, all []op) []*play {
	return []*play{
		{
			name: "long table", after: []int8{0, 1}, most: []int8{0, 2}, ends: all,
			left: [budgets]int8{schedules: 3, cancels: 2, claims: 3, settlements: 3, operations: 2, ticks: 4},
		},
		{
			name: "long hand", after: []int8{0, 1}, most: []int8{0, 1}, ends: all, noToken: true,
			left: [budgets]int8{schedules: 2, cancels: 1, claims: 2, settlements: 2, operations: 1, ticks: 3, hands: 1},
		},
		{
			name: "long network", after: []int8{0, 1}, most: []int8{0}, ends: some,
			left: [budgets]int8{schedules: 2, cancels: 1, claims: 2, settlements: 2, losses: 1, delays: 1, giveUps: 1, crashes: 1, ticks: 2},
		},
		{
			name: "long late", after: []int8{0}, most: []int8{0}, ends: some,
			left: [budgets]int8{schedules: 2, cancels: 2, claims: 1, settlements: 1, losses: 1, delays: 2, giveUps: 2, crashes: 1, ticks: 2},
		},
	}
}

// explored are the plays with all guards in, and what was wrong in each.
var explored = sync.OnceValue(func() map[string]*finding {
	all := map[string]*finding{}
	for _, p := range plays() {
		f := &finding{explorer: newExplorer(without(), p)}
		f.steps = map[step]outcome{}
		begun := time.Now()
		f.wrong = f.explore()
		f.took, f.states = time.Since(begun), len(f.known)
		f.known, f.parent, f.by = nil, nil, nil // they are large
		all[p.name] = f
	}
	return all
})

type finding struct {
	*explorer
	wrong  string
	states int
	took   time.Duration
}

func TestNoInterleavingBreaksAPromise(t *testing.T) {
	t.Parallel()
	for name, f := range explored() {
		t.Logf("%s: %d states, %d transitions, %d different steps in %v", name, f.states, f.transitions, len(f.steps), f.took)
		require.Empty(t, f.wrong, name)
	}
}

func TestEveryGuardIsAskedFor(t *testing.T) {
	t.Parallel()
	for x := range guardCount {
		asked := false
		for _, f := range explored() {
			asked = asked || f.g.asked[x]
		}
		require.True(t, asked, "%v", x)
	}
}

func TestWithoutAnyOneGuardAPromiseIsBroken(t *testing.T) {
	t.Parallel()
	for x := range guardCount {
		c := cures[x]
		t.Run(c.words, func(t *testing.T) {
			t.Parallel()
			if len(c.with) > 0 {
				require.Empty(t, explore(c.play, false, x), "it does not stand twice")
				require.Empty(t, explore(c.play, false, c.with...), "%v is not needed", x)
			}
			taken := append([]guard{x}, c.with...)
			// A way out that is missing shows before anything has happened. What happens tells more.
			trace := explore(c.play, true, taken...)
			if trace == "" {
				trace = explore(c.play, false, taken...)
			}
			require.NotEmpty(t, trace, "nothing is wrong without %v", x)
			t.Log("\n" + trace)
		})
	}
}

// explore goes through a play without some guards.
func explore(name string, anyWay bool, taken ...guard) string {
	list := plays()
	i := slices.IndexFunc(list, func(p *play) bool { return p.name == name })
	x := newExplorer(without(taken...), list[i])
	x.anyWay = anyWay
	return x.explore()
}
