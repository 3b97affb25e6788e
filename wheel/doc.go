// Package wheel keeps ids and the instant each expires, in memory, and hands
// over what has expired. It knows no store, no handler and no network.
//
// # What an engine promises
//
//   - Never early: no id is handed over before the injected clock has reached
//     its due time.
//   - One id, one due time: scheduling an armed id moves it. What was armed
//     before the move is gone, also when its instant was about to come.
//   - A cancel's answer is final: after true the id is not handed over, unless
//     it is scheduled again.
//   - An id leaves the wheel once, by a cancel, by Stop, or by being handed
//     over.
//   - After Stop has returned nothing is handed over.
//
// It promises nothing about what happens after the hand-over: retries, leases
// and repetition after a crash belong to the rooms around it. A wheel is a
// cache of what the store holds, and may be thrown away and rebuilt from it.
//
// The engine keeps the caller's id strings as they are. A string that is a
// slice of a bigger buffer keeps all of that buffer in memory: clone such an id
// first. A batch handed to fire is the receiver's, to keep or to change.
//
// # Engines
//
// New makes the own engine, which the rest of this page describes. Package
// wheel/russellluo keeps the contract on github.com/RussellLuo/timingwheel, and
// says what it cannot promise. Package wheel/wheeltest is the suite that both
// pass.
//
// # Levels and slots
//
// The engine is a hierarchical timing wheel (Varghese and Lauck, "Hashed and
// Hierarchical Timing Wheels", SOSP 1987, scheme 7). Each level is a ring of
// 1,024 slots, and each slot a list of ids:
//
//	level 0: slots of 1 ms      reaches   1 s ahead
//	level 1: slots of 512 ms    reaches   8 min
//	level 2: slots of 4.4 min   reaches   3 days
//	level 3: slots of 37 h      reaches   4 years
//	...
//	level 6                     reaches from one end of int64 to the other
//
// An id goes to the lowest level that reaches its due time. Time does not tick:
// a bit for each slot says whether it is empty, so the next slot with work is
// found in a few instructions however far it is, a late driver catches up
// without walking through what is empty, and an idle wheel sleeps.
//
// When time comes near a slot of a higher level, its ids are poured into the
// levels below. Two things differ from the textbook, and both serve lateness:
//
//   - A slot is half as wide as the level below reaches, not as wide. So there
//     is room below for the next slot beside the current one, and it is poured
//     ahead of time, a hundred ids at a time, when nothing is due. In the
//     textbook a slot is poured at the moment when its first ids are due, and
//     all of them wait until it is done.
//   - The level is chosen by the distance to the due time, and not by the
//     highest bit in which it differs from the current time. With the bit, all
//     that is due beyond a power of two lies in one slot however near it is: a
//     wheel of 30-minute orders would pour nearly all of them at once whenever
//     its clock passes such a boundary.
//
// # Who owns what
//
//	Schedule, Cancel                                  fire(batch)
//	       │                                              ▲
//	       │ hash of the id chooses                       │ no lock held
//	       ▼                                              │
//	┌───────────────┐ mutex                         ┌───────────┐
//	│ shard (of 8)  │ <── advance, tend ─────────── │  driver   │ ── nowMS
//	│  ┌─────────┐  │                               │ goroutine │ ── one timer
//	│  │  core   │  │ ── when it needs the driver ─>└───────────┘
//	│  └─────────┘  │    (two atomics)
//	└───────────────┘
//	   core: index (hash -> node number), levels (slot -> first node),
//	         slab (the nodes, in chunks: id, due time, two links)
//
// The core is a state machine without lock, clock or goroutine. A shard adds
// the lock, which is held for a bounded number of steps at a time. The driver
// is the only goroutine: it asks the clock, advances the shards to what is due,
// and hands over one batch per slot; when nothing is due it does what can wait;
// when nothing can be done it sleeps. Who arms something sooner wakes it.
//
// An id counts as handed over when it has been taken out of its core, with the
// lock held: from then on Cancel answers false, though fire may be called a
// moment later.
//
// # What must hold
//
// The invariants stand on the types they bind: core (an id is in one list, at a
// level that cannot be confused with another round), index (during a resize
// each hash belongs to one of two tables), slab (numbers of nodes in use do not
// change unless the core moves them), shard (what the driver is asked for is
// never too late). audit_test.go checks them all, after random operations that
// are compared with a sorted slice.
//
// # What it costs
//
// A node is 32 bytes. The index adds 8 bytes a place and is 48 to 70 % full.
// The garbage collector sees one pointer for an id, that of its string. Both
// grow and shrink a little with each operation, so no single call pays for a
// resize, and memory goes back when a storm has passed. A shard has
// room for 2.4 billion ids.
//
// With more ids than the caches hold, what an operation costs is how often it
// waits for memory. Schedule waits for nothing: it is noted down, and done with
// 63 others, whose memory is fetched together. Cancel waits for its place in
// the index and for its node. See backlog.go.
//
// bench/wheel.sh measures the engine beside RussellLuo's library and the timers
// of the standard library, each with a map to cancel by id; the README has a
// table. At 1,000,000 ids a cancel is the operation with the smallest lead: what
// it costs is three waits for memory that depend on each other.
package wheel
