package main

import (
	"context"
	"sync"
	"time"

	"github.com/RussellLuo/timingwheel"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
)

// wheelOnly is a bare timing wheel in memory, RussellLuo's, with nothing behind it: what
// is due is given to a pool.
//
// Where it is used: articles show it last, as what Kafka and Netty do; in apps, for what may be
// forgotten.
//
// What it risks: what delayQueue does, for the wheel is gone with the process. It is the
// cheaper of the two to add to, and to remove from.
type wheelOnly struct {
	env    *scheme.Env
	wheel  *timingwheel.TimingWheel
	pool   *scheme.Pool
	ending context.Context
	end    context.CancelFunc

	mu struct {
		sync.Mutex
		timers map[string]*timingwheel.Timer
	}
}

const (
	wheelTick  = time.Millisecond
	wheelSlots = 64
)

func newWheelOnly(env *scheme.Env) scheme.Scheme {
	s := &wheelOnly{env: env, wheel: timingwheel.NewTimingWheel(wheelTick, wheelSlots), pool: scheme.NewPool(env.Workers)}
	s.mu.timers = make(map[string]*timingwheel.Timer)
	return s
}

func (s *wheelOnly) Start(ctx context.Context) error {
	s.ending, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.wheel.Start()
	return nil
}

func (s *wheelOnly) Add(_ context.Context, o scheme.Order) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.timers[o.ID] = s.wheel.AfterFunc(time.Until(o.ExpireAt), func() { s.fire(o.ID) })
	return nil
}

// fire is called by the wheel, each time on a goroutine of its own.
func (s *wheelOnly) fire(id string) {
	s.mu.Lock()
	_, ok := s.mu.timers[id]
	delete(s.mu.timers, id)
	s.mu.Unlock()
	if !ok || s.ending.Err() != nil {
		return
	}
	s.pool.Go(func() {
		if err := s.env.Handle(context.WithoutCancel(s.ending), id); err != nil {
			s.env.Alarm("close", err) // and it is gone
		}
	})
}

func (s *wheelOnly) Remove(_ context.Context, id string) error {
	s.mu.Lock()
	t := s.mu.timers[id]
	delete(s.mu.timers, id)
	s.mu.Unlock()
	if t != nil {
		t.Stop()
	}
	return nil
}

func (s *wheelOnly) Stop() {
	s.end()
	s.wheel.Stop()
	s.pool.Wait()
}
