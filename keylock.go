package orderwheel

import (
	"context"
	"sync"
)

// keyLock makes the user's calls on one id take turns, across the write to the
// store and the arming of the wheel, so that the wheel hears of them in the
// order in which the store did. Different ids do not wait for each other.
type keyLock struct {
	mu   sync.Mutex
	keys map[string]*turn
}

type turn struct {
	c     chan struct{} // capacity 1: full while somebody has the key
	users int           // who has it or waits for it; guarded by keyLock.mu
}

// lock waits for id's turn, or until ctx ends. The caller calls unlock once.
func (l *keyLock) lock(ctx context.Context, id string) (unlock func(), err error) {
	l.mu.Lock()
	t := l.keys[id]
	if t == nil {
		if l.keys == nil {
			l.keys = make(map[string]*turn)
		}
		t = &turn{c: make(chan struct{}, 1)}
		l.keys[id] = t
	}
	t.users++
	l.mu.Unlock()

	select {
	case t.c <- struct{}{}:
		return func() { <-t.c; l.leave(id, t) }, nil
	case <-ctx.Done():
		l.leave(id, t)
		return nil, ctx.Err()
	}
}

func (l *keyLock) leave(id string, t *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(l.keys, id)
	}
}
