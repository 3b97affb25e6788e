package persist

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// presence logs when Redis stops serving and when it serves again, once each,
// however many calls fail meanwhile.
//
// Redis is away from the first failure on. It is back when a call is answered that
// says so, and no other waits any more: its operation is one that failed (on a server
// without memory acks succeed all along, and on a demoted one reads do), and it was
// sent after the failure.
type presence struct {
	log  *slog.Logger
	away atomic.Bool // as mu.failed; lets a healthy call pass without the lock

	mu struct {
		sync.Mutex
		waiting int             // calls that failed and are being repeated
		failed  map[string]bool // operations that failed since Redis went away; nil: it is not
		class   class           // of the failure that was logged
		last    time.Time       // when the last call failed
		since   time.Time       // when it went away
		back    time.Time       // when it was back for the last time
	}
}

// caller is one call as presence sees it. It belongs to the call's goroutine.
type caller struct {
	*presence
	op      string
	waiting bool // counted in mu.waiting
}

// failed notes that an attempt, begun at start, failed and will be repeated. One begun
// before Redis came back is the last of the old outage and begins no new one.
func (c *caller) failed(ctx context.Context, start time.Time, cl class, err error) {
	if c.noteFailed(start, cl) {
		c.log.LogAttrs(ctx, slog.LevelWarn, "redis_away",
			slog.String("op", c.op), slog.String("class", cl.String()), slog.Any("error", err))
	}
}

// answered notes that an attempt, begun at start, got its answer: the call ends.
func (c *caller) answered(ctx context.Context, start time.Time) {
	if !c.away.Load() {
		return
	}
	if away, back := c.noteAnswered(start); back {
		c.log.LogAttrs(ctx, slog.LevelInfo, "redis_back", slog.String("op", c.op), slog.Duration("away", away))
	}
}

// gaveUp notes that the call ends without an answer.
func (c *caller) gaveUp() {
	if c.waiting {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.mu.waiting--
	}
}

// noteFailed reports whether this is a change.
func (c *caller) noteFailed(start time.Time, cl class) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if start.Before(c.mu.back) {
		return false
	}
	if !c.waiting {
		c.waiting = true
		c.mu.waiting++
	}
	first := c.mu.failed == nil
	changed := first || c.mu.class != cl
	if first {
		c.mu.failed = make(map[string]bool)
		c.mu.since = time.Now()
	}
	c.mu.failed[c.op] = true
	c.mu.class, c.mu.last = cl, time.Now()
	c.away.Store(true)
	return changed
}

// noteAnswered reports whether this is a change, and how long Redis was away.
func (c *caller) noteAnswered(start time.Time) (away time.Duration, back bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting {
		c.waiting = false
		c.mu.waiting--
	}
	if c.mu.waiting > 0 || !c.mu.failed[c.op] || start.Before(c.mu.since) {
		return 0, false
	}
	c.mu.failed = nil
	c.mu.back = time.Now()
	c.away.Store(false)
	return c.mu.back.Sub(c.mu.since), true
}
