package executor

import (
	"context"
	"sync"
	"time"
)

// handlerCtx is the ctx of one call of a handler: it ends at the deadline, with its parent,
// or by end. What that takes, two contexts and a timer, is made when somebody looks at it
// first, for many handlers never do, and it would cost more than all else here.
type handlerCtx struct {
	parent   context.Context
	deadline time.Time

	mu struct {
		sync.Mutex
		real   context.Context // nil: nobody has looked
		cancel context.CancelCauseFunc
		stop   context.CancelFunc
		over   bool // it was ended before anybody looked
	}
}

// Deadline implements context.Context, as the other methods do.
func (c *handlerCtx) Deadline() (time.Time, bool) { return c.deadline, true }

func (c *handlerCtx) Done() <-chan struct{} { return c.look().Done() }
func (c *handlerCtx) Err() error            { return c.look().Err() }

// Value gives package context what it needs for context.Cause, and to end the children.
func (c *handlerCtx) Value(key any) any { return c.look().Value(key) }

func (c *handlerCtx) look() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.makeLocked()
	return c.mu.real
}

func (c *handlerCtx) makeLocked() {
	if c.mu.real != nil {
		return
	}
	timed, stop := c.parent, context.CancelFunc(func() {})
	if !c.mu.over {
		timed, stop = context.WithDeadline(c.parent, c.deadline)
	}
	c.mu.stop = stop
	c.mu.real, c.mu.cancel = context.WithCancelCause(timed)
	if c.mu.over {
		c.mu.cancel(nil)
	}
}

// end ends c because of cause; nil: the handler has returned.
func (c *handlerCtx) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cause != nil {
		c.makeLocked()
	}
	if c.mu.real == nil {
		c.mu.over = true
		return
	}
	c.mu.cancel(cause)
	c.mu.stop()
}

// ended reports whether c has ended, and does not look.
func (c *handlerCtx) ended(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.real != nil {
		return c.mu.real.Err() != nil
	}
	return c.mu.over || !now.Before(c.deadline) || c.parent.Err() != nil
}
