package persist

import "context"

// Window reads due tasks, oldest first (by due time, then id by bytes): those after
// the cursor and due at untilMS or before, at most limit of them. The zero Cursor
// starts at the beginning; Next of the page goes on.
//
// What stays in place while pages are read is read exactly once, also when more tasks
// than a page holds are due in one millisecond, and whatever is added or removed
// meanwhile. What is written behind the cursor is for the next pass.
//
// ErrInvalid is returned for a limit below 1. A limit above MaxBatch takes
// several calls; with an error the tasks read before it are returned.
func (r *Redis) Window(ctx context.Context, after Cursor, untilMS int64, limit int) (Page, error) {
	if err := checkLimit(limit); err != nil {
		return Page{Next: after}, err
	}
	page := Page{Next: fromStart(after)}
	for {
		ask := min(limit-len(page.Due), MaxBatch)
		rp, err := r.run(ctx, windowScript, page.Next.DueMS, page.Next.ID, min(untilMS, MaxDueMS), ask)
		if err != nil {
			return page, err
		}
		clock, more := rp.sample(), rp.int() == 1
		dues := rp.dues()
		if err := rp.done(); err != nil {
			return page, err
		}
		page.Clock, page.More = clock, more
		page.Due = append(page.Due, dues...)
		if n := len(dues); n > 0 {
			page.Next = Cursor{DueMS: dues[n-1].DueMS, ID: dues[n-1].ID}
		}
		if !more || len(page.Due) == limit {
			return page, nil
		}
	}
}
