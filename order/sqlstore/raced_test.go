//go:build race

package sqlstore_test

// raced says that the race detector is on. SQLite, which is Go here, is ten times slower then.
const raced = true
