package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"
)

const (
	stepWithin    = 10 * time.Second // for a worker to pass a step; then it is killed where it is
	startedWithin = time.Minute      // a hang
	endsWithin    = time.Minute      // a hang
)

// slot keeps one worker running and does it harm: when one has been killed, the
// next takes its place.
type slot struct {
	round  *round
	number int
	worker *process
}

// run does the events at their instants, lets the last worker work until all is
// done, which ends the context working, and stops it.
func (s *slot) run(ctx, working context.Context, events []event) (err error) {
	if err := s.spawn(""); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = s.worker.cmd.Process.Kill()
			for range s.worker.told {
			}
		}
	}()
	for _, e := range events {
		if err := s.waitFor(ctx, s.round.at(e)); err != nil {
			return err
		}
		if err := s.do(ctx, e); err != nil {
			return fmt.Errorf("%v: %w", e, err)
		}
	}
	if _, err := s.worker.await(working, "", s.heard); working.Err() == nil || ctx.Err() != nil {
		return err
	}
	return s.stop(ctx)
}

func (s *slot) spawn(at step) (err error) {
	j := s.round.job
	j.Slot, j.Step = s.number, at
	s.worker, err = spawn(s.round.program, j)
	return err
}

// waitFor waits until an instant, and notices meanwhile if the worker ends.
func (s *slot) waitFor(ctx context.Context, at time.Time) error {
	ctx, cancel := context.WithDeadlineCause(ctx, at, errItIsTime)
	defer cancel()
	_, err := s.worker.await(ctx, "", s.heard)
	if context.Cause(ctx) == errItIsTime {
		return nil
	}
	return err
}

var errItIsTime = errors.New("it is time")

// heard notes what workers tell at any time.
func (s *slot) heard(verb, rest string) {
	if verb == tellStarted {
		us, _ := strconv.ParseInt(rest, 10, 64)
		s.round.tookToStart(time.Duration(us) * time.Microsecond)
	}
}

func (s *slot) do(ctx context.Context, e event) error {
	switch {
	case e.Do == pauseWorker:
		return s.pause(ctx, e)
	case e.Step == inRebuild: // a restart as in a deploy, and then a kill
		if err := s.stop(ctx); err != nil {
			return err
		}
		if err := s.spawn(e.Step); err != nil {
			return err
		}
	case e.Step == inStop:
		s.worker.tell(tellWait, e.Step)
		s.worker.tell(tellStop)
	case e.Step != atRandom:
		s.worker.tell(tellWait, e.Step)
	}
	at, err := s.stepReached(ctx, e.Step)
	if err != nil {
		return err
	}
	if err := s.worker.kill(); err != nil {
		return err
	}
	s.round.killed(e, at)
	return s.spawn("")
}

// stepReached waits until the worker waits at a step. One that does not pass it
// in time is to be killed where it is.
func (s *slot) stepReached(ctx context.Context, at step) (step, error) {
	if at == atRandom {
		return at, nil
	}
	within, cancel := context.WithTimeout(ctx, stepWithin)
	defer cancel()
	switch _, err := s.worker.await(within, tellAt, s.heard); {
	case err == nil:
		return at, nil
	case within.Err() == context.DeadlineExceeded && ctx.Err() == nil:
		return atRandom, nil
	default:
		return at, err
	}
}

// pause has the worker stand still for longer than its leases last.
func (s *slot) pause(ctx context.Context, e event) error {
	if err := s.worker.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	s.round.logf("%v", e)
	defer func() { _ = s.worker.cmd.Process.Signal(syscall.SIGCONT) }()
	return s.waitFor(ctx, time.Now().Add(e.For))
}

// stop has the worker end as in a deploy: it must do so by itself, and well. One
// that has not started yet gets the time to.
func (s *slot) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endsWithin)
	defer cancel()
	s.worker.tell(tellStop)
	_, err := s.worker.await(ctx, "", s.heard)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("a worker did not stop: %w\n%s", err, s.worker.stderr)
	case !s.worker.cmd.ProcessState.Success():
		return err
	}
	_ = s.worker.in.Close()
	return nil
}
