package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/sqlstore"
	"github.com/orderwheel/orderwheel/order/sqlstore/sqlite"
)

// releasePreauth is the one kind of message: give the money back that an order has reserved.
const releasePreauth = "release-preauth"

// shop closes orders and relays what the closes have to tell.
type shop struct {
	db      *sql.DB
	store   *sqlstore.Store
	orders  *orderwheel.Engine // its tasks are unpaid orders
	relay   *orderwheel.Engine // its tasks are orders with unsent messages
	client  *http.Client
	service string
}

func openShop(ctx context.Context, path string, rdb *redis.Client, service string) (*shop, error) {
	s := &shop{client: &http.Client{Timeout: 5 * time.Second}, service: service}
	var err error
	if s.db, err = sqlite.Open(ctx, path); err != nil {
		return nil, err
	}
	if err := s.begin(ctx, rdb); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *shop) begin(ctx context.Context, rdb *redis.Client) (err error) {
	s.store, err = sqlstore.NewWith(s.db, sqlite.Dialect{}, sqlstore.Options{
		Outbox: []string{releasePreauth},

		// So that the message goes out at once. When this fails, or the process dies before it, the
		// relay's Source finds the message a second later.
		AfterClose: func(ctx context.Context, no string, _ order.Reason) {
			_ = s.relay.Schedule(ctx, no, time.Now())
		},
	})
	if err != nil {
		return err
	}
	if err := s.store.Migrate(ctx); err != nil {
		return err
	}
	s.orders, err = orderwheel.New(orderwheel.Config{
		Redis: rdb, Namespace: "orders",
		Handler: orderwheel.Closing(s.store), Source: s.store,
	})
	if err != nil {
		return err
	}
	s.relay, err = orderwheel.New(orderwheel.Config{
		Redis: rdb, Namespace: "outbox",
		Handler: s.send, Source: s.store.Outbox(), ReconcileEvery: time.Second,

		// No message is given up, however long the service is away.
		Retry: orderwheel.Retry{Attempts: -1, Base: 50 * time.Millisecond, Cap: time.Minute},
	})
	if err != nil {
		return err
	}
	if err := s.relay.Start(ctx); err != nil { // first, for the closes schedule with it
		return err
	}
	return s.orders.Start(ctx)
}

// send relays the messages of one order.
func (s *shop) send(ctx context.Context, t executor.Task) error {
	return s.store.Outbox().Relay(ctx, t.ID, t.Now, s.release)
}

// release tells the service. The key lets it know a message again that it has had.
func (s *shop) release(ctx context.Context, m sqlstore.Message) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.service+"/release?order="+url.QueryEscape(m.OrderNo), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Idempotency-Key", m.Kind+" "+url.QueryEscape(m.OrderNo))
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the payment service says %s", resp.Status)
	}
	return nil
}

// place creates an order of one item, whose stock is delivered with it.
func (s *shop) place(ctx context.Context, no string, expireAt time.Time) error {
	if err := s.store.AddStock(ctx, "tea", 1); err != nil {
		return err
	}
	if err := s.orders.Schedule(ctx, no, expireAt); err != nil {
		return err
	}
	return s.store.Create(ctx, order.Order{
		No: no, UserID: "ann", Amount: 500, ExpireAt: expireAt, Items: []order.Item{{SKU: "tea", Quantity: 1}},
	}, time.Now())
}

func (s *shop) pay(ctx context.Context, no string) error {
	if _, err := s.store.Pay(ctx, order.Payment{ID: "payment of " + no, OrderNo: no, Amount: 500, At: time.Now()}); err != nil {
		return err
	}
	_, err := s.orders.Cancel(ctx, no)
	return err
}

// closed is how many orders this shop has closed.
func (s *shop) closed() int { return int(s.store.Stats().Told) }

// unsent is how many orders have messages that wait; -1 where it cannot be told.
func (s *shop) unsent(ctx context.Context) int {
	ids, _, err := s.store.Outbox().Unpaid(ctx, "", 1000)
	if err != nil {
		return -1
	}
	return len(ids)
}

// close stops the engines, the one that makes messages first.
func (s *shop) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var errs []error
	for _, eng := range []*orderwheel.Engine{s.orders, s.relay} {
		if eng != nil {
			errs = append(errs, eng.Stop(ctx))
		}
	}
	s.client.CloseIdleConnections()
	return errors.Join(append(errs, s.db.Close())...)
}
