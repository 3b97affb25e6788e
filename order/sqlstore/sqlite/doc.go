// Package sqlite opens SQLite files for the sqlstore package, with the driver in pure Go
// (modernc.org/sqlite), so that no C compiler is needed. It is the one package here that imports
// this driver.
//
// # Durability
//
// Open makes every commit wait for the disk (WAL, synchronous FULL). An order that was closed is
// acknowledged to Redis right after its commit, and then no task would close it again: were the
// commit lost to a power failure, the order would be open, its stock locked and its task gone until
// somebody scheduled it again. A payment that was confirmed to the payer would be lost
// for good. Writers pay one fsync a transaction for that, so a disk that takes 1 ms for it bounds
// the store near 1,000 transactions a second, however many goroutines call. SyncNormal is for data
// that may be lost: examples, tests, benchmarks of something else.
package sqlite
