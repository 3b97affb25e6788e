package bench

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/bench/internal/fires"
	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/persist"
)

const (
	// callers is how many goroutines call the engine at once, as an app's requests do.
	callers = 256
	// armsPerSecond is far below what they reach.
	armsPerSecond = 15_000
	// stopsWithin bounds a hang.
	stopsWithin = time.Minute
)

// loads are the rates at which ids fire: one that every rival keeps up with, and
// one that shows what each can do.
func loads() []fires.Load {
	if testing.Short() {
		return []fires.Load{{Rate: 200, Seconds: 1}, {Rate: 1000, Seconds: 1}}
	}
	return []fires.Load{{Rate: 2000, Seconds: 10}, {Rate: 20_000, Seconds: 10}}
}

// BenchmarkEngine measures the whole engine, with its defaults and a handler that
// does nothing, on a real redis-server with an append-only file. What the server
// can do at best is measured beside it, in the same run and on the same server.
func BenchmarkEngine(b *testing.B) {
	recovers, due, schedules := 1_000_000, 100_000, 200_000
	if testing.Short() {
		recovers, due, schedules = 20_000, 5_000, 5_000
	}
	for _, load := range loads() {
		b.Run(fmt.Sprintf("op=fire/rate=%d", load.Rate), func(b *testing.B) {
			for b.Loop() {
				fires.Measure(b, load, func(fired func(id string)) fires.Subject {
					bed := newEngineBed(b, func(_ context.Context, t executor.Task) error {
						fired(t.ID)
						return nil
					})
					bed.start(b)
					return fires.Subject{Arm: bed.schedule, Armers: callers, ArmsPerSecond: armsPerSecond, Stop: bed.close}
				})
			}
		})
	}
	b.Run(fmt.Sprintf("op=storm/due=%d", due), func(b *testing.B) {
		for b.Loop() {
			stormOnEngine(b, due)
		}
	})
	b.Run(fmt.Sprintf("op=schedule/callers=%d", callers), func(b *testing.B) {
		for b.Loop() {
			scheduleOnEngine(b, schedules)
		}
	})
	b.Run(fmt.Sprintf("op=recover/tasks=%d", recovers), func(b *testing.B) {
		for b.Loop() {
			recoverOnEngine(b, recovers)
		}
	})
}

// engineBed is an engine and the redis-server that it works on.
type engineBed struct {
	server *redistest.Server
	client *redis.Client
	engine *orderwheel.Engine
	b      *testing.B
}

func newEngineBed(b *testing.B, handler executor.Handler) *engineBed {
	server, client := startRedis(b)
	engine, err := orderwheel.New(orderwheel.Config{Redis: client, Handler: handler})
	require.NoError(b, err)
	return &engineBed{server, client, engine, b}
}

// startRedis starts a redis-server that keeps what it has as one in production does.
func startRedis(b *testing.B) (*redistest.Server, *redis.Client) {
	server := redistest.Start(b, "--appendonly", "yes", "--appendfsync", "everysec", "--save", "")
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: callers, ContextTimeoutEnabled: true})
	b.Cleanup(func() { _ = client.Close() })
	return server, client
}

func (e *engineBed) start(b *testing.B) { require.NoError(b, e.engine.Start(b.Context())) }

func (e *engineBed) schedule(id string, due time.Time) error {
	return e.engine.Schedule(e.b.Context(), id, due)
}

// close stops the engine and its server: the next measurement has both to itself.
func (e *engineBed) close() {
	ctx, cancel := context.WithTimeout(e.b.Context(), stopsWithin)
	defer cancel()
	require.NoError(e.b, e.engine.Stop(ctx))
	require.NoError(e.b, e.client.Close())
	e.server.Kill()
}

// left is how many tasks are due or running.
func (e *engineBed) left(b *testing.B) int64 {
	cmds, err := e.client.Pipelined(b.Context(), func(p redis.Pipeliner) error {
		p.ZCard(b.Context(), tasksKey("due"))
		p.ZCard(b.Context(), tasksKey("running"))
		return nil
	})
	require.NoError(b, err)
	return cmds[0].(*redis.IntCmd).Val() + cmds[1].(*redis.IntCmd).Val()
}

// tasksKey is a ZSet of the only shard.
func tasksKey(state string) string { return "{" + persist.DefaultNamespace + ":0}:" + state }

// byCallers has so many goroutines call do for 0 to n-1.
func byCallers(b *testing.B, callers, n int, do func(i int) error) {
	var next atomic.Int64
	var failed atomic.Value
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for failed.Load() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := do(i); err != nil {
					failed.Store(err.Error())
				}
			}
		})
	}
	all.Wait()
	require.Nil(b, failed.Load())
}

// perSecond is how often something was done that was done n times in that time.
func perSecond(n int, took time.Duration) float64 { return float64(n) / took.Seconds() }

// zaddPipelined is the rate at which one connection adds n members to a ZSet, with
// pipelines of 1,000 commands: what the server can do at best.
func zaddPipelined(b *testing.B, client *redis.Client, n int) float64 {
	const key, pipeline = "{bench}:pipelined", 1000
	start := time.Now()
	for first := 0; first < n; first += pipeline {
		_, err := client.Pipelined(b.Context(), func(p redis.Pipeliner) error {
			for i := first; i < min(first+pipeline, n); i++ {
				p.ZAdd(b.Context(), key, redis.Z{Score: float64(longAgoMS + i), Member: idOf(i)})
			}
			return nil
		})
		require.NoError(b, err)
	}
	rate := perSecond(n, time.Since(start))
	require.NoError(b, client.Unlink(b.Context(), key).Err())
	return rate
}

// idOf makes ids as long as order numbers are.
func idOf(i int) string { return strconv.Itoa(2026_093012345600000 + i) }
