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

	claims, err := store.Claim(ctx, "a-new-token", []string{"order-17"}, 30*time.Second, 0)
	fmt.Println("claimed:", claims.Claims[0].State == persist.Claimed, claims.Claims[0].Attempt, err)

	settled, err := store.Ack(ctx, []persist.Lease{{ID: "order-17", Token: "a-new-token"}})
	fmt.Println("settled:", settled[0].State == persist.Settled, err)

	// Output:
	// scheduled: <nil>
	// claimed: true 1 <nil>
	// settled: true <nil>
}

// A task that cannot succeed is buried with its reason. An operator looks at the dead,
// mends the cause, and brings them back.
func ExampleRedis_Dead() {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	defer client.Close()
	store, err := persist.New(client, persist.Options{})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}

	must(store.Schedule(ctx, []persist.Due{{ID: "order-17", DueMS: time.Now().Add(-time.Millisecond).UnixMilli()}}))
	_, err = store.Claim(ctx, "a-new-token", []string{"order-17"}, 30*time.Second, 16)
	must(err)
	_, err = store.Bury(ctx, []persist.Burial{{
		Lease:  persist.Lease{ID: "order-17", Token: "a-new-token"},
		Reason: "coupon 4711 does not exist",
	}})
	must(err)

	page, err := store.Dead(ctx, persist.Cursor{}, 100)
	must(err)
	var ids []string
	for _, d := range page.Dead {
		fmt.Printf("%s after %d attempt: %s\n", d.ID, d.Attempt, d.Reason)
		ids = append(ids, d.ID)
	}
	requeued, err := store.Requeue(ctx, ids)
	must(err)
	fmt.Println(requeued[0].State)

	records, err := store.Lookup(ctx, ids)
	must(err)
	fmt.Println(records[0].Status, records[0].Attempt)
	depth, err := store.Depth(ctx)
	must(err)
	fmt.Printf("%+v\n", depth)

	// Output:
	// order-17 after 1 attempt: coupon 4711 does not exist
	// scheduled
	// due 0
	// {Due:1 Running:0 Dead:0}
}
