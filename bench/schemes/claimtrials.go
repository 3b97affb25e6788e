package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
)

const (
	claimOrders = 400
	claimRate   = 100 // a second: no scheme has any trouble with it
	heapOrders  = 200_000

	// Each twentieth handler takes a tenth of a second: half a second's worth of work a
	// second for one goroutine, beside the closes themselves.
	slowOneIn = 20
	slowTakes = 150 * time.Millisecond

	// Each handler takes a while, so that some are at work when the process is killed.
	batchTakes = 200 * time.Millisecond
	oneTakes   = 5 * time.Millisecond // of a scheme with one: it must keep up

	// So few that they do not queue for workers, which would hide that they are early.
	seldomRate   = 20
	seldomOrders = 200

	// Each fiftieth order has longer to pay.
	longerOneIn = 50
	longerFor   = 2 * time.Second
)

// claimTrial is a trial of a row on few orders.
func claimTrial(ctx context.Context, o options, s *servers, name string, change func(*trial)) (Figures, error) {
	r, ok := rowNamed(name)
	if !ok {
		return Figures{}, fmt.Errorf("no row is named %q", name)
	}
	t := trial{row: r, orders: claimOrders, rate: claimRate, scale: o.scale, workers: o.workers, instances: 1}
	change(&t)
	return t.run(ctx, s)
}

// claimOfHeap tells what an order costs in the heap. It is no claim of theirs, who only say that
// it is in memory.
func claimOfHeap(_ context.Context, o options, _ Report, s *servers) ([]Claim, error) {
	if !picked(o, s, "delay-queue") {
		return nil, nil
	}
	p := scheme.Plan{Orders: heapOrders, Rate: 1000}
	ids := make([]string, p.Orders) // the order app has these anyway
	for i := range ids {
		ids[i] = p.Order(i).ID
	}
	before := heapBytes()
	q := newHeapQueue()
	for i, id := range ids {
		q.put(id, p.Order(i).ExpireAt)
	}
	each := float64(heapBytes()-before) / heapOrders
	runtime.KeepAlive(q)
	runtime.KeepAlive(ids)
	return []Claim{{"the heap costs memory for each order", confirmed,
		fmt.Sprintf("%.0f bytes each beside the id, with %d in it", each, heapOrders)}}, nil
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func claimOfSlowHandler(ctx context.Context, o options, _ Report, s *servers) ([]Claim, error) {
	if !picked(o, s, "wheel-only") || !picked(o, s, "wheel-inline") {
		return nil, nil
	}
	slow := func(t *trial) { t.slowEvery, t.slowFor = slowOneIn, slowTakes }
	pool, err := claimTrial(ctx, o, s, "wheel-only", slow)
	if err != nil {
		return nil, err
	}
	inline, err := claimTrial(ctx, o, s, "wheel-inline", slow)
	if err != nil {
		return nil, err
	}
	return []Claim{{"a slow handler on the wheel's goroutine blocks the rest", verdict(inline.LateP50MS > 5*pool.LateP50MS && inline.LateMaxMS > slowTakes.Seconds()*1000/2),
		fmt.Sprintf("one in %d takes %v: on the wheel's goroutine p50 %s, p99 %s ms late; on a pool %s and %s",
			slowOneIn, slowTakes, ms(inline.LateP50MS), ms(inline.LateP99MS), ms(pool.LateP50MS), ms(pool.LateP99MS))}}, nil
}

func claimOfBatches(ctx context.Context, o options, _ Report, s *servers) (all []Claim, err error) {
	none := func(lost int) bool { return lost == 0 }
	for _, c := range []struct {
		claim, row string
		takes      time.Duration
		ok         func(lost int) bool
	}{
		{"a process that dies takes with it what it had popped: one at a time, one at most", "zset-poll/1s", oneTakes, func(lost int) bool { return lost <= 1 }},
		{"a process that dies takes with it what it had popped: in batches, up to a hundred", "zset-batch", batchTakes, func(lost int) bool { return lost > 1 && lost <= batchSize }},
		{"with an ack, what a dead process had taken is closed after all", "zset-ack", batchTakes, none},
		{"with a safety scan, what the trigger lost is closed after all", "combined", batchTakes, none},
		{"orderwheel loses none", "orderwheel", batchTakes, none},
	} {
		r, _ := rowNamed(c.row)
		if !picked(o, s, r.scheme) {
			continue
		}
		f, err := claimTrial(ctx, o, s, c.row, func(t *trial) { t.kill, t.slowEvery, t.slowFor = true, 1, c.takes })
		if err != nil {
			return nil, err
		}
		all = append(all, Claim{c.claim, verdict(c.ok(f.NeverClosed)),
			fmt.Sprintf("%s, each close %v longer, killed in mid-run: %d of %d never closed, the latest %s ms late", c.row, c.takes, f.NeverClosed, f.Orders, ms(f.LateMaxMS))})
	}
	return all, nil
}

func claimOfHeadOfLine(ctx context.Context, o options, _ Report, s *servers) ([]Claim, error) {
	if !picked(o, s, "rabbitmq-dlx") {
		return nil, nil
	}
	same, err := claimTrial(ctx, o, s, "rabbitmq-dlx", func(*trial) {})
	if err != nil {
		return nil, err
	}
	mixed, err := claimTrial(ctx, o, s, "rabbitmq-dlx", func(t *trial) { t.mixedEvery, t.mixedLater = longerOneIn, longerFor })
	if err != nil {
		return nil, err
	}
	return []Claim{{"in one queue a message waits for those before it, whatever its own time to live", verdict(mixed.LateP50MS > longerFor.Seconds()*1000/4),
		fmt.Sprintf("rabbitmq-dlx: one order in %d has %v longer to pay: p50 %s, max %s ms late; all the same time: %s and %s",
			longerOneIn, longerFor, ms(mixed.LateP50MS), ms(mixed.LateMaxMS), ms(same.LateP50MS), ms(same.LateMaxMS))}}, nil
}

func claimOfWholeSeconds(ctx context.Context, o options, _ Report, s *servers) ([]Claim, error) {
	if !picked(o, s, "asynq") {
		return nil, nil
	}
	f, err := claimTrial(ctx, o, s, "asynq", func(t *trial) { t.orders, t.rate = seldomOrders, seldomRate })
	if err != nil {
		return nil, err
	}
	return []Claim{{"a queue whose times are whole seconds runs tasks early", verdict(f.Early > 0),
		fmt.Sprintf("asynq, %d orders a second: %d of %d before their time, and the latest %s ms late", seldomRate, f.Early, f.Orders, ms(f.LateMaxMS))}}, nil
}
