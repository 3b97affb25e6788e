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

// The payment provider is asked before a close, the application told after it, and a message left
// for the service that holds the reserved money.
func ExampleOptions() {
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

	answer := order.PaymentUnknown // at first the provider does not know
	store, err := sqlstore.NewWith(db, sqlite.Dialect{}, sqlstore.Options{
		MaxUnpaid: 3,
		Outbox:    []string{"release-preauth"},
		Ask: func(_ context.Context, orderNo string) (order.ProviderAnswer, error) {
			return answer, nil
		},
		AfterClose: func(_ context.Context, orderNo string, reason order.Reason) {
			fmt.Println("told:", orderNo, reason)
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Migrate(ctx); err != nil {
		log.Fatal(err)
	}
	expireAt := time.Date(2026, 5, 1, 12, 30, 0, 0, time.UTC)
	if err := store.AddStock(ctx, "tea", 10); err != nil {
		log.Fatal(err)
	}
	err = store.Create(ctx, order.Order{
		No: "A-1", UserID: "ann", Amount: 1299, ExpireAt: expireAt, Items: []order.Item{{SKU: "tea", Quantity: 2}},
	}, expireAt.Add(-time.Hour))
	if err != nil {
		log.Fatal(err)
	}

	res, err := store.Close(ctx, "A-1", expireAt)
	fmt.Println(res, err)
	answer = order.NotPaid
	res, err = store.Close(ctx, "A-1", res.AskAgain)
	fmt.Println(res, err)
	err = store.Outbox().Relay(ctx, "A-1", expireAt.Add(time.Minute), func(_ context.Context, m sqlstore.Message) error {
		fmt.Println("send:", m.Kind, m.OrderNo)
		return nil
	})
	fmt.Println(err)
	// Output:
	// held back <nil>
	// told: A-1 timeout
	// closed <nil>
	// send: release-preauth A-1
	// <nil>
}
