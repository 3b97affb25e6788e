package persist_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel/persist"
	"github.com/stretchr/testify/require"
)

// The operations of a store, one line each, so that a test can do something to all of
// them and forget none. Each works on the id of its own name, out of the same tasks
// (see prepare), says what it answered in words, and leaves all other ids alone.

// opKind says when Redis refuses an operation.
type opKind int

const (
	opReads   opKind = iota
	opWrites         // what is there goes on, or ends
	opNewWork        // something comes that was not there
)

type storeOp struct {
	name string
	kind opKind
	do   func(ctx context.Context, s persist.Store) (string, error)
	says string

	// leaves is what becomes of the id. Instants that the test does not know are taken
	// from after. nil: it stays as it was.
	leaves func(before, after persist.Record) persist.Record
}

// soonMS is when a retried task is due: later than what window reads.
const soonMS = 700

var storeOps = []storeOp{
	{
		name: "schedule", kind: opNewWork, says: "stored",
		do: func(ctx context.Context, s persist.Store) (string, error) {
			return "stored", s.Schedule(ctx, []persist.Due{{ID: "schedule", DueMS: past}})
		},
		leaves: func(_, _ persist.Record) persist.Record {
			return persist.Record{ID: "schedule", Status: persist.StatusDue, DueMS: past}
		},
	},
	{
		name: "cancel", kind: opWrites, says: "cancelled",
		do: func(ctx context.Context, s persist.Store) (string, error) {
			return first(s.Cancel(ctx, []string{"cancel"}))
		},
		leaves: func(_, _ persist.Record) persist.Record { return persist.Record{ID: "cancel"} },
	},
	{
		name: "claim", kind: opWrites, says: "{claim claimed 1 1000 0 0}",
		do: func(ctx context.Context, s persist.Store) (string, error) {
			claims, err := s.Claim(ctx, "tok2", []string{"claim"}, time.Hour, 0)
			return first(claims.Claims, err)
		},
		leaves: func(_, after persist.Record) persist.Record {
			return persist.Record{ID: "claim", Status: persist.StatusRunning, LeaseMS: max(after.LeaseMS, 1), FirstDueMS: past, Attempt: 1}
		},
	},
	{
		name: "ack", kind: opWrites, says: "{ack settled 0}",
		do: func(ctx context.Context, s persist.Store) (string, error) {
			return first(s.Ack(ctx, []persist.Lease{{ID: "ack", Token: "tok"}}))
		},
		leaves: func(_, _ persist.Record) persist.Record { return persist.Record{ID: "ack"} },
	},
	{
		name: "retry", kind: opWrites, says: "{retry scheduled 700}",
		do: func(ctx context.Context, s persist.Store) (string, error) {
			return first(s.Retry(ctx, []persist.Retry{{Lease: persist.Lease{ID: "retry", Token: "tok"}, DueMS: soonMS}}))
		},
		leaves: func(_, _ persist.Record) persist.Record {
			return persist.Record{ID: "retry", Status: persist.StatusDue, DueMS: soonMS, FirstDueMS: past, Attempt: 1}
		},
	},
	{
		name: "bury", kind: opWrites, says: "{bury settled 0}",
		do: func(ctx context.Context, s persist.Store) (string, error) {
			return first(s.Bury(ctx, []persist.Burial{{Lease: persist.Lease{ID: "bury", Token: "tok"}, Reason: "broken"}}))
		},
		leaves: func(_, after persist.Record) persist.Record {
			return persist.Record{ID: "bury", Status: persist.StatusDead, BuriedMS: max(after.BuriedMS, 1), FirstDueMS: past, Attempt: 1, Reason: "broken"}
		},
	},
	{
		name: "renew", kind: opWrites, says: "true",
		do: func(ctx context.Context, s persist.Store) (string, error) {
			return first(s.Renew(ctx, []persist.Lease{{ID: "renew", Token: "tok"}}, 2*time.Hour))
		},
		leaves: func(before, after persist.Record) persist.Record {
			before.LeaseMS = max(after.LeaseMS, before.LeaseMS+1) // longer
			return before
		},
	},
	{
		name: "reap", kind: opWrites, says: "reap",
		do: func(ctx context.Context, s persist.Store) (string, error) {
			list, err := s.Reap(ctx, 10)
			var names []string
			for _, d := range list {
				names = append(names, d.ID)
			}
			return strings.Join(names, " "), err
		},
		leaves: func(_, after persist.Record) persist.Record {
			return persist.Record{ID: "reap", Status: persist.StatusDue, DueMS: max(after.DueMS, 1), FirstDueMS: past, Attempt: 1, Lost: true}
		},
	},
	{
		name: "requeue", kind: opWrites, says: "scheduled",
		do: func(ctx context.Context, s persist.Store) (string, error) {
			list, err := s.Requeue(ctx, []string{"requeue"})
			if err != nil {
				return "", err
			}
			return list[0].State.String(), nil
		},
		leaves: func(_, after persist.Record) persist.Record {
			return persist.Record{ID: "requeue", Status: persist.StatusDue, DueMS: max(after.DueMS, 1)}
		},
	},
	{
		name: "discard", kind: opWrites, says: "true",
		do: func(ctx context.Context, s persist.Store) (string, error) {
			return first(s.Discard(ctx, []string{"discard"}))
		},
		leaves: func(_, _ persist.Record) persist.Record { return persist.Record{ID: "discard"} },
	},
	{
		name: "ensure", kind: opNewWork, says: "true",
		do: func(ctx context.Context, s persist.Store) (string, error) {
			return first(s.Ensure(ctx, []persist.Due{{ID: "ensure", DueMS: past}}))
		},
		leaves: func(_, _ persist.Record) persist.Record {
			return persist.Record{ID: "ensure", Status: persist.StatusDue, DueMS: past}
		},
	},
	{
		name: "taketurn", kind: opWrites, says: "had",
		do: func(ctx context.Context, s persist.Store) (string, error) {
			turn, _, err := s.TakeTurn(ctx, "owner", time.Hour, false)
			return or("had", turn != persist.TurnRefused), err
		},
	},
	{
		name: "endturn", kind: opWrites, says: "done",
		do: func(ctx context.Context, s persist.Store) (string, error) {
			_, err := s.EndTurn(ctx, "owner", time.Hour) // false where a copy that was lost has done it
			return "done", err
		},
	},
	{
		name: "window", kind: opReads, says: "[{window 400}] false",
		do: func(ctx context.Context, s persist.Store) (string, error) {
			page, err := s.Window(ctx, persist.Cursor{}, 500, 10)
			return fmt.Sprint(page.Due, " ", page.More), err
		},
	},
	{
		name: "dead", kind: opReads, says: "dead 1 killed true",
		do: func(ctx context.Context, s persist.Store) (string, error) {
			page, err := s.Dead(ctx, persist.Cursor{}, 1)
			if err != nil {
				return "", err
			}
			d := page.Dead[0]
			return fmt.Sprint(d.ID, " ", d.Attempt, " ", d.Reason, " ", page.More), nil
		},
	},
	{
		name: "lookup", kind: opReads, says: "lookup due 4000000000000",
		do: func(ctx context.Context, s persist.Store) (string, error) {
			list, err := s.Lookup(ctx, []string{"lookup"})
			if err != nil {
				return "", err
			}
			return fmt.Sprint(list[0].ID, " ", list[0].Status, " ", list[0].DueMS), nil
		},
	},
	{
		name: "depth", kind: opReads, says: "{4 5 3}",
		do: func(ctx context.Context, s persist.Store) (string, error) {
			depth, err := s.Depth(ctx)
			return fmt.Sprint(depth), err
		},
	},
	{
		name: "epoch", kind: opWrites, says: "raised",
		do: func(ctx context.Context, s persist.Store) (string, error) {
			_, err := s.Epoch(ctx) // tests empty the server, which it may tell of
			return "raised", err
		},
	},
	{
		name: "now", kind: opReads, says: "true",
		do: func(ctx context.Context, s persist.Store) (string, error) {
			sample, err := s.Now(ctx)
			return fmt.Sprint(sample.StoreUS > past), err
		},
	},
}

// first puts the only answer into words.
func first[A any](answers []A, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return fmt.Sprint(answers[0]), nil
}

// prepare makes the tasks of storeOps: what is to be settled runs under "tok".
func prepare(t testing.TB, s persist.Store) {
	t.Helper()
	ctx := bounded(t)
	require.NoError(t, s.Schedule(ctx, []persist.Due{
		{ID: "window", DueMS: 400}, {ID: "claim", DueMS: past}, {ID: "cancel", DueMS: future}, {ID: "lookup", DueMS: future},
	}))
	running := []string{"ack", "retry", "bury", "renew"}
	dead := []string{"dead", "discard", "requeue"}
	require.NoError(t, s.Schedule(ctx, dues(append(append([]string{"reap"}, running...), dead...), past)))
	_, err := s.Claim(ctx, "tok", running, time.Hour, 0)
	require.NoError(t, err)
	claims, err := s.Claim(ctx, "tok", []string{"reap"}, time.Millisecond, 0)
	require.NoError(t, err)
	_, err = s.Claim(ctx, "tok", dead, time.Hour, 0)
	require.NoError(t, err)
	var burials []persist.Burial
	for _, id := range dead {
		burials = append(burials, persist.Burial{Lease: persist.Lease{ID: id, Token: "tok"}, Reason: "killed"})
	}
	_, err = s.Bury(ctx, burials)
	require.NoError(t, err)
	_, _, err = s.TakeTurn(ctx, "owner", time.Hour, true)
	require.NoError(t, err)
	for over := claims.NowMS + 1; ; { // the lease of "reap"
		sample, err := s.Now(ctx)
		require.NoError(t, err)
		if sample.StoreUS/1000 >= over {
			return
		}
	}
}

// preparedIDs are all that prepare makes, and that storeOps name.
func preparedIDs() (list []string) {
	for _, op := range storeOps {
		list = append(list, op.name)
	}
	return list
}

// known looks up all of them.
func known(t testing.TB, s persist.Store) []persist.Record {
	t.Helper()
	records, err := s.Lookup(bounded(t), preparedIDs())
	require.NoError(t, err)
	return records
}

// requireDone checks that all stands as op leaves it, once, in one place each. before is what
// was known.
func requireDone(t testing.TB, s persist.Store, op storeOp, before []persist.Record) {
	t.Helper()
	after := known(t, s)
	var want []persist.Record
	var depth persist.Depth
	for i, r := range before {
		if op.leaves != nil && r.ID == op.name {
			r = op.leaves(r, after[i])
		}
		want = append(want, r)
		switch r.Status {
		case persist.StatusDue:
			depth.Due++
		case persist.StatusRunning:
			depth.Running++
		case persist.StatusDead:
			depth.Dead++
		}
	}
	require.Equal(t, want, after, "after %s", op.name)
	counted, err := s.Depth(bounded(t))
	require.NoError(t, err)
	require.Equal(t, depth, counted, "after %s", op.name)
}

// requireUndone checks that all stands as before.
func requireUndone(t testing.TB, s persist.Store, op storeOp, before []persist.Record) {
	t.Helper()
	op.leaves = nil
	requireDone(t, s, op, before)
}

// A method that Store gets has to come into the table.
func TestTheTableOfOperationsHasEveryMethodOfAStore(t *testing.T) {
	t.Parallel()
	var methods []string
	for i := range reflect.TypeFor[persist.Store]().NumMethod() {
		name := strings.ToLower(reflect.TypeFor[persist.Store]().Method(i).Name)
		if name != "check" { // it asks the server, not for a task, and has tests of its own
			methods = append(methods, name)
		}
	}
	require.ElementsMatch(t, methods, preparedIDs())
}

// The table itself, where nothing goes wrong.
func TestEveryOperationDoesWhatTheTableSays(t *testing.T) {
	onBoth(t, func(t *testing.T, b bed) {
		for _, op := range storeOps {
			require.NoError(t, b.client.FlushAll(t.Context()).Err())
			prepare(t, b)
			before := known(t, b)
			says, err := op.do(bounded(t), b)
			require.NoError(t, err)
			require.Equal(t, op.says, says)
			requireDone(t, b, op, before)
		}
	})
}

// Case 40: a call is one script, so there is no instant at which a half of it is written.
func TestEveryOperationIsOneScript(t *testing.T) {
	t.Parallel()
	b, p := behindProxy(t, setupMini(t))
	_, err := b.Window(bounded(t), persist.Cursor{}, past, 1) // its connection
	require.NoError(t, err)
	for _, op := range storeOps {
		require.NoError(t, b.client.FlushAll(t.Context()).Err())
		prepare(t, b)
		scripts, commands := len(p.seen()), p.Counts().Commands
		_, err := op.do(bounded(t), b)
		require.NoError(t, err)
		require.Len(t, p.seen(), scripts+1, op.name)
		beside := 0
		if op.name == "window" {
			beside = 1 // the read of the scores, in the same round trip
		}
		require.Equal(t, commands+1+beside, p.Counts().Commands, "%s: and nothing beside it", op.name)
	}
}
