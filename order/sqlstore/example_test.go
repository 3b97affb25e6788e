package sqlstore_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/sqlstore"
	"github.com/orderwheel/orderwheel/order/sqlstore/sqlite"
)

// An order that is not paid in time, and the payment that comes too late.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "orders")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := sqlite.Open(ctx, filepath.Join(dir, "orders.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	store := sqlstore.New(db, sqlite.Dialect{})
	if err := store.Migrate(ctx); err != nil {
		log.Fatal(err)
	}

	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	expireAt := now.Add(30 * time.Minute)
	if err := store.AddStock(ctx, "tea", 10); err != nil {
		log.Fatal(err)
	}
	err = store.Create(ctx, order.Order{
		No: "A-1", UserID: "ann", Amount: 1299, ExpireAt: expireAt,
		Items: []order.Item{{SKU: "tea", Quantity: 2}},
	}, now)
	if err != nil {
		log.Fatal(err)
	}

	res, err := store.Close(ctx, "A-1", expireAt.Add(-time.Millisecond)) // the engine calls it, with its clock
	fmt.Println(res, err)
	res, err = store.Close(ctx, "A-1", expireAt)
	fmt.Println(res, err)
	res, err = store.Close(ctx, "A-1", expireAt)
	fmt.Println(res, err)

	out, err := store.Pay(ctx, order.Payment{ID: "pay-7", OrderNo: "A-1", Amount: 1299, At: expireAt.Add(time.Second)})
	fmt.Println(out, err)
	// Output:
	// not yet <nil>
	// closed <nil>
	// already closed <nil>
	// refunded <nil>
}
