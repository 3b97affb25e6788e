package faultproxy

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// Command is one request as a rule sees it.
type Command struct {
	N     int      // its running number, over all connections, from 1
	Conn  int      // the running number of its connection, from 1
	Words []string // the name and the arguments; not to be changed
}

// Name is the command's name in lower case.
func (c Command) Name() string { return strings.ToLower(c.Words[0]) }

// Rule decides about each command. Rules are asked one at a time, so a rule may
// keep a state of its own; it must not block, and not set rules.
type Rule func(Command) Action

// Only asks rule about the commands of these names, in lower case, and lets the
// others pass.
func Only(rule Rule, names ...string) Rule {
	return func(c Command) Action {
		if !slices.Contains(names, c.Name()) {
			return Action{}
		}
		return rule(c)
	}
}

// Every does a to each n-th command that it is asked about.
func Every(n int, a Action) Rule {
	asked := 0
	return func(Command) Action {
		if asked++; asked%n != 0 {
			return Action{}
		}
		return a
	}
}

// Next does these to the next commands, one each, and then lets all pass.
func Next(actions ...Action) Rule {
	return func(Command) Action {
		if len(actions) == 0 {
			return Action{}
		}
		a := actions[0]
		actions = actions[1:]
		return a
	}
}

// Random does one of actions, each as likely as the others, to a share of the commands, from 0
// to 1, and lets the rest pass. The seed fixes what it does to the n-th command.
func Random(seed uint64, share float64, actions ...Action) Rule {
	rnd := rand.New(rand.NewPCG(seed, 0))
	return func(Command) Action {
		if rnd.Float64() >= share {
			return Action{}
		}
		return actions[rnd.IntN(len(actions))]
	}
}
