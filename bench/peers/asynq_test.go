package peers

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/bench/internal/fires"
	"github.com/orderwheel/orderwheel/internal/redistest"
)

const (
	taskType = "close"
	// concurrency is the engine's default of Workers.
	concurrency = 64
	// callers is how many goroutines enqueue at once.
	callers = 256
	// armsPerSecond is far below what they reach.
	armsPerSecond = 4000
)

// setups are asynq as it comes, and looking for work as often as a poller does.
// As it comes it is not tried at the higher rate.
var setups = []struct {
	name    string
	every   time.Duration // 0: the defaults, 5 s and 1 s
	maxRate int
}{
	{"", 0, 2000},
	{"/every=100ms", 100 * time.Millisecond, 20_000},
}

func loads() []fires.Load {
	if testing.Short() {
		return []fires.Load{{Rate: 200, Seconds: 1}}
	}
	return []fires.Load{{Rate: 2000, Seconds: 10}, {Rate: 20_000, Seconds: 10}}
}

// BenchmarkAsynq measures asynq under the loads of BenchmarkEngine in package bench,
// on the same kind of redis-server.
func BenchmarkAsynq(b *testing.B) {
	for _, load := range loads() {
		for _, setup := range setups {
			if load.Rate > setup.maxRate {
				continue
			}
			b.Run(fmt.Sprintf("op=fire/rate=%d%s", load.Rate, setup.name), func(b *testing.B) {
				for b.Loop() {
					fires.Measure(b, load, func(fired func(id string)) fires.Subject {
						server := redistest.Start(b, "--appendonly", "yes", "--appendfsync", "everysec", "--save", "")
						p := startPeer(b, server.Addr(), setup.every, fired)
						return fires.Subject{Arm: p.arm, Armers: callers, ArmsPerSecond: armsPerSecond, Stop: func() {
							p.stop()
							server.Kill()
						}}
					})
				}
			})
		}
	}
}

// peer is asynq's client and its server, which share a Redis client.
type peer struct {
	redis  *redis.Client
	client *asynq.Client
	server *asynq.Server
	ctx    context.Context
}

func startPeer(tb testing.TB, addr string, every time.Duration, fire func(id string)) *peer {
	r := redis.NewClient(&redis.Options{Addr: addr, PoolSize: callers})
	p := &peer{redis: r, client: asynq.NewClientFromRedisClient(r), ctx: tb.Context()}
	p.server = asynq.NewServerFromRedisClient(r, asynq.Config{
		Concurrency:              concurrency,
		TaskCheckInterval:        every,
		DelayedTaskCheckInterval: every,
		LogLevel:                 asynq.FatalLevel,
	})
	mux := asynq.NewServeMux()
	mux.HandleFunc(taskType, func(_ context.Context, t *asynq.Task) error {
		fire(string(t.Payload()))
		return nil
	})
	require.NoError(tb, p.server.Start(mux))
	return p
}

// arm schedules id, under its own name, so that it could be cancelled.
func (p *peer) arm(id string, due time.Time) error {
	_, err := p.client.EnqueueContext(p.ctx, asynq.NewTask(taskType, []byte(id)), asynq.TaskID(id), asynq.ProcessAt(due))
	return err
}

func (p *peer) stop() {
	p.server.Shutdown()
	_ = p.redis.Close()
}

// What is measured must do the job.
func TestAsynqFiresWhatIsDue(t *testing.T) {
	t.Parallel()
	fired := make(chan string, 10)
	p := startPeer(t, redistest.Start(t).Addr(), 10*time.Millisecond, func(id string) { fired <- id })
	defer p.stop()
	require.NoError(t, p.arm("far", time.Now().Add(time.Hour)))
	require.NoError(t, p.arm("near", time.Now().Add(time.Second)))
	require.NoError(t, p.arm("past", time.Now().Add(-time.Second)))
	got := []string{<-fired, <-fired}
	require.ElementsMatch(t, []string{"near", "past"}, got)
	require.Empty(t, fired)
}
