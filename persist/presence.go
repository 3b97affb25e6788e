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
		since  time.Time       // when it was
		back   time.Time       // when Redis was back for the last time
	}
}

// failed notes that an attempt of op, begun at start, failed and will be repeated. One
// begun before Redis came back is the last of the old outage and no new one.
func (p *presence) failed(ctx context.Context, op string, start time.Time, c class, err error) {
	if p.noteFailed(op, start, c) {
		p.log.LogAttrs(ctx, slog.LevelWarn, "redis_away",
			slog.String("op", op), slog.String("class", c.String()), slog.Any("error", err))
	}
}

// answered notes that an attempt of op, begun at start, got its answer. One begun before
// the outage says nothing about its end.
func (p *presence) answered(ctx context.Context, op string, start time.Time) {
	if !p.away.Load() {
		return
	}
	if away, back := p.noteAnswered(op, start); back {
		p.log.LogAttrs(ctx, slog.LevelInfo, "redis_back", slog.String("op", op), slog.Duration("away", away))
	}
}

// noteFailed reports whether this is a change.
func (p *presence) noteFailed(op string, start time.Time, c class) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if start.Before(p.mu.back) {
		return false
	}
	first := len(p.mu.failed) == 0
	changed := first || p.mu.class != c
	if first {
		p.mu.failed = make(map[string]bool)
		p.mu.since = time.Now()
	}
	p.mu.failed[op] = true
	p.mu.class = c
	p.away.Store(true)
	return changed
}

// noteAnswered reports whether this is a change, and how long Redis was away.
func (p *presence) noteAnswered(op string, start time.Time) (away time.Duration, back bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.mu.failed[op] || start.Before(p.mu.since) {
		return 0, false
	}
	p.mu.failed = nil
	p.mu.back = time.Now()
	p.away.Store(false)
	return p.mu.back.Sub(p.mu.since), true
}
