package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// A step is one call of a transaction to the database driver: "begin", "exec UPDATE orders", "query
// SELECT", "commit". before is called ahead of it, and an error keeps it from being executed; after
// is called when it was executed, and an error takes the place of its answer.
//
// blind is asked ahead of before: true keeps a statement from being executed and answers it as if
// no row matched, as it would have been a moment before another transaction's commit.
//
// statement sees each as it goes to the driver.
type faults struct {
	before, after func(ctx context.Context, step string) error
	blind         func(step string) bool
	statement     func(query string, args []driver.NamedValue)
}

// faultConnector wraps the connections of a driver so that faults, once armed, sees every step.
type faultConnector struct {
	driver.Connector
	armed atomic.Pointer[faults]
}

func openFaulty(b backend, dsn string) (*sql.DB, *faultConnector, error) {
	inner, err := b.connector(dsn)
	if err != nil {
		return nil, nil, err
	}
	c := &faultConnector{Connector: inner}
	return sql.OpenDB(c), c, nil
}

// setupFaulty is setup on a database whose steps can be made to fail.
func setupFaulty(t testing.TB, b backend) (*shop, *faultConnector) {
	t.Helper()
	s, c := uncheckedFaulty(t, b)
	s.checkAtEnd()
	t.Cleanup(c.disarm) // before that
	return s, c
}

func uncheckedFaulty(t testing.TB, b backend) (*shop, *faultConnector) {
	t.Helper()
	db, c, err := openFaulty(b, b.place(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	b.dialect = faultyDialect{b.dialect}
	s := newShop(t, b, db)
	s.fill()
	return s, c
}

func (c *faultConnector) arm(f faults) { c.armed.Store(&f) }
func (c *faultConnector) disarm()      { c.armed.Store(nil) }

func (c *faultConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &faultConn{fullConn: conn.(fullConn), c: c}, nil
}

// fullConn is what the connections of all three drivers implement, all of which a wrapper must pass
// on.
type fullConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
}

type faultConn struct {
	fullConn
	c *faultConnector
}

// IsValid is what those of SQLite and MySQL implement beside that.
func (c *faultConn) IsValid() bool {
	v, ok := c.fullConn.(driver.Validator)
	return !ok || v.IsValid()
}

// CheckNamedValue is what those of MySQL and PostgreSQL do.
func (c *faultConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.fullConn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// step runs do as one step. undo takes back what was done where the caller is to get an error
// instead of it and could not do so itself.
func step[T any](ctx context.Context, c *faultConnector, name string, do func() (T, error), undo func(T)) (T, error) {
	var zero T
	f := c.armed.Load()
	if f == nil {
		return do()
	}
	if f.before != nil {
		if err := f.before(ctx, name); err != nil {
			return zero, err
		}
	}
	v, err := do()
	if err == nil && f.after != nil {
		if err := f.after(ctx, name); err != nil {
			undo(v)
			return zero, err
		}
	}
	return v, err
}

func (c *faultConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := step(ctx, c.c, "begin",
		func() (driver.Tx, error) { return c.fullConn.BeginTx(ctx, o) },
		func(tx driver.Tx) { _ = tx.Rollback() })
	if err != nil {
		return nil, err
	}
	return &faultTx{Tx: tx, ctx: ctx, c: c.c}, nil
}

func (c *faultConn) ExecContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Result, error) {
	c.c.see(q, args)
	if c.c.blinded("exec " + verb(q)) {
		return driver.RowsAffected(0), nil
	}
	return step(ctx, c.c, "exec "+verb(q),
		func() (driver.Result, error) { return c.fullConn.ExecContext(ctx, q, args) },
		func(driver.Result) {})
}

func (c *faultConn) QueryContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Rows, error) {
	c.c.see(q, args)
	if c.c.blinded("query " + verb(q)) {
		return noRows{}, nil
	}
	return step(ctx, c.c, "query "+verb(q),
		func() (driver.Rows, error) { return c.fullConn.QueryContext(ctx, q, args) },
		func(rows driver.Rows) { _ = rows.Close() })
}

func (c *faultConnector) see(q string, args []driver.NamedValue) {
	if f := c.armed.Load(); f != nil && f.statement != nil {
		f.statement(q, args)
	}
}

func (c *faultConnector) blinded(step string) bool {
	f := c.armed.Load()
	return f != nil && f.blind != nil && f.blind(step)
}

type noRows struct{}

func (noRows) Columns() []string         { return nil }
func (noRows) Close() error              { return nil }
func (noRows) Next([]driver.Value) error { return io.EOF }

type faultTx struct {
	driver.Tx
	ctx context.Context
	c   *faultConnector
}

func (t *faultTx) Commit() error {
	committed := false
	_, err := step(t.ctx, t.c, "commit", func() (struct{}, error) {
		committed = true
		return struct{}{}, t.Tx.Commit()
	}, func(struct{}) {})
	if !committed { // the connection must be free of the transaction, as a broken one would be
		_ = t.Tx.Rollback()
	}
	return err
}

// verb is the first two words of a statement.
func verb(q string) string {
	words := strings.Fields(q)
	return strings.Join(words[:min(2, len(words))], " ")
}
