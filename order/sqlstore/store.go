package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/orderwheel/orderwheel/order"
)

// How often a transaction that others stopped is tried, and the pauses between the tries: drawn
// from none to a bound that begins with firstPause and doubles up to maxPause. Together at most
// some 5 s, beside what the database itself waits for a lock.
const (
	maxAttempts = 50
	firstPause  = 2 * time.Millisecond
	maxPause    = 100 * time.Millisecond

	// always is the patience of a transaction that no other order waits for.
	always time.Duration = math.MaxInt64
)

// Store keeps orders in a SQL database. Its methods may be called by many goroutines at once, and
// by many processes on one database.
type Store struct {
	db      *sql.DB
	dialect Dialect
	opts    Options
	stats   counters

	// writer is held by the one writing transaction where the dialect allows only one; nil
	// elsewhere.
	writer chan struct{}
}

var _ order.Closer = (*Store)(nil)

// New returns a store on db. The caller keeps db and closes it after its last use of the store.
func New(db *sql.DB, d Dialect) *Store {
	s := &Store{db: db, dialect: d, opts: Options{}.withDefaults()}
	if d.SingleWriter() {
		s.writer = make(chan struct{}, 1)
	}
	return s
}

// NewWith is New with options. order.ErrInvalid names every fault of theirs.
func NewWith(db *sql.DB, d Dialect, o Options) (*Store, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("order store: %w", err)
	}
	s := New(db, d)
	s.opts = o.withDefaults()
	return s, nil
}

// DB is the database, for reads. Whoever writes to the store's tables by other ways than the store
// answers for the ledger.
func (s *Store) DB() *sql.DB { return s.db }

// errMoved is returned by a transaction that saw two states of a row because another transaction
// changed it in between: it is run again.
var errMoved = errors.New("changed by another transaction")

// write runs fn in one transaction and commits it. When fn fails, or ctx ends before the commit,
// nothing is applied. Transactions that others stopped, or that lost their connection before the
// commit, run again, fn included.
func (s *Store) write(ctx context.Context, fn func(*tx) error) error {
	return s.writeFor(ctx, always, fn)
}

// writeFor is write, but what failed when patience is over is not tried again.
func (s *Store) writeFor(ctx context.Context, patience time.Duration, fn func(*tx) error) error {
	return s.retryFor(ctx, patience, func() error { return s.writeOnce(ctx, fn) })
}

func (s *Store) retry(ctx context.Context, try func() error) error {
	return s.retryFor(ctx, always, try)
}

// retryFor runs try until it is neither stopped by others nor loses its connection, ctx ends,
// maxAttempts were made, or patience is over.
func (s *Store) retryFor(ctx context.Context, patience time.Duration, try func() error) error {
	begun, pause := time.Now(), firstPause
	for attempt := 1; ; attempt++ {
		err := try()
		if err == nil || !s.again(err) {
			return err
		}
		if attempt == maxAttempts || time.Since(begun) >= patience {
			return fmt.Errorf("%w, %d times: %w", order.ErrBusy, attempt, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w, while the database was busy: %w", ctx.Err(), err)
		case <-time.After(rand.N(pause)):
		}
		pause = min(2*pause, maxPause)
	}
}

// again reports whether what failed with err was not applied, and may succeed at the next try.
func (s *Store) again(err error) bool {
	return errors.Is(err, errMoved) || s.dialect.Retryable(err) ||
		s.dialect.Lost(err) && !errors.Is(err, order.ErrUnknownOutcome)
}

func (s *Store) writeOnce(ctx context.Context, fn func(*tx) error) error {
	if s.writer != nil {
		select {
		case s.writer <- struct{}{}:
			defer func() { <-s.writer }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	sqlTx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	// After a commit this does nothing. Its error is of no use: a transaction that is not committed
	// is not applied.
	defer func() { _ = sqlTx.Rollback() }()

	if err := fn(&tx{ctx: ctx, tx: sqlTx, dialect: s.dialect, opts: &s.opts}); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := sqlTx.Commit(); err != nil {
		switch {
		case s.dialect.Retryable(err):
			return err
		case errors.Is(err, sql.ErrTxDone):
			return ctx.Err() // it ended just now, and database/sql has rolled back
		}
		// Also where ctx has ended: a driver that waits for the answer no longer then gives the error of
		// ctx (pgx does, bare), and the server may have committed.
		return fmt.Errorf("%w: commit: %w", order.ErrUnknownOutcome, err)
	}
	return nil
}

// tx is one transaction, used by the one goroutine that runs it. It lives no longer than the call
// whose ctx it holds.
type tx struct {
	ctx     context.Context
	tx      *sql.Tx
	dialect Dialect
	opts    *Options
}

// exec runs a statement and returns how many rows it matched. (Each UPDATE of this package changes
// what it matches, so it does not matter that some databases can count the changed ones alone.)
func (t *tx) exec(query string, args ...any) (rows int64, err error) {
	res, err := t.tx.ExecContext(t.ctx, t.dialect.Rebind(query), args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// get reads one row; ok is false when there is none.
func (t *tx) get(query string, args []any, dest ...any) (ok bool, err error) {
	err = t.tx.QueryRowContext(t.ctx, t.dialect.Rebind(query), args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

func (t *tx) query(query string, args ...any) (*sql.Rows, error) {
	return t.tx.QueryContext(t.ctx, t.dialect.Rebind(query), args...)
}
