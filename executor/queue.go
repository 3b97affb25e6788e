package executor

// queue is a min-heap of tasks by time: oldest first. Not safe for concurrent
// use.
type queue struct{ items []entry }

type entry struct {
	ms  int64
	gen uint32 // see alone.gen; of no meaning in a ready list
	t   *task
}

func (q *queue) len() int { return len(q.items) }

func (q *queue) push(e entry) {
	q.items = append(q.items, e)
	i := len(q.items) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if q.items[parent].ms <= q.items[i].ms {
			break
		}
		q.items[parent], q.items[i] = q.items[i], q.items[parent]
		i = parent
	}
}

// first is the oldest; the queue must not be empty.
func (q *queue) first() entry { return q.items[0] }

// pop takes the oldest; the queue must not be empty. An emptied queue gives its
// memory back, so that a storm is not remembered.
func (q *queue) pop() entry {
	top := q.items[0]
	last := len(q.items) - 1
	q.items[0] = q.items[last]
	q.items[last] = entry{}
	q.items = q.items[:last]
	if last == 0 {
		if cap(q.items) > 1024 {
			q.items = nil
		}
		return top
	}
	for i := 0; ; {
		least := 2*i + 1
		if least >= last {
			break
		}
		if right := least + 1; right < last && q.items[right].ms < q.items[least].ms {
			least = right
		}
		if q.items[i].ms <= q.items[least].ms {
			break
		}
		q.items[i], q.items[least] = q.items[least], q.items[i]
		i = least
	}
	return top
}
