package order_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order"
)

var (
	states     = []order.Status{order.Absent, order.Unpaid, order.Paid, order.Closed}
	operations = []order.Operation{order.Create, order.Pay, order.Extend, order.Close, order.Abandon}
)

// of are the transitions of one operation in one state.
func of(op order.Operation, from order.Status) (list []order.Transition) {
	for _, tr := range order.Transitions() {
		if tr.Operation == op && tr.From == from {
			list = append(list, tr)
		}
	}
	return list
}

func TestEveryOperationIsDefinedInEveryState(t *testing.T) {
	t.Parallel()
	n := 0
	for _, op := range operations {
		for _, from := range states {
			list := of(op, from)
			n += len(list)
			cases := map[string]bool{}
			for _, tr := range list {
				require.Contains(t, states, tr.To)
				require.False(t, cases[tr.Case], "%s of %s: two answers for the same case", op, from)
				cases[tr.Case] = true
				require.False(t, tr.Answer != nil && tr.Err != nil, "%v: an answer beside an error", tr)
				require.False(t, tr.Err != nil && tr.To != tr.From, "%v: an error changes nothing", tr)
			}
			require.True(t, cases[""], "%s of %s: the ordinary case is missing", op, from)
		}
	}
	require.Len(t, order.Transitions(), n, "and of no other state or operation")
}

func TestPaidAndClosedAreNeverLeftAndNothingIsEverAbsentAgain(t *testing.T) {
	t.Parallel()
	for _, tr := range order.Transitions() {
		if tr.From == order.Paid || tr.From == order.Closed {
			require.Equal(t, tr.From, tr.To, tr)
		}
		require.False(t, tr.To == order.Absent && tr.From != order.Absent, tr)
		if tr.From == order.Absent && tr.Operation != order.Create {
			require.Equal(t, order.Absent, tr.To, tr)
		}
	}
}

// The table that people read is the one that is tested: "-> state" stands in a cell exactly where
// the operation changes the state, and "stays" where a case of it does not.
func TestTheTableOfTheDocumentationIsThisOne(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	cells := map[order.Operation][]string{}
	for line := range strings.Lines(string(source)) {
		words := regexp.MustCompile(`\s{2,}`).Split(strings.TrimPrefix(strings.TrimSpace(line), "//\t"), -1)
		if len(words) == 1+len(states) {
			cells[order.Operation(words[0])] = words[1:]
		}
	}
	require.Equal(t, []string{"absent", "unpaid", "paid", "closed"}, cells[""])
	for _, op := range operations {
		require.Len(t, cells[op], len(states), op)
		for i, from := range states {
			cell := cells[op][i]
			changes, stays := false, false
			for _, tr := range of(op, from) {
				if tr.To != tr.From {
					changes = true
					require.Contains(t, cell, "-> "+string(tr.To), "%s of %s", op, from)
				} else {
					stays = true
				}
			}
			require.Equal(t, changes, strings.Contains(cell, "->"), "%s of %s: %s", op, from, cell)
			require.Equal(t, changes && stays, strings.Contains(cell, "stays"), "%s of %s: %s", op, from, cell)
		}
	}
}
