package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// customers is how many goroutines call the engine at once.
	customers = 16
	// remembered is how many ids a customer has in mind that it may move or cancel. Some
	// have run when their turn comes.
	remembered = 64

	// burstSize tasks in one millisecond make every worker start, before anything is
	// compared: later they would start one by one, which looks like growth.
	burstSize = 1000

	soonest, latest = 100 * time.Millisecond, 3 * time.Second // until a task is due
)

// engine is what the load needs of the engine.
type engine interface {
	Schedule(ctx context.Context, id string, at time.Time) error
	Cancel(ctx context.Context, id string) (bool, error)
}

// load is the customers at work.
type load struct {
	all    sync.WaitGroup
	failed chan error // of the first that met an error, which ends that customer
}

// startLoad has customers call eng until runCtx ends. A call that is under way then is
// not cut: callCtx does that.
func startLoad(runCtx, callCtx context.Context, eng engine, l *ledger, o options) *load {
	w := &load{failed: make(chan error, customers)}
	for n := range customers {
		c := &customer{
			name: fmt.Sprintf("soak-%d-%x", n, o.seed), eng: eng, ledger: l,
			rnd: rand.New(rand.NewPCG(o.seed, uint64(n))),
		}
		pace := time.Second * customers / time.Duration(o.rate)
		w.all.Go(func() {
			if err := c.shop(runCtx, callCtx, pace); err != nil {
				w.failed <- err
			}
		})
	}
	return w
}

// burst schedules burstSize tasks that are all due in a second.
func burst(ctx context.Context, eng engine, l *ledger, o options) error {
	due := time.Now().Add(time.Second)
	for i := range burstSize {
		id := fmt.Sprintf("burst-%d-%x", i, o.seed)
		l.note(id, succeed)
		if err := eng.Schedule(ctx, id, due); err != nil {
			return err
		}
		l.scheduled.Add(1)
	}
	return nil
}

func (w *load) wait() error {
	w.all.Wait()
	select {
	case err := <-w.failed:
		return err
	default:
		return nil
	}
}

// customer is one caller. No id has two.
type customer struct {
	name   string
	eng    engine
	ledger *ledger
	rnd    *rand.Rand

	made   int
	recent [remembered]string // a ring
}

func (c *customer) shop(runCtx, callCtx context.Context, pace time.Duration) error {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-runCtx.Done():
			return nil
		}
		if err := c.act(callCtx); err != nil {
			return err
		}
	}
}

// act schedules a new task, and moves or cancels an older one now and then.
func (c *customer) act(ctx context.Context) error {
	id := fmt.Sprintf("%s-%d", c.name, c.made)
	c.recent[c.made%remembered] = id
	c.made++
	if err := c.schedule(ctx, id); err != nil {
		return err
	}
	c.ledger.scheduled.Add(1)
	old := c.recent[c.rnd.IntN(min(c.made, remembered))]
	switch r := c.rnd.IntN(100); {
	case r < 30:
		return c.cancel(ctx, old)
	case r < 50:
		c.ledger.moved.Add(1)
		return c.schedule(ctx, old)
	}
	return nil
}

func (c *customer) schedule(ctx context.Context, id string) error {
	c.ledger.note(id, c.plan())
	return c.eng.Schedule(ctx, id, time.Now().Add(soonest+time.Duration(c.rnd.Int64N(int64(latest-soonest)))))
}

func (c *customer) cancel(ctx context.Context, id string) error {
	ok, err := c.eng.Cancel(ctx, id)
	if err != nil {
		return err
	}
	if ok {
		c.ledger.cancelled.Add(1)
	} else {
		c.ledger.tooLate.Add(1)
	}
	c.ledger.forget(id) // also where it runs now: if that fails, it is not tried again
	return nil
}

func (c *customer) plan() plan {
	switch r := c.rnd.IntN(100); {
	case r < 5:
		return fail
	case r < 6:
		return panics
	case r < 8:
		return notYet
	}
	return succeed
}
