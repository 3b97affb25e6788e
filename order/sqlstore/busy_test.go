package sqlstore_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order"
)

// These are about SQLite's one write lock, which a transaction takes as it begins. What rows that
// others have locked do to the other databases is in lock_test.go.

// beginsSeen closes the channel when the n-th transaction is about to begin.
func beginsSeen(n int64) (faults, <-chan struct{}) {
	seen := make(chan struct{})
	var begins atomic.Int64
	return faults{before: func(_ context.Context, step string) error {
		if step == "begin" && begins.Add(1) == n {
			close(seen)
		}
		return nil
	}}, seen
}

func TestALockHeldByAnotherProcessIsWaitedFor(t *testing.T) {
	t.Parallel()
	s, c := setupFaulty(t, onlySQLite)
	s.create("o")
	other, err := s.DB().BeginTx(t.Context(), nil) // it takes the write lock at once
	require.NoError(t, err)

	f, tried := beginsSeen(3)
	c.arm(f)
	closed := make(chan order.Result)
	go func() {
		r, err := s.Close(context.Background(), "o", due)
		if err != nil {
			t.Error(err)
		}
		closed <- r
	}()
	<-tried
	require.NoError(t, other.Rollback())
	require.Equal(t, order.Result{Outcome: order.ClosedNow}, <-closed)
}

func TestACtxThatEndsWhileWaitingForTheLockChangesNothing(t *testing.T) {
	t.Parallel()
	s, c := setupFaulty(t, onlySQLite)
	s.create("o")
	before := dump(t, s)
	other, err := s.DB().BeginTx(t.Context(), nil)
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	f, tried := beginsSeen(2)
	c.arm(f)
	failed := make(chan error)
	go func() {
		_, err := s.Close(ctx, "o", due)
		failed <- err
	}()
	<-tried
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	require.NoError(t, other.Rollback())
	require.Equal(t, before, dump(t, s))
}

func TestACtxThatEndsInTheWritersQueueChangesNothing(t *testing.T) {
	t.Parallel()
	s, c := setupFaulty(t, onlySQLite)
	s.create("o")
	s.create("p")
	atCommit, goOn := make(chan struct{}), make(chan struct{})
	c.arm(faults{before: func(_ context.Context, step string) error {
		if step == "commit" {
			close(atCommit)
			<-goOn
		}
		return nil
	}})
	first := make(chan error)
	go func() {
		_, err := s.Close(context.Background(), "o", due)
		first <- err
	}()
	<-atCommit

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Close(ctx, "p", due)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, order.Unpaid, s.status("p"), "reads do not wait for the writer")
	close(goOn)
	require.NoError(t, <-first)
	require.Equal(t, order.Closed, s.status("o"))
	require.Equal(t, order.Unpaid, s.status("p"))
}
