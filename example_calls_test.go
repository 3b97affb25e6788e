package orderwheel_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/persist"
)

// engine is one on a Redis in this process, whose handler closes nothing.
func engine(ctx context.Context, change func(*orderwheel.Config)) (_ *orderwheel.Engine, cleanup func()) {
	mini, err := miniredis.Run()
	must(err)
	rdb := redis.NewClient(&redis.Options{Addr: mini.Addr(), ContextTimeoutEnabled: true})
	cfg := orderwheel.Config{Redis: rdb, Handler: func(context.Context, executor.Task) error { return nil }}
	change(&cfg)
	eng, err := orderwheel.New(cfg)
	must(err)
	must(eng.Start(ctx))
	return eng, func() { shutdown(eng); rdb.Close(); mini.Close() }
}

// A readiness probe.
func ExampleEngine_Health() {
	eng, cleanup := engine(context.Background(), func(*orderwheel.Config) {})
	defer cleanup()
	ready := func(w http.ResponseWriter, _ *http.Request) {
		if h := eng.Health(); !h.OK {
			http.Error(w, strings.Join(h.Problems, "\n"), http.StatusServiceUnavailable)
		}
	}
	probe := func() {
		w := httptest.NewRecorder()
		ready(w, httptest.NewRequest(http.MethodGet, "/ready", nil))
		fmt.Print(w.Code, " ", http.StatusText(w.Code), "\n", w.Body)
	}
	probe()
	shutdown(eng)
	probe()
	// Output:
	// 200 OK
	// 503 Service Unavailable
	// the engine is not running: it closes nothing
}

// Many orders at once, and what there is no room for.
func ExampleEngine_ScheduleMany() {
	ctx := context.Background()
	eng, cleanup := engine(ctx, func(c *orderwheel.Config) { c.MaxPending = 2 })
	defer cleanup()
	at := time.Now().Add(30 * time.Minute)
	orders := []orderwheel.Due{{ID: "order-1", At: at}, {ID: "order-2", At: at}, {ID: "order-3", At: at}}
	err := eng.ScheduleMany(ctx, orders)
	fmt.Println("overloaded:", errors.Is(err, orderwheel.ErrOverloaded))
	for _, i := range persist.Missing(err, len(orders)) {
		fmt.Println("not scheduled:", orders[i].ID)
	}
	depth, err := eng.Depth(ctx)
	must(err)
	fmt.Println("pending:", depth.Due)
	// Output:
	// overloaded: true
	// not scheduled: order-3
	// pending: 2
}

// An operator's tool: what is dead, and why, and once more.
func ExampleEngine_Dead() {
	ctx := context.Background()
	died := make(chan struct{}, 1)
	eng, cleanup := engine(ctx, func(c *orderwheel.Config) {
		c.Handler = func(context.Context, executor.Task) error {
			return executor.Permanent(errors.New("no such order"))
		}
		c.OnDead = func(context.Context, executor.Dead) { died <- struct{}{} }
	})
	defer cleanup()
	must(eng.Schedule(ctx, "order-1", time.Now()))
	<-died

	for after, more := (persist.Cursor{}), true; more; {
		page, err := eng.Dead(ctx, after, 100)
		must(err)
		for _, d := range page.Dead {
			fmt.Printf("%s: %s (attempt %d)\n", d.ID, d.Reason, d.Attempt)
		}
		after, more = page.Next, page.More
	}
	forgotten, err := eng.Discard(ctx, "order-1")
	must(err)
	fmt.Println("forgotten:", forgotten)
	// Output:
	// order-1: no such order (attempt 1)
	// forgotten: true
}
