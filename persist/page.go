package persist

import "context"

// pages reads what all shards hold, in one order, a page at a time.
type pages[T any] struct {
	// read reads from one shard what stands after a place, at most n. next is where
	// to go on: more says that there is something.
	read  func(ctx context.Context, s *shard, after Cursor, n int) (list []T, next Cursor, more bool, err error)
	place func(one T) Cursor
	most  int // is asked of a shard at a time
}

// stream is what one shard has for a page.
type stream[T any] struct {
	list []T // read, and not on the page yet
	next Cursor
	more bool
	err  error
}

// leastRead is how much is asked of one of several shards: what a page does not
// need is read again for the next, and a read has a price of its own.
const leastRead = 64

// page reads at most limit: the first of all that stands after the cursor, next
// where to go on. With an error it is what could be read, and next is after.
func (p pages[T]) page(ctx context.Context, r *Redis, after Cursor, limit int) (list []T, next Cursor, more bool, err error) {
	streams := make([]stream[T], len(r.shards))
	for i := range streams {
		streams[i] = stream[T]{next: after, more: true}
	}
	next = after
	for len(list) < limit {
		p.refill(ctx, r, streams, limit-len(list))
		first, n := p.first(streams)
		if n == 0 {
			break
		}
		n = min(n, limit-len(list))
		if list == nil { // mostly that is all of the page, and need not be copied
			list = first.list[:n:n]
		} else {
			list = append(list, first.list[:n]...)
		}
		first.list = first.list[n:]
		next = p.place(list[len(list)-1])
	}
	var errs []error
	for _, s := range streams {
		errs = append(errs, s.err)
		more = more || len(s.list) > 0 || s.more
		if s.err == nil && len(s.list) == 0 && len(list) < limit && comparePlaces(next, s.next) < 0 {
			next = s.next // beyond what is not shown
		}
	}
	if err := join(errs); err != nil {
		return list, after, true, err
	}
	return list, next, more, nil
}

// refill reads on, at once, from the shards of which nothing is left to show.
func (p pages[T]) refill(ctx context.Context, r *Redis, streams []stream[T], want int) {
	var dry []int
	for i, s := range streams {
		if len(s.list) == 0 && s.more && s.err == nil {
			dry = append(dry, i)
		}
	}
	n := min(want, p.most)
	if len(streams) > 1 {
		n = min(n, max(leastRead, want/len(streams)))
	}
	atOnce(len(dry), func(i int) {
		s := &streams[dry[i]]
		for len(s.list) == 0 && s.more && s.err == nil {
			s.list, s.next, s.more, s.err = p.read(ctx, r.shards[dry[i]], s.next, n)
		}
	})
}

// first is the stream whose next comes first, and how many of it come before
// those of all others; 0: there are none at all.
func (p pages[T]) first(streams []stream[T]) (first *stream[T], n int) {
	var second *Cursor
	for i := range streams {
		s := &streams[i]
		if len(s.list) == 0 {
			continue
		}
		at := p.place(s.list[0])
		switch {
		case first == nil:
			first = s
		case comparePlaces(at, p.place(first.list[0])) < 0:
			was := p.place(first.list[0])
			first, second = s, &was
		case second == nil || comparePlaces(at, *second) < 0:
			second = &at
		}
	}
	if first == nil {
		return nil, 0
	}
	if second == nil {
		return first, len(first.list)
	}
	for n = 1; n < len(first.list) && comparePlaces(p.place(first.list[n]), *second) < 0; n++ {
	}
	return first, n
}
