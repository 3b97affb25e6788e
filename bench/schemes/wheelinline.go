package main

import (
	"context"
	"time"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
	"github.com/orderwheel/orderwheel/wheel"
)

// wheelInline is a bare timing wheel that runs the close on its own goroutine, as Netty's
// HashedWheelTimer runs its tasks.
//
// Where it is used: where somebody wrote the close into the timer's task.
//
// What it risks: what wheelOnly does. And a close that is slow holds up the wheel: all that is
// due after it waits.
//
// The wheel is orderwheel's own, whose documentation tells callers not to do this: RussellLuo's
// starts a goroutine for each task, and would not show it.
type wheelInline struct {
	env   *scheme.Env
	wheel wheel.Wheel
}

func newWheelInline(env *scheme.Env) scheme.Scheme {
	return &wheelInline{env: env, wheel: wheel.New(func() int64 { return time.Now().UnixMilli() })}
}

func (s *wheelInline) Start(ctx context.Context) error {
	s.wheel.Start(func(due []wheel.Due) {
		for _, d := range due {
			if err := s.env.Handle(context.WithoutCancel(ctx), d.ID); err != nil {
				s.env.Alarm("close", err) // and it is gone
			}
		}
	})
	return nil
}

func (s *wheelInline) Add(_ context.Context, o scheme.Order) error {
	s.wheel.Schedule(o.ID, o.ExpireAt.UnixMilli())
	return nil
}

func (s *wheelInline) Remove(_ context.Context, id string) error {
	s.wheel.Cancel(id)
	return nil
}

func (s *wheelInline) Stop() {
	s.wheel.Stop()
}
