package scheme

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// handler is the handler of a process.
type handler struct {
	job   Job
	db    *sql.DB
	calls callLog
}

// handle closes an order and notes when it was called.
func (h *handler) handle(ctx context.Context, id string) error {
	entry := time.Now()
	i, ok := h.job.Plan.Index(id)
	if !ok {
		return fmt.Errorf("not an order of this run: %q", id)
	}
	if h.job.SlowEvery > 0 && i%h.job.SlowEvery == 0 {
		time.Sleep(h.job.SlowFor)
	}
	end := Close
	if h.job.AsWritten {
		end = CloseAsWritten
	}
	r, err := end(ctx, h.db, id)
	if noted := h.calls.add(Call{i, entry, r}); noted != nil {
		panic(noted) // a figure without it would be wrong
	}
	return err
}
