package persist

import (
	"context"
	"fmt"
	"time"
)

// Turn is the answer of TakeTurn.
type Turn int

// The answers of TakeTurn.
const (
	TurnRefused Turn = iota // another has it, or it rests
	TurnTaken               // it is the owner's from now on
	TurnKept                // it was the owner's, and goes on
)

// TakeTurn asks for the turn to reconcile, of which there is one for all instances in
// this namespace. TurnTaken: it is the owner's until the lease ends, EndTurn gives it
// back, or Redis loses it. TurnKept: the owner had it already, and has it until that
// lease ends. TurnRefused: another has it, or it rests; left is for how long at
// most. With force a turn that rests is taken all the same, one that another works
// in is not.
//
// An owner is named like a token: 1 to 64 visible ASCII characters, not a single -.
// ErrInvalid is returned for another, and for a lease that is not longer than 0. An
// answer that was lost is no harm: to ask again answers TurnKept.
func (r *Redis) TakeTurn(ctx context.Context, owner string, lease time.Duration, force bool) (turn Turn, left time.Duration, err error) {
	return r.turn(ctx, takeScript, owner, howToTake(force), lease)
}

// EndTurn gives the turn back, and lets it rest: until rest is over nobody gets it
// without force. false: the owner did not have it any more.
func (r *Redis) EndTurn(ctx context.Context, owner string, rest time.Duration) (bool, error) {
	turn, _, err := r.turn(ctx, endScript, owner, "rest", rest)
	return turn == TurnKept, err
}

func (r *Redis) turn(ctx context.Context, sc *script, owner, how string, d time.Duration) (turn Turn, left time.Duration, err error) {
	if err := checkTurn(owner, d); err != nil {
		return TurnRefused, 0, err
	}
	rp, err := r.shards[0].run(ctx, sc, owner, how, ceilMS(d))
	if err != nil {
		return TurnRefused, 0, err
	}
	turn, left = Turn(rp.int()), time.Duration(rp.int())*time.Millisecond
	return turn, left, rp.done()
}

// howToTake is what lua/turn.lua is asked for.
func howToTake(force bool) string {
	if force {
		return "force"
	}
	return "take"
}

func checkTurn(owner string, d time.Duration) error {
	if err := checkToken("owner", owner); err != nil {
		return err
	}
	if d <= 0 {
		return fmt.Errorf("%w: the turn's time is %v: it must be longer than 0", ErrInvalid, d)
	}
	return nil
}

// turnState is the turn as a Memory holds it: the table of lua/turn.lua.
type turnState struct {
	owner  string // empty: nobody has it
	rests  bool
	overMS int64
}

func (t *turnState) ask(owner, how string, nowMS, ms int64) (Turn, time.Duration) {
	if t.overMS <= nowMS {
		*t = turnState{}
	}
	mine := t.owner == owner && !t.rests
	if !mine && (how == "rest" || t.owner != "" && !(how == "force" && t.rests)) {
		return TurnRefused, time.Duration(max(t.overMS-nowMS, 0)) * time.Millisecond
	}
	*t = turnState{owner: owner, rests: how == "rest", overMS: nowMS + ms}
	if mine {
		return TurnKept, 0
	}
	return TurnTaken, 0
}
