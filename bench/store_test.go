package bench

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/persist"
)

// longAgoMS is when the tasks of a store benchmark are due: they can be claimed.
const longAgoMS = 1_700_000_000_000

// storeBed is a real redis-server that keeps an append-only file, as in
// production, with as many ids as the benchmark has operations.
type storeBed struct {
	client *redis.Client
	store  *persist.Redis
	ids    []string
}

func newStoreBed(b *testing.B) *storeBed {
	b.StopTimer()
	defer b.StartTimer()
	server := redistest.Start(b, "--appendonly", "yes", "--appendfsync", "everysec", "--save", "")
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: 256, ContextTimeoutEnabled: true})
	b.Cleanup(func() { _ = client.Close() })
	store, err := persist.New(client, persist.Options{})
	require.NoError(b, err)
	return &storeBed{client: client, store: store, ids: makeIDs(0, b.N)}
}

// due makes all ids due.
func (s *storeBed) due(b *testing.B) {
	b.StopTimer()
	defer b.StartTimer()
	dues := make([]persist.Due, len(s.ids))
	for i, id := range s.ids {
		dues[i] = persist.Due{ID: id, DueMS: longAgoMS + int64(i)}
	}
	require.NoError(b, s.store.Schedule(b.Context(), dues))
}

// claimed makes all ids running.
func (s *storeBed) claimed(b *testing.B) {
	s.due(b)
	b.StopTimer()
	defer b.StartTimer()
	claims, err := s.store.Claim(b.Context(), "token", s.ids, time.Hour, 0)
	require.NoError(b, err)
	require.Len(b, claims.Claims, len(s.ids))
}

// each has callers call do for each id, each caller one id after the other.
func (s *storeBed) each(b *testing.B, callers int, do func(i int, id string) error) {
	var next atomic.Int64
	var failed atomic.Value
	took := make([][]time.Duration, callers)
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(s.ids) {
					return
				}
				start := time.Now()
				if err := do(i, s.ids[i]); err != nil {
					failed.Store(err)
					return
				}
				took[c] = append(took[c], time.Since(start))
			}
		})
	}
	all.Wait()
	b.StopTimer()
	if err := failed.Load(); err != nil {
		b.Fatal(err)
	}
	calls := slices.Concat(took...)
	slices.Sort(calls)
	b.ReportMetric(float64(calls[len(calls)/2].Nanoseconds()), "p50-ns")
}

// BenchmarkStore measures one operation on one id, by many callers at once, and claim
// and ack in batches too, as the executor makes them: ns/op is the time for each id,
// p50-ns how long a caller waits for an answer.
func BenchmarkStore(b *testing.B) {
	ops := []struct {
		name string
		fill func(*storeBed, *testing.B)
		do   func(ctx context.Context, s *persist.Redis, i int, id string) error
	}{
		{"schedule", func(*storeBed, *testing.B) {}, func(ctx context.Context, s *persist.Redis, i int, id string) error {
			return s.Schedule(ctx, []persist.Due{{ID: id, DueMS: longAgoMS + int64(i)}})
		}},
		{"cancel", (*storeBed).due, func(ctx context.Context, s *persist.Redis, _ int, id string) error {
			got, err := s.Cancel(ctx, []string{id})
			return check(err, got, persist.Cancelled)
		}},
		{"claim", (*storeBed).due, func(ctx context.Context, s *persist.Redis, i int, id string) error {
			got, err := s.Claim(ctx, strconv.Itoa(1000+i), []string{id}, time.Hour, 0)
			if err != nil {
				return err
			}
			return check(nil, []persist.ClaimState{got.Claims[0].State}, persist.Claimed)
		}},
		{"ack", (*storeBed).claimed, func(ctx context.Context, s *persist.Redis, _ int, id string) error {
			got, err := s.Ack(ctx, []persist.Lease{{ID: id, Token: "token"}})
			if err != nil {
				return err
			}
			return check(nil, []persist.SettleState{got[0].State}, persist.Settled)
		}},
	}
	for _, op := range ops {
		for _, callers := range []int{1, 16, 256} {
			b.Run(fmt.Sprintf("op=%s/callers=%d", op.name, callers), func(b *testing.B) {
				s := newStoreBed(b)
				op.fill(s, b)
				ctx := b.Context()
				s.each(b, callers, func(i int, id string) error { return op.do(ctx, s.store, i, id) })
			})
		}
	}
	const batch = "op=%s/callers=1/batch=1000"
	b.Run(fmt.Sprintf(batch, "claim"), func(b *testing.B) {
		s := newStoreBed(b)
		s.due(b)
		s.batches(b, func(i int, ids []string) error {
			got, err := s.store.Claim(b.Context(), strconv.Itoa(1000+i), ids, time.Hour, 0)
			if err == nil && got.Claims[len(ids)-1].State != persist.Claimed {
				err = fmt.Errorf("answered %v", got.Claims[len(ids)-1])
			}
			return err
		})
	})
	b.Run(fmt.Sprintf(batch, "ack"), func(b *testing.B) {
		s := newStoreBed(b)
		s.claimed(b)
		s.batches(b, func(_ int, ids []string) error {
			leases := make([]persist.Lease, len(ids))
			for i, id := range ids {
				leases[i] = persist.Lease{ID: id, Token: "token"}
			}
			got, err := s.store.Ack(b.Context(), leases)
			if err == nil && got[len(ids)-1].State != persist.Settled {
				err = fmt.Errorf("answered %v", got[len(ids)-1])
			}
			return err
		})
	})
	for _, callers := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("op=window/callers=%d", callers), func(b *testing.B) {
			s := newStoreBed(b)
			s.due(b)
			s.pages(b, callers, s.window)
		})
	}
}

func check[T comparable](err error, got []T, want T) error {
	if err == nil && got[0] != want {
		err = fmt.Errorf("answered %v, want %v", got[0], want)
	}
	return err
}

// batches calls do for all ids, a thousand at a time.
func (s *storeBed) batches(b *testing.B, do func(i int, ids []string) error) {
	i := 0
	for ids := range slices.Chunk(s.ids, persist.MaxBatch) {
		if err := do(i, ids); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

// window reads the n ids from number from on, by the store.
func (s *storeBed) window(ctx context.Context, from, n int) (int, error) {
	after := persist.Cursor{DueMS: longAgoMS + int64(from) - 1, ID: "~"}
	page, err := s.store.Window(ctx, after, persist.MaxDueMS, n)
	return len(page.Due), err
}

// zrange is window by a ZRANGE.
func (s *storeBed) zrange(ctx context.Context, from, n int) (int, error) {
	got, err := s.client.ZRangeArgsWithScores(ctx, redis.ZRangeArgs{
		Key: "{" + persist.DefaultNamespace + ":0}:due", ByScore: true,
		Start: longAgoMS + from, Stop: "+inf", Count: int64(n),
	}).Result()
	return len(got), err
}

// pages has callers read all ids once, in pages.
func (s *storeBed) pages(b *testing.B, callers int, read func(ctx context.Context, from, n int) (int, error)) {
	const pageLen = persist.MaxBatch
	var next atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for {
				from := int(next.Add(pageLen)) - pageLen
				if from >= len(s.ids) {
					return
				}
				want := min(pageLen, len(s.ids)-from)
				if got, err := read(b.Context(), from, want); err != nil || got != want {
					b.Errorf("read %d of %d: %v", got, want, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// BenchmarkRedis measures what the same server does beside a store: zadd-single
// is what one would write by hand, the others are what a single connection can do
// at best.
func BenchmarkRedis(b *testing.B) {
	const key = "{bench}:due"
	for _, callers := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("op=zadd-single/callers=%d", callers), func(b *testing.B) {
			s := newStoreBed(b)
			ctx := b.Context()
			s.each(b, callers, func(i int, id string) error {
				return s.client.ZAdd(ctx, key, redis.Z{Score: float64(longAgoMS + i), Member: id}).Err()
			})
		})
	}
	b.Run("op=zadd-pipelined", func(b *testing.B) {
		s := newStoreBed(b)
		first := 0
		for batch := range slices.Chunk(s.ids, 1000) {
			_, err := s.client.Pipelined(b.Context(), func(p redis.Pipeliner) error {
				for i, id := range batch {
					p.ZAdd(b.Context(), key, redis.Z{Score: float64(longAgoMS + first + i), Member: id})
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
			first += len(batch)
		}
	})
	b.Run("op=zrange", func(b *testing.B) {
		s := newStoreBed(b)
		s.due(b)
		s.pages(b, 1, s.zrange)
	})
}

// BenchmarkPages measures what Window costs beside a ZRANGE. They take turns, a page each, so that
// both meet what the machine does meanwhile.
func BenchmarkPages(b *testing.B) {
	const rounds = 5
	s := newStoreBed(b)
	s.due(b)
	ways := []struct {
		unit string
		read func(ctx context.Context, from, n int) (int, error)
		took time.Duration
	}{{unit: "window-ns", read: s.window}, {unit: "zrange-ns", read: s.zrange}}
	for range rounds {
		for from := 0; from < len(s.ids); from += persist.MaxBatch {
			want := min(persist.MaxBatch, len(s.ids)-from)
			for i := range ways {
				start := time.Now()
				if got, err := ways[i].read(b.Context(), from, want); err != nil || got != want {
					b.Fatalf("read %d of %d: %v", got, want, err)
				}
				ways[i].took += time.Since(start)
			}
		}
	}
	for _, w := range ways {
		b.ReportMetric(float64(w.took.Nanoseconds())/float64(rounds*len(s.ids)), w.unit)
	}
}

// BenchmarkLone measures how long a caller waits who is alone: for Schedule; for a ZADD; for
// a ZADD that is handed to another goroutine, as every call has to be that returns when its
// ctx ends; and for the least script that a schedule can be, which is not handed over. They take
// turns on one server, some calls each, since the time that a processor needs to wake up
// changes from minute to minute.
func BenchmarkLone(b *testing.B) {
	const key, turn = "{bench}:due", 20
	s := newStoreBed(b)
	zadd := func(ctx context.Context, i int, id string) error {
		return s.client.ZAdd(ctx, key, redis.Z{Score: float64(longAgoMS + i), Member: id}).Err()
	}
	ways := []struct {
		unit string
		do   func(ctx context.Context, i int, id string) error
		took []time.Duration
	}{
		{unit: "zadd-p50-ns", do: zadd},
		{unit: "handed-zadd-p50-ns", do: func(ctx context.Context, i int, id string) error {
			done := make(chan error, 1)
			go func() { done <- zadd(ctx, i, id) }()
			select {
			case err := <-done:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}},
		{unit: "least-script-p50-ns", do: func(ctx context.Context, i int, id string) error {
			return leastSchedule.EvalSha(ctx, s.client, []string{key, "{bench}:claims", "{bench}:dead", "{bench}:sessions"},
				"session", i+1, longAgoMS+i, id).Err()
		}},
		{unit: "schedule-p50-ns", do: func(ctx context.Context, i int, id string) error {
			return s.store.Schedule(ctx, []persist.Due{{ID: id, DueMS: longAgoMS + int64(i)}})
		}},
	}
	ctx := b.Context()
	require.NoError(b, leastSchedule.Load(ctx, s.client).Err())
	for i, id := range s.ids {
		w := &ways[i/turn%len(ways)]
		start := time.Now()
		if err := w.do(ctx, i, id); err != nil {
			b.Fatal(err)
		}
		w.took = append(w.took, time.Since(start))
	}
	b.StopTimer()
	for _, w := range ways {
		if len(w.took) > 0 { // of the first run, which has one operation
			slices.Sort(w.took)
			b.ReportMetric(float64(w.took[len(w.took)/2].Nanoseconds()), w.unit)
		}
	}
}

// leastSchedule is a schedule of one id with no more than the promise needs: a copy that comes
// late is refused, what runs or is dead is left to another script, and the flush is remembered.
var leastSchedule = redis.NewScript(`
	local last = redis.call('HGET', KEYS[4], ARGV[1])
	if last and tonumber(last) >= tonumber(ARGV[2]) then return last end
	if redis.call('HEXISTS', KEYS[2], ARGV[4]) == 1 or redis.call('ZSCORE', KEYS[3], ARGV[4]) then return 'other' end
	redis.call('ZADD', KEYS[1], ARGV[3], ARGV[4])
	redis.call('HSET', KEYS[4], ARGV[1], ARGV[2])
	return 'done'
`)
