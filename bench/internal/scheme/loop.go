package scheme

import (
	"context"
	"sync"
	"time"
)

// Loops are the goroutines of a scheme that do something again and again.
type Loops struct {
	cancel context.CancelFunc
	ctx    context.Context
	all    sync.WaitGroup
}

// NewLoops makes loops whose ctx keeps the values of ctx, and ends with Stop alone.
func NewLoops(ctx context.Context) *Loops {
	l := new(Loops)
	l.ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return l
}

// Context ends when Stop is called.
func (l *Loops) Context() context.Context { return l.ctx }

// Go runs f until it returns, which it does when the ctx ends.
func (l *Loops) Go(f func(ctx context.Context)) { l.all.Go(func() { f(l.ctx) }) }

// Every runs f at each whole multiple of period of the wall clock, as cron does: on
// all instances at the same time. A run that takes longer than period makes the
// next ones wait for the next multiple.
func (l *Loops) Every(period time.Duration, f func(ctx context.Context)) {
	l.Go(func(ctx context.Context) {
		for {
			now := time.Now()
			select {
			case <-time.After(now.Truncate(period).Add(period).Sub(now)):
				f(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
}

// Stop ends the ctx and waits for all loops.
func (l *Loops) Stop() {
	l.cancel()
	l.all.Wait()
}
