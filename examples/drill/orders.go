package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/orderwheel/orderwheel/examples/internal/audit"
	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/sqlstore"
	"github.com/orderwheel/orderwheel/order/sqlstore/sqlite"
)

const namespace = "drill"

// place is what all processes of a round share: the orders, Redis, and the
// audit's notes.
type place struct {
	store *sqlstore.Store
	redis *redis.Client
	audit *audit.Audit
	close func() error
}

func open(ctx context.Context, j job) (*place, error) {
	// A killed process loses no commit, synced or not: only a power failure does.
	db, err := sqlite.OpenWith(ctx, filepath.Join(j.Dir, "orders.db"), sqlite.Options{Sync: sqlite.SyncNormal})
	if err != nil {
		return nil, err
	}
	p := &place{
		store: sqlstore.New(db, sqlite.Dialect{}),
		redis: redis.NewClient(&redis.Options{Addr: j.Redis, ContextTimeoutEnabled: true}),
	}
	p.close = func() error { return errors.Join(p.redis.Close(), db.Close()) }
	if err := p.store.CreateSchema(ctx); err != nil {
		return nil, errors.Join(err, p.close())
	}
	p.audit, err = audit.Open(ctx, audit.Config{DB: db, Redis: p.redis, Namespace: namespace, Dir: j.Dir})
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	p.close = func() error { return errors.Join(p.audit.Close(), p.redis.Close(), db.Close()) }
	return p, nil
}

// Each order has a unit of one of the skus, and every tenth has a coupon. An
// order's expire_at is the same whichever worker creates it, so that a task
// that a killed worker left without its order is never early for the order that
// comes later; and so an order can have expired before it is created.
const (
	skus        = 5
	price       = 100
	couponValid = 24 * time.Hour
	firstExpire = 2 * time.Second  // after the start
	thenSpread  = 15 * time.Second // for the others
)

func (j job) order(i int) order.Order {
	o := order.Order{
		ExpireAt: j.Start.Add(firstExpire + thenSpread*time.Duration(i)/time.Duration(j.Orders)),
		No:       fmt.Sprintf("order-%06d", i), UserID: fmt.Sprintf("user-%06d", i), Amount: price,
		Items: []order.Item{{SKU: fmt.Sprintf("sku-%d", i%skus), Quantity: 1}},
	}
	if i%10 == 0 {
		o.CouponID = fmt.Sprintf("coupon-%06d", i)
	}
	return o
}

// prepare delivers the stock and the coupons for a job's orders.
func prepare(ctx context.Context, j job) (err error) {
	p, err := open(ctx, j)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	for i := range j.Orders {
		o := j.order(i)
		if i < skus {
			if err := p.store.AddStock(ctx, o.Items[0].SKU, int64(j.Orders/skus+1)); err != nil {
				return err
			}
		}
		if o.CouponID != "" {
			if err := p.store.AddCoupon(ctx, o.CouponID, o.UserID, time.Now().Add(couponValid)); err != nil {
				return err
			}
		}
	}
	return p.audit.NoteStock(ctx)
}

// missing lists the orders of a job that have not been created yet.
func (p *place) missing(ctx context.Context, j job) ([]order.Order, error) {
	rows, err := p.store.DB().QueryContext(ctx, `SELECT order_no FROM orders`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	created := map[string]bool{}
	for rows.Next() {
		var no string
		if err := rows.Scan(&no); err != nil {
			return nil, err
		}
		created[no] = true
	}
	var missing []order.Order
	for i := range j.Orders {
		if o := j.order(i); !created[o.No] {
			missing = append(missing, o)
		}
	}
	return missing, rows.Err()
}

func (p *place) countOpen(ctx context.Context) (n int, err error) {
	err = p.store.DB().QueryRowContext(ctx, `SELECT count(*) FROM orders WHERE status = 'unpaid'`).Scan(&n)
	return n, err
}
