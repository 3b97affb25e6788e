package orderwheel

import (
	"context"
	"slices"
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
	t := l.enter(id)
	if err := l.take(ctx, id, t); err != nil {
		return nil, err
	}
	return func() { l.give(id, t) }, nil
}

// lockAll waits for the turns of all ids, or until ctx ends; an id that stands twice
// is locked once. All who want several take them in one order, that of the ids, and
// nobody who holds one waits for another call: so no two wait for each other.
func (l *keyLock) lockAll(ctx context.Context, ids []string) (unlock func(), err error) {
	sorted := slices.Clone(ids)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	turns := make([]*turn, 0, len(sorted))
	unlock = func() {
		for i, t := range turns {
			l.give(sorted[i], t)
		}
	}
	for _, id := range sorted {
		t := l.enter(id)
		if err := l.take(ctx, id, t); err != nil {
			unlock()
			return nil, err
		}
		turns = append(turns, t)
	}
	return unlock, nil
}

// enter counts a user of id's turn.
func (l *keyLock) enter(id string) *turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.keys[id]
	if t == nil {
		if l.keys == nil {
			l.keys = make(map[string]*turn)
		}
		t = &turn{c: make(chan struct{}, 1)}
		l.keys[id] = t
	}
	t.users++
	return t
}

// take waits for a turn that was entered, and leaves it if ctx ends first.
func (l *keyLock) take(ctx context.Context, id string, t *turn) error {
	select {
	case t.c <- struct{}{}:
		return nil
	case <-ctx.Done():
		l.leave(id, t)
		return ctx.Err()
	}
}

// give ends a turn that was taken.
func (l *keyLock) give(id string, t *turn) {
	<-t.c
	l.leave(id, t)
}

func (l *keyLock) leave(id string, t *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(l.keys, id)
	}
}
