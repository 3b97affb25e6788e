package orderwheel_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/internal/redistest"
)

func TestMain(m *testing.M) {
	if job := os.Getenv(crashChildJob); job != "" {
		os.Exit(crashChild(job))
	}
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"))
}

// hang bounds what must happen but has no speed to keep.
const hang = 20 * time.Second

// onBoth runs a test on miniredis and on a real redis-server.
func onBoth(t *testing.T, test func(t *testing.T, rdb *redis.Client)) {
	t.Run("miniredis", func(t *testing.T) { t.Parallel(); test(t, redistest.Mini(t)) })
	t.Run("redis", func(t *testing.T) { t.Parallel(); test(t, redistest.Start(t).Client(t)) })
}

// runs records what a handler was called for.
type runs struct {
	mu    sync.Mutex
	tasks []executor.Task
	late  []time.Duration // process's clock at entry, less the due time
}

func (r *runs) handle(_ context.Context, t executor.Task) error {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tasks = append(r.tasks, t)
	r.late = append(r.late, now.Sub(t.Due))
	return nil
}

func (r *runs) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.tasks)
}

// byID is how often each id ran.
func (r *runs) byID() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := make(map[string]int)
	for _, t := range r.tasks {
		m[t.ID]++
	}
	return m
}

func (r *runs) wait(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return r.count() >= n }, hang, time.Millisecond)
}

// start makes an engine and starts it. It is stopped at the end of the test. Its tasks
// run under claims alone: on a busy machine a claim can take so long that the engine takes
// Redis for absent, and the second run of a task must not count as a fault. Tests of
// outages ask for unclaimed.
func start(t *testing.T, rdb redis.UniversalClient, h executor.Handler, change ...func(*orderwheel.Config)) *orderwheel.Engine {
	t.Helper()
	cfg := orderwheel.Config{Redis: rdb, Handler: h, RequireClaim: true}
	for _, f := range change {
		f(&cfg)
	}
	eng, err := orderwheel.New(cfg)
	require.NoError(t, err)
	require.NoError(t, eng.Start(t.Context()))
	t.Cleanup(func() { stop(t, eng) })
	return eng
}

// unclaimed has tasks run without a claim while Redis is away, as is the default.
func unclaimed(c *orderwheel.Config) { c.RequireClaim = false }

func stop(t *testing.T, eng *orderwheel.Engine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	require.NoError(t, eng.Stop(ctx))
}

// empty checks that no task is left: only what a namespace keeps, and the sessions of
// engines that run.
func empty(t *testing.T, rdb *redis.Client) {
	t.Helper()
	var keys []string
	require.Eventually(t, func() bool {
		keys = slices.DeleteFunc(rdb.Keys(context.Background(), "{*}*").Val(), func(key string) bool {
			return slices.ContainsFunc([]string{":sessions", ":shards", ":epoch", ":reconcile"},
				func(end string) bool { return strings.HasSuffix(key, end) })
		})
		return len(keys) == 0
	}, hang, 5*time.Millisecond, "keys left: %v", keys)
}
