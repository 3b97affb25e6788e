// Package audit judges a run of orders from outside the engine: it believes the
// order tables, the keys in Redis and its own notes, and no counter of the
// engine.
//
// Its notes are
//   - audit_calls: each call of the handler, with its process and that one's clock when it was entered and when it
//     had returned;
//   - audit_stock: the units of each sku before the first order;
//   - audit_unfreezes: each time a coupon was given back, written by a trigger,
//     so in the very transaction that did it;
//   - audit_expiries: each expire_at that an order had before it was moved, written likewise;
//   - when the engine was told of a move, and when Redis was killed, in the files only.
//
// A call is first noted in a file, by one appending write as it is entered and
// one as it returns. That costs the handler a few microseconds, takes no lock
// of the database, and survives a kill -9 of the process. Each process has a
// file of its own (see Notes); Report reads all of them into audit_calls, so
// processes that ran one after the other, or at once, are judged together.
//
// # Early
//
// A call is early when it is entered before the expire_at that the engine had
// been told when it claimed the task: that of the Schedule which had returned
// last. So a call at the old instant is right while an extension has been
// committed and its Schedule has not returned, or never does because the
// process was killed; the close finds the order not yet due then. And an order
// that is closed before its expire_at counts, whatever the engine was told.
//
// Early and late are told by this machine's clock, so all processes and Redis
// should run on the same one.
package audit
