package wheel

import (
	"slices"
	"sync"
	"sync/atomic"
)

// shard is a core with its lock.
type shard struct {
	// What the core asks of the driver: never later than core.next says.
	// Written with mu held, read without.
	dueMS, tendMS atomic.Int64

	mu struct {
		sync.Mutex
		core   core
		closed bool // by Stop: core is empty and must not be used
	}
}

func (s *shard) init(c core) {
	s.mu.core = c
	s.askLocked(wakeup{never, never})
}

// askLocked records what the core asks for.
func (s *shard) askLocked(w wakeup) {
	s.dueMS.Store(w.dueMS)
	s.tendMS.Store(w.tendMS)
}

// lowerLocked records that the core asks for w too, and tells whether that is
// sooner than all it asked for before: then the driver may have to be woken.
func (s *shard) lowerLocked(w wakeup) (sooner bool) {
	if w.dueMS < s.dueMS.Load() {
		s.dueMS.Store(w.dueMS)
		sooner = true
	}
	if w.tendMS < s.tendMS.Load() {
		s.tendMS.Store(w.tendMS)
		sooner = true
	}
	return sooner
}

// schedule arms id. When it returns sooner, the driver must look at atMS.
func (s *shard) schedule(hash uint32, id string, dueMS int64) (atMS int64, sooner bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return never, false
	}
	w := s.mu.core.schedule(hash, id, dueMS)
	return min(w.dueMS, w.tendMS), s.lowerLocked(w)
}

// cancel disarms id. When it returns sooner, the driver must look at atMS.
func (s *shard) cancel(hash uint32, id string) (ok bool, atMS int64, sooner bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return false, never, false
	}
	ok, w := s.mu.core.cancel(hash, id)
	return ok, min(w.dueMS, w.tendMS), s.lowerLocked(w)
}

// advance appends to out what has expired at nowMS. It gives the lock free
// again and again, so that a storm in one slot does not keep callers waiting.
func (s *shard) advance(nowMS int64, out []Due) []Due {
	for s.dueMS.Load() <= nowMS {
		out = slices.Grow(out, pieceLen) // here, and not with the lock held
		out = s.advancePiece(nowMS, out)
	}
	return out
}

func (s *shard) advancePiece(nowMS int64, out []Due) []Due {
	s.mu.Lock()
	defer s.mu.Unlock()
	out = s.mu.core.advance(nowMS, out)
	s.askLocked(s.mu.core.next())
	return out
}

// tend does one piece of the work that can wait.
func (s *shard) tend(nowMS int64) {
	if s.tendMS.Load() > nowMS {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.core.tend(nowMS)
	s.askLocked(s.mu.core.next())
}

// nextDue is the core's nextDue; ok is false when nothing is armed.
func (s *shard) nextDue() (dueMS int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.core.len() == 0 {
		return never, false
	}
	dueMS = s.mu.core.nextDue()
	s.lowerLocked(s.mu.core.tidyUp()) // it can wait for the driver's next look
	return dueMS, true
}

func (s *shard) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.mu.core.len()
	s.lowerLocked(s.mu.core.tidyUp())
	return n
}

// close frees all that the core holds. Nothing may advance or tend it any more.
func (s *shard) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.closed = true
	s.mu.core = core{}
	s.askLocked(wakeup{never, never})
}
