package executor

// queue is a min-heap of ready tasks by due time: oldest first. Not safe for
// concurrent use.
type queue struct{ items []*task }

func (q *queue) len() int { return len(q.items) }

func (q *queue) push(t *task) {
	q.items = append(q.items, t)
	i := len(q.items) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if q.items[parent].dueMS <= q.items[i].dueMS {
			break
		}
		q.items[parent], q.items[i] = q.items[i], q.items[parent]
		i = parent
	}
}

// pop takes the oldest; the queue must not be empty. An emptied queue gives its
// memory back, so that a storm is not remembered.
func (q *queue) pop() *task {
	top := q.items[0]
	last := len(q.items) - 1
	q.items[0] = q.items[last]
	q.items[last] = nil
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
		if right := least + 1; right < last && q.items[right].dueMS < q.items[least].dueMS {
			least = right
		}
		if q.items[i].dueMS <= q.items[least].dueMS {
			break
		}
		q.items[i], q.items[least] = q.items[least], q.items[i]
		i = least
	}
	return top
}
