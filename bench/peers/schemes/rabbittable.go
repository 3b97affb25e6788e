package main

import (
	"context"
	"time"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
)

// rabbitTable is rabbitDLX with a local message table: the message is written to the
// order database, in real life in the order's own transaction, and then published. What the broker
// has confirmed is marked sent; a job publishes again what is not. A consumer marks what
// it has closed.
//
// Where it is used: where an order that is never closed costs money.
//
// What it risks: four statements an order more. A message may be published twice, so the
// close must be idempotent. The rest is rabbitDLX's.
type rabbitTable struct{ *rabbitDLX }

const (
	toSend, sent, consumed = 0, 1, 2
	// resendAfter is how old a message must be that the job takes for lost: younger
	// ones may be on their way.
	resendAfter = 10 * time.Second
	resendPage  = 500
)

func newRabbitTable(env *scheme.Env) scheme.Scheme { return rabbitTable{newRabbit(env)} }

func (s rabbitTable) Start(ctx context.Context) error {
	if err := s.start(ctx, s.handle); err != nil {
		return err
	}
	s.loops.Every(s.env.Every, s.resend)
	return nil
}

func (s rabbitTable) Add(ctx context.Context, o scheme.Order) error {
	_, err := s.env.DB.ExecContext(ctx, "INSERT INTO local_messages VALUES (?, ?, ?, ?)", o.ID, o.ExpireAt.UnixMilli(), toSend, time.Now().UnixMilli())
	if err != nil {
		return err
	}
	return s.send(ctx, o)
}

func (s rabbitTable) send(ctx context.Context, o scheme.Order) error {
	if err := s.rabbitDLX.Add(ctx, o); err != nil {
		return err
	}
	// It may be consumed by now.
	_, err := s.env.DB.ExecContext(ctx, "UPDATE local_messages SET status = ? WHERE order_no = ? AND status = ?", sent, o.ID, toSend)
	return err
}

func (s rabbitTable) handle(ctx context.Context, id string) error {
	if err := s.env.Handle(ctx, id); err != nil {
		return err
	}
	_, err := s.env.DB.ExecContext(ctx, "UPDATE local_messages SET status = ? WHERE order_no = ?", consumed, id)
	return err
}

// resend publishes what was written and not confirmed.
func (s rabbitTable) resend(ctx context.Context) {
	unsent, err := s.unsent(ctx)
	for _, o := range unsent {
		if err == nil {
			err = s.send(ctx, o)
		}
	}
	if err != nil && ctx.Err() == nil {
		s.env.Alarm("send again", err)
	}
}

func (s rabbitTable) unsent(ctx context.Context) (orders []scheme.Order, err error) {
	before := time.Now().Add(-s.env.Scaled(resendAfter)).UnixMilli()
	rows, err := s.env.DB.QueryContext(ctx,
		"SELECT order_no, due_ms FROM local_messages WHERE status = ? AND written_ms <= ? LIMIT ?", toSend, before, resendPage)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var dueMS int64
		if err := rows.Scan(&id, &dueMS); err != nil {
			return nil, err
		}
		orders = append(orders, scheme.Order{ID: id, ExpireAt: time.UnixMilli(dueMS)})
	}
	return orders, rows.Err()
}
