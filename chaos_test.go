package orderwheel_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/internal/faultproxy"
	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/persist"
)

const (
	chaosEngines = 3
	chaosUsers   = 20
)

// chaos is a random run of several engines on one Redis, to which faults of all kinds happen
// while users schedule, move and cancel, and handlers fail and call the engines themselves.
// What the engines promise is checked at each run of a handler, and at the end.
type chaos struct {
	chaosModel
	engs    []*orderwheel.Engine
	server  *redistest.Server
	proxy   *faultproxy.Proxy // between Redis and all engines but the first
	control *redis.Client
}

// Set ORDERWHEEL_SEED to the number that a failed run has logged.
func newChaos(t *testing.T, requireClaim bool) *chaos {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("ORDERWHEEL_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("ORDERWHEEL_SEED=%d", seed)
	c := &chaos{chaosModel: chaosModel{t: t, strict: requireClaim, rnd: rand.New(rand.NewPCG(seed, 0)), ids: map[string]*chaosID{}}}
	c.server = redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	c.proxy = faultproxy.Start(t, c.server.Addr())
	c.control = redis.NewClient(&redis.Options{Addr: c.server.Addr(), ReadTimeout: hang})
	t.Cleanup(func() { _ = c.control.Close() })
	for i := range chaosEngines {
		addr := c.server.Addr()
		if i > 0 {
			addr = c.proxy.Addr()
		}
		rdb := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, ReadTimeout: 500 * time.Millisecond})
		t.Cleanup(func() { _ = rdb.Close() })
		eng, err := orderwheel.New(orderwheel.Config{
			Redis: rdb, RequireClaim: requireClaim, SweepEvery: 100 * time.Millisecond, Grace: 20 * time.Millisecond, Workers: 8,
			Handler: func(ctx context.Context, task executor.Task) error { return c.handle(ctx, i, task) },
			Retry:   orderwheel.Retry{Base: 5 * time.Millisecond, Cap: 50 * time.Millisecond, Attempts: -1},
		})
		require.NoError(t, err)
		orderwheel.WrapStore(eng, func(s orderwheel.Store) orderwheel.Store {
			return &chaosStore{Store: s, m: &c.chaosModel, engine: i, tokens: map[string]int64{}}
		})
		require.NoError(t, eng.Start(t.Context()))
		t.Cleanup(func() { stop(t, eng) })
		c.engs = append(c.engs, eng)
	}
	return c
}

func (c *chaos) engine() *orderwheel.Engine { return c.engs[c.n(len(c.engs))] }

func (c *chaos) handle(ctx context.Context, engine int, task executor.Task) error {
	claimed := task.Now.UnixMicro()
	c.mu.Lock()
	id := c.ids[task.ID]
	id.began++
	if !task.Unclaimed && !id.mayRun(id.asked[engine], claimed) {
		c.t.Errorf("engine %d: %+v was claimed between %d and %d after these calls: %v", engine, task, id.asked[engine], claimed, id)
	}
	c.mu.Unlock()
	if err := c.work(ctx, task); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !task.Unclaimed {
		id.ran = append(id.ran, claimed)
	}
	return nil
}

// work is what a handler may do, and how it may end.
func (c *chaos) work(ctx context.Context, task executor.Task) error {
	switch c.n(10) {
	case 0:
		return errors.New("it fails")
	case 1:
		panic("it panics")
	case 2:
		return executor.RetryAt(task.Now.Add(c.ms(100)))
	case 3:
		select {
		case <-time.After(c.ms(200)):
		case <-ctx.Done():
			return ctx.Err()
		}
	case 4:
		_ = c.call(ctx, c.engine(), task.ID, c.n(2) == 0, time.Now().Add(c.ms(50)))
	}
	return nil
}

// user works on one id after the other, until ctx ends. Some of its calls are cut short.
func (c *chaos) user(ctx context.Context, user int) {
	for i := 0; ctx.Err() == nil; i++ {
		name := fmt.Sprint(user, "-", i)
		c.mu.Lock()
		c.ids[name] = &chaosID{}
		c.mu.Unlock()
		for range 1 + c.n(6) {
			within := hang
			if c.n(8) == 0 {
				within = c.ms(40)
			}
			callCtx, cancel := context.WithTimeout(context.Background(), within)
			_ = c.call(callCtx, c.engine(), name, c.n(3) == 0, time.Now().Add(c.ms(300)))
			cancel()
			time.Sleep(c.ms(100))
		}
	}
}

// finish makes one more call on each id, and then what is due must run, and nothing be left.
func (c *chaos) finish() {
	lasts := make(map[string]int64) // when what is to run is due
	var lock sync.Mutex
	var all sync.WaitGroup
	names := make(chan string)
	for range chaosUsers {
		all.Go(func() {
			for name := range names {
				ctx, cancel := context.WithTimeout(context.Background(), 3*hang)
				at, cancels := time.Now(), c.n(2) == 0
				if err := c.call(ctx, c.engine(), name, cancels, at); err != nil {
					c.t.Error(err)
				}
				cancel()
				if !cancels {
					lock.Lock()
					lasts[name] = at.Truncate(time.Millisecond).UnixMicro()
					lock.Unlock()
				}
			}
		})
	}
	for name := range c.ids {
		names <- name
	}
	close(names)
	all.Wait()
	c.t.Log("all calls are answered")
	require.Eventually(c.t, func() bool {
		d, err := c.engs[0].Depth(context.Background())
		return err == nil && d == persist.Depth{}
	}, 6*hang, 5*time.Millisecond, "%v", deferred(c.state))
	empty(c.t, c.control)
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, dueUS := range lasts {
		id := c.ids[name]
		ran := slices.ContainsFunc(id.ran, func(claimed int64) bool { return claimed >= dueUS })
		if !ran && id.calls[len(id.calls)-1].dueUS == dueUS { // else its handler has called meanwhile
			c.t.Errorf("%s was due at %d, and has not run since: %v", name, dueUS, id)
		}
	}
}

// state tells how the engines are, and where tasks stand.
func (c *chaos) state() (text string) {
	for _, eng := range c.engs {
		text += fmt.Sprintf("%v\n%+v\n", eng.Health(), eng.Stats())
	}
	for name := range c.ids {
		if r, err := c.engs[0].Lookup(context.Background(), name); err != nil || r.Status != persist.StatusGone {
			text += fmt.Sprintf("%+v %v\n", r, err)
		}
	}
	return text
}

// deferred is a text that is made when it is needed.
type deferred func() string

func (d deferred) String() string { return d() }

func testChaos(t *testing.T, requireClaim bool) {
	if !long() {
		t.Skip("a machine that is short of processor time takes minutes for it: make test-long")
	}
	c := newChaos(t, requireClaim)
	ctx, cancel := context.WithCancel(t.Context())
	var users sync.WaitGroup
	defer users.Wait()
	defer cancel()
	for i := range chaosUsers {
		users.Go(func() { c.user(ctx, i) })
	}
	for range 100 {
		t.Log(c.fault())
		time.Sleep(c.ms(300))
	}
	cancel()
	users.Wait()
	c.finish()
}

func TestWhateverHappensToRedisEachClaimIsRightAndNothingIsLost(t *testing.T) {
	testChaos(t, true)
}

// Here what runs without a claim is not judged: see package executor.
func TestWhateverHappensToRedisNothingIsLostBesideRunsWithoutAClaim(t *testing.T) {
	testChaos(t, false)
}
