package orderwheel_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/orderwheel/orderwheel"
)

// A hundred orders expire at once, and are closed in a few transactions.
func ExampleClosingMany() {
	ctx := context.Background()
	addr, store, cleanup := servers(ctx)
	defer cleanup()
	must(store.AddStock(ctx, "tea", 100))

	rdb := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	defer rdb.Close()
	eng, err := orderwheel.New(orderwheel.Config{
		Redis:        rdb,
		BatchHandler: orderwheel.ClosingMany(store), // in the place of Handler
		Logger:       slog.Default(),
	})
	must(err)
	must(eng.Start(ctx))
	defer shutdown(eng)

	expireAt := time.Now().Add(100 * time.Millisecond)
	for i := range 100 {
		no := fmt.Sprintf("order-%03d", i)
		must(eng.Schedule(ctx, no, expireAt))
		place(ctx, store, no, expireAt)
	}
	for eng.Stats().Executor.Done < 100 {
		time.Sleep(time.Millisecond)
	}
	left, _, err := store.Unpaid(ctx, "", 100)
	must(err)
	fmt.Println("unpaid:", len(left))
	// Output:
	// unpaid: 0
}
