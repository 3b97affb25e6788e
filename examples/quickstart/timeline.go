package main

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// A step is done at its instant, and may lead to another one.
type step struct {
	at time.Time
	do func() (next *step, err error)
}

// play does the steps at their instants, the earliest first and up to workers
// of them at once, and what they lead to. It returns when nothing is left to
// do, when ctx ends, or with the first error. Steps under way are waited for;
// the others are dropped.
func play(ctx context.Context, workers int, steps []*step) error {
	type outcome struct {
		next *step
		err  error
	}
	var wg sync.WaitGroup
	todo, done := make(chan *step), make(chan outcome)
	for range workers {
		wg.Go(func() {
			for s := range todo {
				next, err := s.do()
				done <- outcome{next, err}
			}
		})
	}
	defer wg.Wait()
	defer close(todo)

	queue := timeline(steps)
	heap.Init(&queue)
	timer := time.NewTimer(0)
	defer timer.Stop()
	underWay := 0
	var failed error
	for over := false; underWay > 0 || !over && len(queue) > 0; {
		var head *step
		var due chan<- *step // open for head when its instant has come
		var end <-chan struct{}
		if !over {
			end = ctx.Done()
			if len(queue) > 0 {
				head = queue[0]
				if wait := time.Until(head.at); wait > 0 {
					timer.Reset(wait)
				} else {
					due = todo
				}
			}
		}
		select {
		case due <- head:
			heap.Pop(&queue)
			underWay++
		case o := <-done:
			underWay--
			if o.next != nil {
				heap.Push(&queue, o.next)
			}
			if o.err != nil && failed == nil {
				failed, over = o.err, true
			}
		case <-timer.C:
		case <-end:
			over = true
		}
	}
	return failed
}

// timeline is a heap of steps, the earliest on top.
type timeline []*step

func (t timeline) Len() int           { return len(t) }
func (t timeline) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t timeline) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timeline) Push(s any)        { *t = append(*t, s.(*step)) }

func (t *timeline) Pop() any {
	last := len(*t) - 1
	s := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	return s
}
