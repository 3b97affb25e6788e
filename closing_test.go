package orderwheel_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/executor"
	"github.com/orderwheel/orderwheel/order"
)

// closer answers by order number, and notes its calls.
type closer struct {
	results map[string]order.Result
	errs    map[string]error
	calls   map[int64][]string // by the instant of the call
	short   bool               // one result is missing
}

func (c *closer) CloseMany(_ context.Context, nos []string, now time.Time) (results []order.Result, errs []error) {
	if c.calls == nil {
		c.calls = map[int64][]string{}
	}
	c.calls[now.UnixMilli()] = nos
	for _, no := range nos {
		results, errs = append(results, c.results[no]), append(errs, c.errs[no])
	}
	if c.short {
		results = results[1:]
	}
	return results, errs
}

func TestEachTaskOfABatchOfClosesGetsItsOwnAnswer(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_000)
	failed := errors.New("no")
	c := &closer{
		results: map[string]order.Result{
			"closed": {Outcome: order.ClosedNow}, "again": {Outcome: order.ClosedAlready}, "paid": {Outcome: order.WasPaid},
			"cod": {Outcome: order.NotYetDue}, "extended": {Outcome: order.NotYetDue, ExpireAt: now.Add(time.Hour)},
			"held": {Outcome: order.HeldBack, AskAgain: now.Add(time.Minute)}, "none": {Outcome: order.NotFound},
		},
		errs: map[string]error{"failed": failed},
	}
	want := map[string]error{
		"extended": executor.RetryAt(now.Add(time.Hour)), "held": executor.RetryAt(now.Add(time.Minute)), "failed": failed,
	}
	var tasks []executor.Task
	for _, id := range []string{"closed", "again", "paid", "cod", "extended", "held", "none", "failed"} {
		tasks = append(tasks, executor.Task{ID: id, Now: now})
	}
	errs := orderwheel.ClosingMany(c)(t.Context(), tasks)
	require.Len(t, errs, len(tasks))
	for i, task := range tasks {
		if task.ID == "none" {
			require.ErrorIs(t, errs[i], orderwheel.ErrNotClosed)
			require.ErrorContains(t, errs[i], `order "none": unknown order`)
			continue
		}
		require.Equal(t, want[task.ID], errs[i], task.ID)
	}
	require.Len(t, c.calls, 1, "one call")
}

// Another task's later clock must not close an order early that was extended meanwhile.
func TestEachOrderOfABatchIsClosedByTheClockOfItsOwnClaim(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_000)
	c := &closer{}
	var tasks []executor.Task
	for i, id := range []string{"a", "b", "c", "d", "e"} {
		tasks = append(tasks, executor.Task{ID: id, Now: now.Add(time.Duration(i%2) * time.Second)})
	}
	require.Len(t, orderwheel.ClosingMany(c)(t.Context(), tasks), 5)
	require.Equal(t, map[int64][]string{
		now.UnixMilli(): {"a", "c", "e"}, now.Add(time.Second).UnixMilli(): {"b", "d"},
	}, c.calls)
}

func TestABatchOfClosesWithoutAnAnswerForEachFails(t *testing.T) {
	t.Parallel()
	c := &closer{short: true}
	errs := orderwheel.ClosingMany(c)(t.Context(), []executor.Task{{ID: "a"}, {ID: "b"}})
	require.False(t, slices.Contains(errs, nil))
	require.ErrorContains(t, errs[0], "CloseMany returned 1 results and 2 errors for 2 orders")
}
