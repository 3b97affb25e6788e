package main

import (
	"context"
	"database/sql/driver"
	"strings"
)

// sqlSteps wraps the connections of the SQLite driver and passes the step within
// the transaction of a close.
type sqlSteps struct {
	driver.Connector
	steps *steps
}

func (c *sqlSteps) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &stepsConn{sqliteConn: conn.(sqliteConn), steps: c.steps}, nil
}

// sqliteConn is what the driver's connections implement, all of which a wrapper
// must pass on.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// stepsConn is used by one goroutine at a time, as database/sql promises.
type stepsConn struct {
	sqliteConn
	steps  *steps
	closes bool // the transaction has closed an order
}

func (c *stepsConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	c.closes = false
	tx, err := c.sqliteConn.BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	return stepsTx{tx, c}, nil
}

func (c *stepsConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.sqliteConn.ExecContext(ctx, query, args)
	if err == nil && strings.HasPrefix(strings.TrimSpace(query), "UPDATE orders SET status = 'closed'") {
		rows, _ := result.RowsAffected()
		c.closes = c.closes || rows > 0
	}
	return result, err
}

type stepsTx struct {
	driver.Tx
	conn *stepsConn
}

func (t stepsTx) Commit() error {
	if t.conn.closes {
		t.conn.steps.pass(inClose)
	}
	return t.Tx.Commit()
}
