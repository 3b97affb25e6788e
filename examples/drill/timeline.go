package main

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// act is one thing that a customer does, at its instant.
type act struct {
	at time.Time
	do func(context.Context) error
}

// timeline hands out acts at their instants, the earliest first, to customers
// who act at once. Its methods may be called from any goroutine.
type timeline struct {
	added chan act
	all   sync.WaitGroup
}

// startTimeline starts it; it ends with ctx. fail is told what acts fail with.
func startTimeline(ctx context.Context, customers int, fail func(error)) *timeline {
	t := &timeline{added: make(chan act)}
	due := make(chan act)
	t.all.Go(func() { t.dispatch(ctx, due) })
	for range customers {
		t.all.Go(func() {
			for {
				select {
				case a := <-due:
					if err := a.do(ctx); err != nil && ctx.Err() == nil {
						fail(err)
					}
				case <-ctx.Done():
					return
				}
			}
		})
	}
	return t
}

// add has a done at its instant; false: ctx has ended first.
func (t *timeline) add(ctx context.Context, a act) bool {
	select {
	case t.added <- a:
		return true
	case <-ctx.Done():
		return false
	}
}

// wait waits until the timeline has ended.
func (t *timeline) wait() { t.all.Wait() }

func (t *timeline) dispatch(ctx context.Context, due chan<- act) {
	var waiting acts
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var first act
		var out chan<- act // open when the time of first has come
		if len(waiting) > 0 {
			first = waiting[0]
			if wait := time.Until(first.at); wait > 0 {
				timer.Reset(wait)
			} else {
				out = due
			}
		}
		select {
		case out <- first:
			heap.Pop(&waiting)
		case a := <-t.added:
			heap.Push(&waiting, a)
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
}

// acts is a heap, the earliest on top.
type acts []act

func (a acts) Len() int           { return len(a) }
func (a acts) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a acts) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *acts) Push(x any)        { *a = append(*a, x.(act)) }

func (a *acts) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	(*a)[last] = act{}
	*a = (*a)[:last]
	return x
}
