package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
)

// rabbitDLX publishes a message with a time to live for each order to a queue that
// nobody consumes. When it expires, the broker moves it to a dead-letter exchange, and from there to a
// queue whose consumers close the order. They acknowledge when it is closed, so a consumer
// that dies loses nothing. Messages are persistent, queues durable, and Add waits for the
// broker's confirm.
//
// Where it is used: where a RabbitMQ is there already. Nothing polls, consumers are woken.
//
// What it risks: only the head of a queue expires. A message with a short time to live behind one
// with a long one waits for that: each time to pay needs a queue of its own. A message cannot
// be taken back when the order is paid. What was not published, because the
// process died between the database and the broker, is never closed.
type rabbitDLX struct {
	env      *scheme.Env
	conn     *amqp.Connection
	publish  chan *amqp.Channel // those that nobody uses now: a channel is for one goroutine
	consumer *amqp.Channel
	loops    *scheme.Loops
	pool     *scheme.Pool
}

// publishers is how many channels publish at once.
const publishers = 16

func newRabbitDLX(env *scheme.Env) scheme.Scheme { return newRabbit(env) }

func newRabbit(env *scheme.Env) *rabbitDLX {
	return &rabbitDLX{env: env, publish: make(chan *amqp.Channel, publishers), pool: scheme.NewPool(env.Workers)}
}

func (s *rabbitDLX) Start(ctx context.Context) error { return s.start(ctx, s.env.Handle) }

func (s *rabbitDLX) waiting() string { return "order.delay." + s.env.Run }
func (s *rabbitDLX) expired() string { return "order.close." + s.env.Run }

func (s *rabbitDLX) start(ctx context.Context, handle func(context.Context, string) error) (err error) {
	if s.conn, err = amqp.Dial(s.env.AMQP); err != nil {
		return err
	}
	if s.consumer, err = s.conn.Channel(); err != nil {
		return err
	}
	if err := s.declare(); err != nil {
		return err
	}
	for range publishers {
		c, err := s.conn.Channel()
		if err == nil {
			err = c.Confirm(false)
		}
		if err != nil {
			return err
		}
		s.publish <- c
	}
	if err := s.consumer.Qos(s.env.Workers, 0, false); err != nil {
		return err
	}
	messages, err := s.consumer.Consume(s.expired(), "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	s.loops = scheme.NewLoops(ctx)
	s.loops.Go(func(ctx context.Context) { s.consume(ctx, messages, handle) })
	return nil
}

// declare makes the exchange and the two queues.
func (s *rabbitDLX) declare() error {
	exchange := s.expired()
	err := s.consumer.ExchangeDeclare(exchange, amqp.ExchangeDirect, true, false, false, false, nil)
	if err != nil {
		return err
	}
	if _, err = s.consumer.QueueDeclare(s.waiting(), true, false, false, false, amqp.Table{
		"x-dead-letter-exchange": exchange, "x-dead-letter-routing-key": s.expired(),
	}); err != nil {
		return err
	}
	if _, err = s.consumer.QueueDeclare(s.expired(), true, false, false, false, nil); err != nil {
		return err
	}
	return s.consumer.QueueBind(s.expired(), s.expired(), exchange, false, nil)
}

func (s *rabbitDLX) consume(ctx context.Context, messages <-chan amqp.Delivery, handle func(context.Context, string) error) {
	for {
		select {
		case m, more := <-messages:
			if !more {
				return
			}
			s.pool.Go(func() {
				err := handle(context.WithoutCancel(ctx), string(m.Body))
				if err == nil {
					err = m.Ack(false)
				} else {
					err = errors.Join(err, m.Nack(false, true)) // again, at once
				}
				if err != nil && ctx.Err() == nil {
					s.env.Alarm("close", err)
				}
			})
		case <-ctx.Done():
			return
		}
	}
}

var errNotConfirmed = errors.New("the broker did not take the message")

func (s *rabbitDLX) Add(ctx context.Context, o scheme.Order) error {
	c := <-s.publish
	defer func() { s.publish <- c }()
	confirm, err := c.PublishWithDeferredConfirmWithContext(ctx, "", s.waiting(), true, false, amqp.Publishing{
		DeliveryMode: amqp.Persistent,
		Expiration:   strconv.FormatInt(untilMS(o.ExpireAt), 10),
		Body:         []byte(o.ID),
	})
	if err != nil {
		return err
	}
	taken, err := confirm.WaitContext(ctx)
	if err == nil && !taken {
		err = fmt.Errorf("order %s: %w", o.ID, errNotConfirmed)
	}
	return err
}

// untilMS is the time until t in milliseconds, rounded up: not a moment early.
func untilMS(t time.Time) int64 {
	return max(0, int64((time.Until(t)+time.Millisecond-1)/time.Millisecond))
}

func (s *rabbitDLX) Remove(context.Context, string) error { return nil }

func (s *rabbitDLX) Stop() {
	s.loops.Stop()
	s.pool.Wait()
	_ = s.conn.Close()
}
