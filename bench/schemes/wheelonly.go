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
	env   *scheme.Env
	wheel *timingwheel.TimingWheel
	pool  *scheme.Pool
	ctx   context.Context // of the handlers

	mu struct {
		sync.Mutex
		timers map[string]*timingwheel.Timer
		ended  bool
		firing sync.WaitGroup // added to before ended is set
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
	s.ctx = context.WithoutCancel(ctx)
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
	if !ok || s.mu.ended {
		s.mu.Unlock()
		return
	}
	s.mu.firing.Add(1)
	s.mu.Unlock()
	defer s.mu.firing.Done()
	s.pool.Go(func() {
		if err := s.env.Handle(s.ctx, id); err != nil {
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
	s.mu.Lock()
	s.mu.ended = true
	s.mu.Unlock()
	s.wheel.Stop()
	s.mu.firing.Wait()
	s.pool.Wait()
}
