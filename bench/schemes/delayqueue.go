package main

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/orderwheel/orderwheel/bench/internal/scheme"
)

// delayQueue keeps the orders in a heap in memory, as java.util.concurrent.DelayQueue
// does. One goroutine takes what is due and gives it to a pool.
//
// Where it is used: in a single process whose orders may be forgotten, and in the first
// half of many articles. It is exact, asks nobody anything, and costs some bytes an order.
//
// What it risks: the heap is gone with the process. What was in it is never closed, unless
// somebody reads it from the database again. An order is known only to the instance that
// created it. A paid order stays in the heap until it is due, as it does in Java unless the
// program pays for remove, which walks through the whole queue.
type delayQueue struct {
	env   *scheme.Env
	queue *heapQueue
	loops *scheme.Loops
	pool  *scheme.Pool
}

func newDelayQueue(env *scheme.Env) scheme.Scheme {
	return &delayQueue{env: env, queue: newHeapQueue(), pool: scheme.NewPool(env.Workers)}
}

func (s *delayQueue) Start(ctx context.Context) error {
	s.loops = scheme.NewLoops(ctx)
	s.loops.Go(func(ctx context.Context) {
		for {
			id, ok := s.queue.take(ctx)
			if !ok {
				return
			}
			s.pool.Go(func() {
				if err := s.env.Handle(context.WithoutCancel(ctx), id); err != nil {
					alarm(ctx, s.env, "close", err) // and it is gone
				}
			})
		}
	})
	return nil
}

func (s *delayQueue) Add(_ context.Context, o scheme.Order) error {
	s.queue.put(o.ID, o.ExpireAt)
	return nil
}

func (s *delayQueue) Remove(context.Context, string) error { return nil }

func (s *delayQueue) Stop() {
	s.loops.Stop()
	s.pool.Wait()
}

// heapQueue is the queue: put by many, taken from by one.
type heapQueue struct {
	mu struct {
		sync.Mutex
		delayed delayedHeap
	}
	sooner chan struct{} // has one when the first has changed
}

func newHeapQueue() *heapQueue { return &heapQueue{sooner: make(chan struct{}, 1)} }

func (q *heapQueue) put(id string, due time.Time) {
	q.mu.Lock()
	heap.Push(&q.mu.delayed, delayed{due.UnixMilli(), id})
	first := q.mu.delayed[0].id == id
	q.mu.Unlock()
	if first {
		select {
		case q.sooner <- struct{}{}:
		default:
		}
	}
}

// take waits until the first is due, and removes it. False: ctx has ended.
func (q *heapQueue) take(ctx context.Context) (id string, ok bool) {
	for {
		wait := time.Hour
		q.mu.Lock()
		if len(q.mu.delayed) > 0 {
			if wait = time.Until(time.UnixMilli(q.mu.delayed[0].dueMS)); wait <= 0 && ctx.Err() == nil {
				first := heap.Pop(&q.mu.delayed).(delayed)
				q.mu.Unlock()
				return first.id, true
			}
		}
		q.mu.Unlock()
		select {
		case <-time.After(wait):
		case <-q.sooner:
		case <-ctx.Done():
			return "", false
		}
	}
}

type delayed struct {
	dueMS int64
	id    string
}

type delayedHeap []delayed

func (h delayedHeap) Len() int           { return len(h) }
func (h delayedHeap) Less(i, j int) bool { return h[i].dueMS < h[j].dueMS }
func (h delayedHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *delayedHeap) Push(x any)        { *h = append(*h, x.(delayed)) }

func (h *delayedHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = delayed{}
	*h = (*h)[:last]
	return x
}
