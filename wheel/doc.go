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
// # Who owns what
//
//	caller ── Schedule, Cancel ──> engine ── fire(batch) ──> receiver
//	                                 │
//	                              nowMS (the only clock that decides)
//
// The engine keeps the caller's id strings as they are. A string that is a
// slice of a bigger buffer keeps all of that buffer in memory: clone such an id
// first. A batch handed to fire is the receiver's, to keep or to change.
//
// # Engines
//
// Package wheel/russellluo keeps the contract on
// github.com/RussellLuo/timingwheel.
package wheel
