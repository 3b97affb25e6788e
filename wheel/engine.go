package wheel

import (
	"hash/maphash"
	"sync"
)

// A shard is locked for a fraction of a microsecond by most calls, and for some
// tens of them by what does the work of many, so a few shards are enough for
// many cores.
const (
	shardBits  = 3
	shardCount = 1 << shardBits
)

// engine is the own wheel.
type engine struct {
	seed   maphash.Seed // a new one for each engine: nobody can choose ids that collide
	shards [shardCount]shard
	driver *driver

	mu struct {
		sync.Mutex
		started, stopped bool
	}
}

// New returns the own engine. It is a Factory.
func New(nowMS func() int64) Wheel {
	e := &engine{seed: maphash.MakeSeed()}
	now := nowMS()
	for i := range e.shards {
		e.shards[i].init(newCore(e.seed, now))
	}
	e.driver = newDriver(nowMS, e.shards[:])
	return e
}

// shardOf is the shard of an id. It takes the top bits of the hash, the index
// takes the low ones.
func (e *engine) shardOf(id string) (s *shard, hash uint32) {
	h := hashOf(e.seed, id)
	return &e.shards[h>>(64-shardBits)], uint32(h)
}

// Schedule implements Wheel.
func (e *engine) Schedule(id string, dueMS int64) {
	s, hash := e.shardOf(id)
	if atMS, sooner := s.schedule(hash, id, dueMS); sooner {
		e.driver.wakeBefore(atMS)
	}
}

// Cancel implements Wheel.
func (e *engine) Cancel(id string) bool {
	s, hash := e.shardOf(id)
	ok, atMS, sooner := s.cancel(hash, id)
	if sooner {
		e.driver.wakeBefore(atMS)
	}
	return ok
}

// Len implements Wheel. It looks at one shard after the other.
func (e *engine) Len() int {
	n := 0
	for i := range e.shards {
		n += e.shards[i].len()
	}
	return n
}

// NextDue implements Wheel. The answer is exact for what is due within half a
// second of the driver's last look; further out it is a lower bound, too low by
// less than the width of a slot: half a second up to 4.4 minutes ahead, 4.4
// minutes up to 37 hours. It rises as time comes near, and does not pass while
// the driver is at work.
func (e *engine) NextDue() (dueMS int64, ok bool) {
	dueMS = never
	for i := range e.shards {
		if due, some := e.shards[i].nextDue(); some {
			dueMS, ok = min(dueMS, due), true
		}
	}
	return dueMS, ok
}

// Start implements Wheel.
func (e *engine) Start(fire func([]Due)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.stopped {
		return
	}
	if e.mu.started {
		panic("wheel: Start called twice")
	}
	e.mu.started = true
	go e.driver.run(fire)
}

// Stop implements Wheel.
func (e *engine) Stop() {
	e.mu.Lock()
	if !e.mu.stopped {
		e.mu.stopped = true
		close(e.driver.quit)
		if !e.mu.started {
			close(e.driver.done)
		}
	}
	e.mu.Unlock()

	<-e.driver.done
	for i := range e.shards {
		e.shards[i].close()
	}
}
