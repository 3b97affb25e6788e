package executor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/orderwheel/orderwheel/persist/persisttest"
	"github.com/orderwheel/orderwheel/wheel"
)

// dice is a source of random numbers for many goroutines.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (d *dice) n(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

// shaky is a store whose calls take time, fail before they are made, or lose their
// answers, until it is calm.
type shaky struct {
	*persist.Memory
	dice *dice
	calm *atomic.Bool
}

func shake[T any](ctx context.Context, s *shaky, call func() (T, error)) (T, error) {
	var none T
	if s.calm.Load() {
		return call()
	}
	wait := func() {
		if s.dice.n(4) == 0 {
			select {
			case <-time.After(time.Duration(s.dice.n(3000)) * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
	wait()
	if s.dice.n(10) == 0 {
		return none, errors.New("not made")
	}
	v, err := call()
	wait()
	if s.dice.n(10) == 0 {
		return none, errors.New("answer lost")
	}
	return v, err
}

func (s *shaky) Claim(ctx context.Context, token string, ids []string, lease time.Duration, most int) (persist.Claims, error) {
	return shake(ctx, s, func() (persist.Claims, error) { return s.Memory.Claim(ctx, token, ids, lease, most) })
}

func (s *shaky) Ack(ctx context.Context, leases []persist.Lease) ([]persist.Settlement, error) {
	return shake(ctx, s, func() ([]persist.Settlement, error) { return s.Memory.Ack(ctx, leases) })
}

func (s *shaky) Retry(ctx context.Context, retries []persist.Retry) ([]persist.Settlement, error) {
	return shake(ctx, s, func() ([]persist.Settlement, error) { return s.Memory.Retry(ctx, retries) })
}

func (s *shaky) Bury(ctx context.Context, burials []persist.Burial) ([]persist.Settlement, error) {
	return shake(ctx, s, func() ([]persist.Settlement, error) { return s.Memory.Bury(ctx, burials) })
}

func (s *shaky) Renew(ctx context.Context, leases []persist.Lease, lease time.Duration) ([]bool, error) {
	return shake(ctx, s, func() ([]bool, error) { return s.Memory.Renew(ctx, leases, lease) })
}

// scene is what two executors on one store do to tasks at random.
type scene struct {
	t     *testing.T
	dice  *dice
	calm  atomic.Bool
	store *persist.Memory

	mu     sync.Mutex
	atWork map[string]map[context.Context]bool
}

const sceneLease, sceneTimeout = 6 * time.Second, 10 * time.Second

// handle checks that no other handler of t's runs whose ctx lives, and does
// whatever a handler may do.
func (s *scene) handle(ctx context.Context, task Task) error {
	s.mu.Lock()
	for other := range s.atWork[task.ID] {
		if other.Err() == nil && ctx.Err() == nil {
			s.t.Errorf("%s runs twice at once", task.ID)
		}
	}
	if s.atWork[task.ID] == nil {
		s.atWork[task.ID] = map[context.Context]bool{}
	}
	s.atWork[task.ID][ctx] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.atWork[task.ID], ctx)
	}()
	if task.Now.Before(task.Due) {
		s.t.Errorf("%s is early", task.ID)
	}
	if s.calm.Load() {
		return nil
	}
	some := time.Duration(s.dice.n(20_000)) * time.Millisecond
	switch s.dice.n(10) {
	case 0:
		return errors.New("no")
	case 1:
		panic("no")
	case 2:
		runtime.Goexit()
	case 3:
		return RetryAt(time.Now().Add(some))
	case 4:
		if s.dice.n(10) == 0 {
			return Permanent(errors.New("never"))
		}
	case 5:
		time.Sleep(some) // whatever its ctx says
	case 6, 7:
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(some):
		}
	}
	return nil
}

// recover does what package recovery would for either executor.
func (s *scene) recover(ctx context.Context, instances []*rig) {
	for ctx.Err() == nil {
		time.Sleep(time.Second)
		to := instances[s.dice.n(len(instances))]
		reaped, err := s.store.Reap(context.Background(), 100)
		require.NoError(s.t, err)
		to.OfferReaped(wheelDues(reaped))
		page, err := s.store.Window(context.Background(), persist.Cursor{}, time.Now().UnixMilli(), 1000)
		require.NoError(s.t, err)
		to.Offer(wheelDues(page.Due), FromSweep)
	}
}

func wheelDues(dues []persist.Due) []wheel.Due {
	list := make([]wheel.Due, len(dues))
	for i, d := range dues {
		list[i] = wheel.Due(d)
	}
	return list
}

// Whatever handlers and store do: no task runs twice at once with both ctx alive, each
// ends, and nothing is left in memory. One executor is stopped on the way.
func TestRandomHandlersOnAShakyStore(t *testing.T) {
	t.Parallel()
	for _, seed := range persisttest.Seeds(t, 10) {
		for _, size := range []int{1, 7} {
			t.Run(fmt.Sprintf("seed=%d/size=%d", seed, size), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { playScene(t, seed, size) })
			})
		}
	}
}

func playScene(t *testing.T, seed uint64, size int) {
	s := &scene{
		t: t, dice: &dice{r: rand.New(rand.NewPCG(seed, uint64(size)))}, store: persist.NewMemory(nil),
		atWork: map[string]map[context.Context]bool{},
	}
	change := func(c *Config) {
		c.Store = &shaky{s.store, s.dice, &s.calm}
		c.Workers, c.Lease, c.HandlerTimeout = 5, sceneLease, sceneTimeout
		c.RequireClaim = true // else an id may run in both when the store is slow
		c.Backoff = Backoff{Base: time.Second, Cap: 10 * time.Second, Jitter: 0.2, Attempts: 5}
		if size > 1 {
			c.Handler, c.BatchSize = nil, size
			c.BatchHandler = func(ctx context.Context, tasks []Task) []error {
				errs := make([]error, len(tasks))
				for i, task := range tasks {
					errs[i] = s.handle(ctx, task)
				}
				return errs
			}
		}
	}
	instances := []*rig{setup(t, s.handle, change), setup(t, s.handle, change)}
	ctx, cancel := context.WithCancel(t.Context())
	var recovering sync.WaitGroup
	recovering.Go(func() { s.recover(ctx, instances) })

	const n = 200
	for i := range n {
		at := time.Now().Add(time.Duration(s.dice.n(60_000)) * time.Millisecond).UnixMilli()
		id := fmt.Sprint(i)
		require.NoError(t, s.store.Schedule(t.Context(), []persist.Due{{ID: id, DueMS: at}}))
		instances[i%2].cfg.Board.UserScheduled(id, at)
	}
	later(time.Duration(30+s.dice.n(60)) * time.Second)
	stopCtx, stopped := context.WithTimeout(ctx, time.Duration(s.dice.n(3000))*time.Millisecond)
	if err := instances[0].Stop(stopCtx); err != nil {
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	stopped()
	later(time.Minute)
	s.calm.Store(true)
	later(10 * time.Minute)
	cancel()
	recovering.Wait()

	depth, err := s.store.Depth(t.Context())
	require.NoError(t, err)
	require.Zero(t, depth.Due)
	require.Zero(t, depth.Running)
	dead := instances[0].Stats().Dead + instances[1].Stats().Dead
	require.LessOrEqual(t, dead, uint64(depth.Dead), "nobody is told dead who is not")
	for _, r := range instances {
		require.NoError(t, r.Stop(t.Context()))
		r.mu.Lock()
		left := []int{len(r.mu.held), r.mu.running, r.mu.spare, len(r.mu.calls), r.mu.stuck, r.mu.extra, r.mu.unsettled, len(r.mu.finished), len(r.mu.apart)}
		r.mu.Unlock()
		require.Equal(t, make([]int, len(left)), left, "held, running, spare, calls, stuck, extra, unsettled, finished, apart")
	}
}
