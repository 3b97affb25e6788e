package persist

import "context"

// Window is as in Store.
func (m *Memory) Window(ctx context.Context, after Cursor, untilMS int64, limit int) (Page, error) {
	page := Page{Next: after}
	if err := checkLimit(limit); err != nil {
		return page, err
	}
	after = fromStart(after)
	page.Next = after
	err := m.do(ctx, "window", func(s *tasks, now Sample) {
		page.Clock = now
		for place := range s.in[StatusDue].after(after) {
			if place.DueMS > untilMS {
				break
			}
			if page.More = len(page.Due) == limit; page.More {
				break
			}
			page.Due = append(page.Due, Due{ID: place.ID, DueMS: place.DueMS})
			page.Next = place
		}
	})
	return page, err
}

// Dead is as in Store.
func (m *Memory) Dead(ctx context.Context, after Cursor, limit int) (DeadPage, error) {
	page := DeadPage{Next: after}
	if err := checkLimit(limit); err != nil {
		return page, err
	}
	after = fromStart(after)
	page.Next = after
	err := m.do(ctx, "dead", func(s *tasks, _ Sample) {
		for place := range s.in[StatusDead].after(after) {
			if page.More = len(page.Dead) == limit; page.More {
				break
			}
			t := s.all[place.ID]
			page.Dead = append(page.Dead, Dead{
				ID: t.id, BuriedMS: t.atMS, FirstDueMS: t.firstMS, Attempt: t.attempt, Reason: t.reason,
			})
			page.Next = place
		}
	})
	return page, err
}
