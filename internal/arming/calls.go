package arming

import (
	"sync"
	"time"
)

const (
	// maxUnknown bounds the ids whose last call has an unknown outcome.
	maxUnknown = 1 << 16
	// unknownFor is how long such an id is remembered: far longer than an id
	// stands in the wheel at a time which a call with an unknown outcome may have
	// changed.
	unknownFor = 24 * time.Hour
	// lookEvery is how often a full list is searched for what has expired.
	lookEvery = time.Minute
)

// End is how a user's call has ended.
type End int

// The ends of a user's call.
const (
	Answered End = iota // the store has told what came of it
	Refused             // it was not executed, and will not be
	Unknown             // it may have been executed, or may still be
)

// Calls knows the user's calls that are open, and the ids of which nobody knows what
// the last call did. Such an id runs under a claim, or not at all: what is known of
// it here may not be so any more. The zero Calls is ready. It is safe for concurrent
// use.
//
// Its memory is bounded: an entry for each open call, and at most maxUnknown more.
// When these are full, every id counts as one of them, for unknownFor.
type Calls struct {
	mu struct {
		sync.Mutex
		open    map[string]int
		unknown map[string]unknown
		seq     uint64    // unknown outcomes so far
		full    time.Time // when one was not noted; zero: never
		looked  time.Time // when unknown was searched for what has expired
	}
}

type unknown struct {
	seq uint64
	at  time.Time
}

// Begin notes that a call on id begins. Every call must be ended.
func (c *Calls) Begin(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.open == nil {
		c.mu.open = make(map[string]int)
	}
	c.mu.open[id]++
}

// End notes how a call on id has ended.
func (c *Calls) End(id string, how End) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.open[id]--; c.mu.open[id] <= 0 {
		delete(c.mu.open, id)
	}
	switch how {
	case Answered:
		delete(c.mu.unknown, id)
	case Unknown:
		c.unknownLocked(id)
	}
}

func (c *Calls) unknownLocked(id string) {
	now := time.Now()
	if _, known := c.mu.unknown[id]; !known && len(c.mu.unknown) >= maxUnknown {
		if now.Sub(c.mu.looked) >= lookEvery {
			c.mu.looked = now
			for id, u := range c.mu.unknown {
				if now.Sub(u.at) >= unknownFor {
					delete(c.mu.unknown, id)
				}
			}
		}
		if len(c.mu.unknown) >= maxUnknown {
			c.mu.full = now
			return
		}
	}
	if c.mu.unknown == nil {
		c.mu.unknown = make(map[string]unknown)
	}
	c.mu.seq++
	c.mu.unknown[id] = unknown{c.mu.seq, now}
}

// Seq is to be read before a claim is asked, and handed to Claimed with its answer.
func (c *Calls) Seq() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.seq
}

// Claimed notes that the claim of ids, asked when Seq was seq, has told how they stand
// in the store.
func (c *Calls) Claimed(seq uint64, ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.mu.unknown) == 0 {
		return
	}
	for _, id := range ids {
		if u, ok := c.mu.unknown[id]; ok && u.seq <= seq {
			delete(c.mu.unknown, id)
		}
	}
	if len(c.mu.unknown) == 0 {
		c.mu.unknown = nil // maps do not shrink
	}
}

// Blocks reports whether a call on id is open, or the last one has an unknown outcome.
func (c *Calls) Blocks(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.open[id] > 0 || c.fullLocked() {
		return true
	}
	u, ok := c.mu.unknown[id]
	return ok && time.Since(u.at) < unknownFor
}

// Full reports whether more outcomes are unknown than can be noted.
func (c *Calls) Full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fullLocked()
}

func (c *Calls) fullLocked() bool {
	return !c.mu.full.IsZero() && time.Since(c.mu.full) < unknownFor
}
