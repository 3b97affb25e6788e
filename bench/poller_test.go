package bench

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/panjf2000/ants/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/bench/internal/fires"
	"github.com/orderwheel/orderwheel/internal/redistest"
)

const (
	pollEvery = 100 * time.Millisecond
	pollKey   = "{bench}:polled"
	// pollWorkers is the engine's default too.
	pollWorkers = 64
)

// BenchmarkPoller measures what most teams write: every 100 ms all due ids are read
// from a ZSet, and who removes one runs it on a pool. It keeps no lease: what it has
// removed is lost when the process dies.
func BenchmarkPoller(b *testing.B) {
	for _, load := range loads() {
		b.Run(fmt.Sprintf("op=fire/rate=%d", load.Rate), func(b *testing.B) {
			for b.Loop() {
				fires.Measure(b, load, func(fired func(id string)) fires.Subject {
					server, client := startRedis(b)
					p := startPoller(b.Context(), client, fired)
					return fires.Subject{Arm: p.arm, Armers: callers, ArmsPerSecond: armsPerSecond * 2 / 3, Stop: func() {
						p.stop()
						_ = client.Close()
						server.Kill()
					}}
				})
			}
		})
	}
}

// poller is the rival.
type poller struct {
	client *redis.Client
	pool   *ants.PoolWithFuncGeneric[string]
	ctx    context.Context
	cancel context.CancelFunc
	loop   sync.WaitGroup
}

func startPoller(ctx context.Context, client *redis.Client, fire func(id string)) *poller {
	pool, err := ants.NewPoolWithFuncGeneric(pollWorkers, fire)
	if err != nil {
		panic(err)
	}
	p := &poller{client: client, pool: pool}
	p.ctx, p.cancel = context.WithCancel(ctx)
	p.loop.Go(p.run)
	return p
}

func (p *poller) arm(id string, due time.Time) error {
	return p.client.ZAdd(p.ctx, pollKey, redis.Z{Score: float64(due.UnixMilli()), Member: id}).Err()
}

func (p *poller) run() {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-p.ctx.Done():
			return
		}
		p.poll()
	}
}

// poll runs what is due. An error is left to the next poll.
func (p *poller) poll() {
	now := strconv.FormatInt(time.Now().UnixMilli(), 10)
	ids, err := p.client.ZRangeArgs(p.ctx, redis.ZRangeArgs{Key: pollKey, ByScore: true, Start: "-inf", Stop: now}).Result()
	if err != nil {
		return
	}
	for _, id := range ids {
		removed, err := p.client.ZRem(p.ctx, pollKey, id).Result()
		if err != nil {
			return
		}
		if removed == 1 { // 0: another instance has it
			_ = p.pool.Invoke(id) // waits for a worker
		}
	}
}

func (p *poller) stop() {
	p.cancel()
	p.loop.Wait()
	p.pool.Release()
}

// What is measured must do the job.
func TestThePollerFiresWhatIsDue(t *testing.T) {
	t.Parallel()
	fired := make(chan string, 10)
	p := startPoller(t.Context(), redistest.Mini(t), func(id string) { fired <- id })
	defer p.stop()
	require.NoError(t, p.arm("far", time.Now().Add(time.Hour)))
	require.NoError(t, p.arm("second", time.Now().Add(time.Millisecond)))
	require.NoError(t, p.arm("first", time.Now().Add(-time.Second)))
	got := []string{<-fired, <-fired}
	require.ElementsMatch(t, []string{"first", "second"}, got)
	require.Empty(t, fired)
}
