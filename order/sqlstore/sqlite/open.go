package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/internal/check"
)

// Sync says what a commit waits for.
type Sync int

const (
	// SyncFull waits until the disk has it: what was committed survives a power loss. One fsync a
	// commit, on macOS F_FULLFSYNC.
	SyncFull Sync = iota

	// SyncNormal waits for nothing: what was committed survives a kill of the process, but a power
	// loss or a crash of the operating system may take the last of it, in order, with the file
	// intact. An order that was closed and acknowledged to Redis may so be open again, and a
	// payment that was confirmed be gone. For throwaway data.
	SyncNormal
)

// Options for OpenWith; the zero value is what Open uses.
type Options struct {
	Sync Sync
}

const (
	// One connection writes; the others are for readers, which WAL lets read meanwhile.
	maxConns = 8

	// SQLite polls for the lock of another process, first after 1 ms, then more and more seldom, up
	// to 100 ms. The wait is short so that the store's next try polls fast again: against a busy
	// writer only many polls win.
	busyTimeoutMS = "100"
)

// Open opens the SQLite file at path for a sqlstore.Store, and creates it if it is absent; the
// tables are created by Store.Migrate. Commits survive a power loss (SyncFull). The caller
// closes it.
//
// Each connection has WAL, foreign keys on, and waits 100 ms for the lock of another process (the
// store then tries again). A transaction takes the write lock as it begins (BEGIN IMMEDIATE), so it
// cannot fail half way for want of it; one begun with sql.TxOptions{ReadOnly: true} takes none. The
// file must be on a local disk: WAL does not work over a network.
func Open(ctx context.Context, path string) (*sql.DB, error) {
	return OpenWith(ctx, path, Options{})
}

// OpenWith is Open with options.
func OpenWith(ctx context.Context, path string, o Options) (*sql.DB, error) {
	c, err := Connector(path, o)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(maxConns)
	db.SetMaxIdleConns(maxConns)
	if err := ping(ctx, db); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), db.Close())
	}
	return db, nil
}

// ping makes the first connection. The switch of a new file to WAL needs it alone, and SQLite does
// not wait for that: processes that open it at the same moment try again, some 5 s at most.
func ping(ctx context.Context, db *sql.DB) error {
	for attempt := 1; ; attempt++ {
		err := db.PingContext(ctx)
		if err == nil || attempt == 100 || !(Dialect{}).Retryable(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(rand.N(100 * time.Millisecond)):
		}
	}
}

// Connector makes the connections of OpenWith, for programs that wrap them (tracing, fault
// injection) before sql.OpenDB.
func Connector(path string, o Options) (driver.Connector, error) {
	var f check.Faults
	if path == "" || path == ":memory:" {
		f.Add("path", check.Quote(path), "name a file; every connection to a database in memory has one of its own")
	}
	sync, known := map[Sync]string{SyncFull: "FULL", SyncNormal: "NORMAL"}[o.Sync]
	if !known {
		f.Add("Options.Sync", int(o.Sync), "give SyncFull or SyncNormal")
	}
	if err := f.Err(order.ErrInvalid); err != nil {
		return nil, fmt.Errorf("open a SQLite file: %w", err)
	}
	q := url.Values{
		"_busy_timeout": {busyTimeoutMS},
		"_foreign_keys": {"on"},
		"_journal_mode": {"WAL"},
		"_synchronous":  {sync},
		"_txlock":       {"immediate"},
		"_error_rc":     {"1"},            // or an error can carry the message of an earlier one
		"_pragma":       {"fullfsync(1)"}, // macOS only: fsync alone leaves data in the disk's cache
	}
	return sqlite.NewConnector("file:" + escape(filepath.ToSlash(path)) + "?" + q.Encode())
}

// escape keeps SQLite from reading parts of a path as URI syntax.
func escape(path string) string {
	return strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path)
}
