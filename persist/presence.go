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
// It remembers which operations failed and takes the success of one of those for
// the end: on a server without memory acks succeed all along, and on a demoted one
// reads do.
type presence struct {
	log  *slog.Logger
	away atomic.Bool // whether mu.failed has any; lets a healthy call pass without the lock

	mu struct {
		sync.Mutex
		failed map[string]bool // operations that failed since Redis was last well
		class  class           // of the failure that was logged
		since  time.Time
	}
}

// failed notes that op failed and will be tried again.
func (p *presence) failed(ctx context.Context, op string, c class, err error) {
	p.mu.Lock()
	first := len(p.mu.failed) == 0
	changed := first || p.mu.class != c
	if first {
		p.mu.failed = make(map[string]bool)
		p.mu.since = time.Now()
	}
	p.mu.failed[op] = true
	p.mu.class = c
	p.away.Store(true)
	p.mu.Unlock()
	if changed {
		p.log.LogAttrs(ctx, slog.LevelWarn, "redis_away",
			slog.String("op", op), slog.String("class", c.String()), slog.Any("error", err))
	}
}

// answered notes that op got its answer.
func (p *presence) answered(ctx context.Context, op string) {
	if !p.away.Load() {
		return
	}
	p.mu.Lock()
	back := p.mu.failed[op]
	since := p.mu.since
	if back {
		p.mu.failed = nil
		p.away.Store(false)
	}
	p.mu.Unlock()
	if back {
		p.log.LogAttrs(ctx, slog.LevelInfo, "redis_back",
			slog.String("op", op), slog.Duration("away", time.Since(since)))
	}
}
