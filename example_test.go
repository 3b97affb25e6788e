package orderwheel_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/sqlstore"
	"github.com/orderwheel/orderwheel/order/sqlstore/sqlite"
)

// Two orders are placed. One is paid in time, the other is closed when it expires.
func Example() {
	ctx := context.Background()
	addr, store, cleanup := servers(ctx)
	defer cleanup()

	// Embed:
	rdb := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	defer rdb.Close()
	eng, err := orderwheel.New(orderwheel.Config{Redis: rdb, Handler: orderwheel.Closing(store), Logger: slog.Default()})
	must(err)
	must(eng.Start(ctx)) // brings back what Redis holds, then fires
	defer shutdown(eng)  // waits for running handlers; what has not run stays in Redis

	now, err := eng.Now(ctx) // by Redis' clock
	must(err)
	expireAt := now.Add(30 * time.Minute)
	must(eng.Schedule(ctx, "order-1", expireAt)) // nil: it is in Redis
	place(ctx, store, "order-1", expireAt)       // after Schedule: no order is ever without its close
	pay(ctx, store, "order-1")                   // before Cancel: the database decides who wins
	ok, err := eng.Cancel(ctx, "order-1")        // true: it will not run
	// Embedded.

	must(err)
	fmt.Println("cancelled:", ok)
	expireAt = now.Add(50 * time.Millisecond)
	must(eng.Schedule(ctx, "order-2", expireAt))
	place(ctx, store, "order-2", expireAt)
	for eng.Stats().Executor.Done == 0 {
		time.Sleep(time.Millisecond)
	}
	for _, no := range []string{"order-1", "order-2"} {
		_, status, err := store.Find(ctx, no)
		must(err)
		fmt.Println(no, status)
	}
	// Output:
	// cancelled: true
	// order-1 paid
	// order-2 closed
}

// Redis was lost with all its tasks. The order database still knows the unpaid orders.
func ExampleSource() {
	ctx := context.Background()
	addr, store, cleanup := servers(ctx)
	defer cleanup()
	place(ctx, store, "order-1", time.Now().Add(50*time.Millisecond)) // and no task of it

	rdb := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	defer rdb.Close()
	eng, err := orderwheel.New(orderwheel.Config{Redis: rdb, Handler: orderwheel.Closing(store), Source: store})
	must(err)
	must(eng.Start(ctx))
	defer shutdown(eng)
	for eng.Stats().Executor.Done == 0 {
		time.Sleep(time.Millisecond)
	}
	_, status, err := store.Find(ctx, "order-1")
	must(err)
	fmt.Println("found:", eng.Stats().Recovery.ReconcileFound)
	fmt.Println("order-1", status)
	// Output:
	// found: 1
	// order-1 closed
}

func place(ctx context.Context, store *sqlstore.Store, no string, expireAt time.Time) {
	must(store.Create(ctx, order.Order{
		No: no, UserID: "user-1", Amount: 100, ExpireAt: expireAt,
		Items: []order.Item{{SKU: "tea", Quantity: 1}},
	}, time.Now()))
}

func pay(ctx context.Context, store *sqlstore.Store, no string) {
	_, err := store.Pay(ctx, order.Payment{ID: "payment-" + no, OrderNo: no, Amount: 100, At: time.Now()})
	must(err)
}

// servers starts a Redis in this process and opens a database in a temporary
// folder.
func servers(ctx context.Context) (addr string, store *sqlstore.Store, cleanup func()) {
	mini, err := miniredis.Run()
	must(err)
	dir, err := os.MkdirTemp("", "orderwheel")
	must(err)
	db, err := sqlite.Open(ctx, filepath.Join(dir, "orders.db"))
	must(err)
	store = sqlstore.New(db, sqlite.Dialect{})
	must(store.Migrate(ctx))
	must(store.AddStock(ctx, "tea", 10))
	return mini.Addr(), store, func() { db.Close(); mini.Close(); os.RemoveAll(dir) }
}

func shutdown(eng *orderwheel.Engine) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	must(eng.Stop(ctx))
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
