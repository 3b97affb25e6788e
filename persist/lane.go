package persist

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
)

// maxWaiting bounds the ids that wait for a flush: who comes with more waits for
// room.
const maxWaiting = 16 * MaxBatch

// lane is one writer. It gathers the writes of many callers and sends them in
// flushes, one after the other: while one is on its way the next gathers, and
// nothing waits on a timer. (Group commit: DeWitt et al., "Implementation
// Techniques for Main Memory Database Systems", SIGMOD 1984.) See "Sessions" in
// doc.go for why one flush at a time, and why they are numbered.
//
// A goroutine sends the flushes. It is started by the write that finds none, and
// ends when none is left. One that waits for an answer that nobody wants any more is
// left alone with it, and another takes its place.
type lane struct {
	shard *shard
	op    string // of its flushes, in log events

	durable bool // a flush is not answered before it is where s.wait wants it

	// Only the goroutine touches these, and finish while there is none.
	session string
	number  uint64 // of the last flush
	known   uint64 // of the last flush that was answered
	owed    bool   // it is not known whether a flush was executed, and none was answered since
	doubted bool   // some flush was sent twice, or not answered: a copy may come late

	mu struct {
		sync.Mutex
		waiting []*write      // in the order they came
		ids     int           // in waiting
		sending bool          // the goroutine is there
		room    chan struct{} // closed when a flush takes from waiting; nil: nobody waits for room
		idle    chan struct{} // closed when the goroutine ends; nil: nobody waits for it
		fencing func()        // ends the fence that is under way; nil: none is
	}
}

// write is what one call, or a chunk of it, writes: at most MaxBatch ids.
type write struct {
	op       string // as in errors and log events
	code     string // in lua/flush.lua
	lane     int    // of its shard
	ids      int
	once     []any // what stands in front of the ids there
	args     []any // the ids, each with what belongs to it
	values   int   // that the answer has for each id
	newWork  bool  // Redis refuses it when it is out of memory
	answered chan *answer

	// Guarded by lane.mu.
	flush *flush // that took it, nil while it waits
	gone  bool   // its caller has gone
}

func newLane(s *shard, op string) *lane { return &lane{shard: s, op: op, session: rand.Text()} }

// do sends w with a flush and returns its answer, or when ctx ends.
func (l *lane) do(ctx context.Context, w *write) *answer {
	w.answered = make(chan *answer, 1)
	if !l.enter(ctx, w) {
		return &answer{cut: true}
	}
	select {
	case a := <-w.answered:
		return a
	case <-ctx.Done():
	}
	sent := l.leave(w)
	select {
	case a := <-w.answered: // both at once: an answer is worth more
		return a
	default:
		return &answer{cut: true, ran: sent}
	}
}

// enter adds w to what waits, as soon as there is room; false if ctx ended first.
func (l *lane) enter(ctx context.Context, w *write) bool {
	for {
		room := l.tryEnter(w)
		if room == nil {
			return true
		}
		select {
		case <-room:
		case <-ctx.Done():
			return false
		}
	}
}

// tryEnter adds w, or returns what is closed when there may be room.
func (l *lane) tryEnter(w *write) (room <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.ids > 0 && l.mu.ids+w.ids > maxWaiting {
		if l.mu.room == nil {
			l.mu.room = make(chan struct{})
		}
		return l.mu.room
	}
	l.mu.waiting = append(l.mu.waiting, w)
	l.mu.ids += w.ids
	if l.mu.fencing != nil {
		l.mu.fencing() // w does as well
	}
	if !l.mu.sending {
		l.mu.sending = true
		go l.send()
	}
	return nil
}

// leave is called when the caller of w goes. It tells whether w may have been
// sent: if not it never will be.
func (l *lane) leave(w *write) (sent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.flush != nil {
		w.gone = true
		w.flush.cancelIfGoneLocked()
		return true
	}
	i := slices.Index(l.mu.waiting, w)
	l.mu.waiting = slices.Delete(l.mu.waiting, i, i+1)
	l.takenLocked(w.ids)
	return false
}

func (l *lane) takenLocked(ids int) {
	l.mu.ids -= ids
	if l.mu.room != nil {
		close(l.mu.room)
		l.mu.room = nil
	}
}

// send sends flushes until nothing waits.
func (l *lane) send() {
	for {
		f := l.take()
		switch {
		case f != nil:
			ok := l.commit(f)
			f.cancel()
			if !ok {
				return
			}
		case l.owed:
			l.fence()
		case l.end():
			return
		}
	}
}

// end ends the goroutine, unless something waits.
func (l *lane) end() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.mu.waiting) > 0 {
		return false
	}
	l.mu.sending = false
	l.mu.waiting = nil
	if l.mu.idle != nil {
		close(l.mu.idle)
		l.mu.idle = nil
	}
	return true
}

// take makes a flush of what came first, nil when nothing waits.
func (l *lane) take() *flush {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, ids := 0, 0
	for n < len(l.mu.waiting) && (n == 0 || ids+l.mu.waiting[n].ids <= MaxBatch) {
		ids += l.mu.waiting[n].ids
		n++
	}
	if n == 0 {
		return nil
	}
	f := l.newFlushLocked(slices.Clone(l.mu.waiting[:n]))
	clear(l.mu.waiting[:n])
	l.mu.waiting = l.mu.waiting[n:]
	l.takenLocked(ids)
	return f
}

// finish waits until nothing is being sent, ends the session and begins another.
// It returns the old one if it can be forgotten: each flush was sent once, and
// answered.
func (l *lane) finish(ctx context.Context) (forget string, err error) {
	for {
		forget, idle := l.tryFinish()
		if idle == nil {
			return forget, nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// tryFinish returns what is closed when nothing is being sent any more; nil: the
// session has ended.
func (l *lane) tryFinish() (forget string, idle <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.sending {
		if l.mu.idle == nil {
			l.mu.idle = make(chan struct{})
		}
		return "", l.mu.idle
	}
	if l.number > 0 && !l.doubted {
		forget = l.session
	}
	if l.number > 0 {
		l.session, l.number, l.known, l.owed, l.doubted = rand.Text(), 0, 0, false, false
	}
	return forget, nil
}
