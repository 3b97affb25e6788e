package persist_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/orderwheel/orderwheel/persist"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// One order from its creation to its close, with a client as the package
// documentation advises.
func Example() {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{
		Addr:                     server.Addr(),
		ContextTimeoutEnabled:    true,
		ReadTimeout:              3 * time.Second,
		WriteTimeout:             3 * time.Second,
		DialTimeout:              2 * time.Second,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	defer client.Close()

	store, err := persist.New(client, persist.Options{})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	expired := time.Now().Add(-time.Millisecond).UnixMilli()
	err = store.Schedule(ctx, []persist.Due{{ID: "order-17", DueMS: expired}})
	fmt.Println("scheduled:", err)

	claims, err := store.Claim(ctx, "a-new-token", []string{"order-17"}, 30*time.Second)
	fmt.Println("claimed:", claims.Claims[0].State == persist.Claimed, claims.Claims[0].Attempt, err)

	settled, err := store.Ack(ctx, []persist.Lease{{ID: "order-17", Token: "a-new-token"}})
	fmt.Println("settled:", settled[0].State == persist.Settled, err)

	// Output:
	// scheduled: <nil>
	// claimed: true 1 <nil>
	// settled: true <nil>
}
