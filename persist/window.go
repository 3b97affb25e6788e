package persist

import (
	"context"
	"sync"
)

// Window reads due tasks, oldest first (by due time, then id by bytes): those after
// the cursor and due at untilMS or before, at most limit of them. The zero Cursor
// starts at the beginning; Next of the page goes on.
//
// What stays in place while pages are read is read exactly once, also when more tasks
// than a page holds are due in one millisecond, and whatever is added or removed
// meanwhile. What is written behind the cursor is for the next pass.
//
// ErrInvalid is returned for a limit below 1. A limit above MaxBatch takes
// several calls. With an error the page has what could be read, and Next is the
// cursor that was given.
func (r *Redis) Window(ctx context.Context, after Cursor, untilMS int64, limit int) (Page, error) {
	if err := checkLimit(limit); err != nil {
		return Page{Next: after}, err
	}
	var page Page
	var mu sync.Mutex // guards page.Clock
	p := pages[Due]{
		place: func(d Due) Cursor { return Cursor{DueMS: d.DueMS, ID: d.ID} },
		read: func(ctx context.Context, s *shard, after Cursor, n int) ([]Due, Cursor, bool, error) {
			rp, err := s.run(ctx, windowScript, after.DueMS, after.ID, min(untilMS, MaxDueMS), n)
			if err != nil {
				return nil, after, false, err
			}
			clock, more := rp.sample(), rp.int() == 1
			dues := rp.scored()
			if err := rp.done(); err != nil {
				return nil, after, false, err
			}
			if n := len(dues); n > 0 {
				after = Cursor{DueMS: dues[n-1].DueMS, ID: dues[n-1].ID}
			}
			mu.Lock()
			defer mu.Unlock()
			page.Clock = clock
			return dues, after, more, nil
		},
	}
	var err error
	page.Due, page.Next, page.More, err = p.page(ctx, r, fromStart(after), limit)
	return page, err
}
