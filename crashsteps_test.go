package orderwheel_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/persist"
)

// crashStep is a place in the life of an order where a process is killed.
type crashStep string

// Inside the close's transaction there is a step after each of its writes, named after it: see
// wrote.
const (
	committed  crashStep = "the order is committed, its task not scheduled"
	scheduled  crashStep = "the task is scheduled, the wheel has not heard of it"
	claimed    crashStep = "the task is claimed, its handler not called"
	closing    crashStep = "all of the close is written, nothing committed"
	closed     crashStep = "the close is committed, the handler has not heard of it"
	unacked    crashStep = "the handler has returned, the ack is not sent"
	acked      crashStep = "the ack is written, the engine has not heard of it"
	rebuilding crashStep = "some pages of the rebuild are read"
	stopping   crashStep = "Stop waits for a handler"
	handing    crashStep = "Stop is about to hand back what is at work"
	handed     crashStep = "Stop has handed back what is at work"
	leaving    crashStep = "Stop is about to remove its sessions"
)

// wrote is the step after a write of the close's transaction, of which verb are the first
// two words.
func wrote(verb string) crashStep { return crashStep("the close has done " + verb) }

// crashSteps lets a process wait for its kill. It is passed in wrappers of the store, the
// handler and the SQL driver: the engine knows nothing of it.
type crashSteps struct {
	at   crashStep
	left atomic.Int64    // so many pass before one has to wait
	hold <-chan struct{} // waited for before the step is told; nil: nothing
	out  io.Writer
}

// pass tells that step is reached, where it is the one to be killed at, and never returns
// then. The rest of the process goes on until the kill.
func (c *crashSteps) pass(step crashStep) {
	if step == c.at && c.left.Add(-1) == -1 {
		if c.hold != nil {
			<-c.hold
		}
		fmt.Fprintln(c.out, "at", step)
		select {}
	}
}

// crashStore passes the steps between the engine and its store.
type crashStore struct {
	orderwheel.Store
	steps *crashSteps
	page  int  // the most tasks that are read at a time
	mute  bool // no claim is made
}

func (s crashStore) Schedule(ctx context.Context, dues []persist.Due) error {
	err := s.Store.Schedule(ctx, dues)
	s.steps.pass(scheduled)
	return err
}

func (s crashStore) Claim(ctx context.Context, token string, ids []string, lease time.Duration, maxAttempts int) (persist.Claims, error) {
	if s.mute {
		<-ctx.Done()
		return persist.Claims{}, ctx.Err()
	}
	claims, err := s.Store.Claim(ctx, token, ids, lease, maxAttempts)
	for _, c := range claims.Claims {
		if c.State == persist.Claimed {
			s.steps.pass(claimed)
		}
	}
	return claims, err
}

func (s crashStore) Ack(ctx context.Context, leases []persist.Lease) ([]persist.Settlement, error) {
	s.steps.pass(unacked)
	answers, err := s.Store.Ack(ctx, leases)
	s.steps.pass(acked)
	return answers, err
}

func (s crashStore) Retry(ctx context.Context, retries []persist.Retry) ([]persist.Settlement, error) {
	abandoned := len(retries) > 0 && retries[0].Abandoned
	if abandoned {
		s.steps.pass(handing)
	}
	answers, err := s.Store.Retry(ctx, retries)
	if abandoned {
		s.steps.pass(handed)
	}
	return answers, err
}

func (s crashStore) Window(ctx context.Context, after persist.Cursor, untilMS int64, limit int) (persist.Page, error) {
	page, err := s.Store.Window(ctx, after, untilMS, min(limit, s.page))
	if len(page.Due) > 0 {
		s.steps.pass(rebuilding)
	}
	return page, err
}

func (s crashStore) Close(ctx context.Context) error {
	s.steps.pass(leaving)
	return s.Store.Close(ctx)
}

// crashConnector makes connections that pass the steps of the close's transaction.
type crashConnector struct {
	driver.Connector
	steps *crashSteps
}

func (c crashConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &crashConn{sqlConn: conn.(sqlConn), steps: c.steps}, nil
}

// sqlConn is what the driver's connections implement, all of which a wrapper must pass on.
type sqlConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// crashConn is used by one goroutine at a time, as database/sql promises.
type crashConn struct {
	sqlConn
	steps  *crashSteps
	closes bool // the transaction has closed an order
}

func (c *crashConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	c.closes = false
	tx, err := c.sqlConn.BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	return crashTx{tx, c}, nil
}

func (c *crashConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.sqlConn.ExecContext(ctx, query, args)
	if err != nil {
		return nil, err
	}
	words := strings.Fields(query)
	if strings.HasPrefix(strings.Join(words, " "), "UPDATE orders SET status = 'closed'") {
		rows, _ := result.RowsAffected()
		c.closes = c.closes || rows > 0
	}
	if c.closes {
		c.steps.pass(wrote(words[0] + " " + words[1]))
	}
	return result, nil
}

type crashTx struct {
	driver.Tx
	conn *crashConn
}

func (t crashTx) Commit() error {
	if t.conn.closes {
		t.conn.steps.pass(closing)
	}
	err := t.Tx.Commit()
	if t.conn.closes && err == nil {
		t.conn.steps.pass(closed)
	}
	return err
}
