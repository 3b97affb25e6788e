// Package audit judges a run of orders from outside the engine: it believes the
// order tables, the keys in Redis and its own notes, and no counter of the
// engine.
//
// Its notes are
//   - audit_calls: each call of the handler, with this process's clock when it was entered and when it had returned;
//   - audit_stock: the units of each sku before the first order;
//   - audit_unfreezes: each time a coupon was given back, written by a trigger,
//     so in the very transaction that did it.
//
// A call is first noted in a file, by one appending write as it is entered and
// one as it returns. That costs the handler a few microseconds, takes no lock
// of the database, and survives a kill -9 of the process. Each process has a
// file of its own; Report reads all of them into audit_calls, so processes that
// ran one after the other, or at once, are judged together.
//
// Early and late are told by this machine's clock, so Redis should run on the
// same one. An order is judged by the expire_at it has in the end.
package audit
