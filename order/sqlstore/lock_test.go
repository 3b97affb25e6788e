package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/internal/dbtest"
	"github.com/orderwheel/orderwheel/order"
)

// These are about the locks of rows that MariaDB and PostgreSQL have. busy_test.go has SQLite's.

// hang bounds what must happen but has no speed to keep.
const hang = 2 * time.Minute

// setupImpatient has a shop that waits for a lock for a moment only, and a database handle beside
// it, for another application's transactions on the same tables.
func setupImpatient(t *testing.T, b backend) (*shop, *faultConnector, *sql.DB) {
	t.Helper()
	var d dbtest.Database
	served := b.served
	b.place = func(t testing.TB) string {
		d = served(t)
		return d.DSN() + b.impatient
	}
	s, c := setupFaulty(t, b)
	return s, c, b.opened(t, d.DSN()+b.impatient)
}

// sell is what another application does to the row of a sku.
func sell(sku string) string {
	return `UPDATE sku_stock SET sold = sold + 1, stock = stock - 1 WHERE sku_id = '` + sku + `'`
}

// selling has the row of a sku locked.
func selling(t *testing.T, other *sql.DB, sku string) *sql.Tx {
	t.Helper()
	tx, err := other.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), sell(sku))
	require.NoError(t, err)
	return tx
}

// closing closes an order in the background.
func closing(s *shop, no string) <-chan order.CloseOutcome {
	answer := make(chan order.CloseOutcome, 1)
	go func() {
		r, err := s.Close(context.Background(), no, due)
		if err != nil {
			s.t.Error(err)
		}
		answer <- r.Outcome
	}()
	return answer
}

func TestALockThatIsHeldTooLongIsTriedAgainWithNothingHalfDone(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db backend) {
		s, c, other := setupImpatient(t, db)
		s.create("o", withCoupon("c1"))
		before := dump(t, s)
		tx := selling(t, other, "b")

		f, tried := beginsSeen(3)
		c.arm(f)
		answer := closing(s, "o")
		<-tried // it closed the order and gave a back twice, and waited for b in vain
		c.disarm()
		require.Equal(t, before, dump(t, s), "all of it was taken back")
		require.NoError(t, tx.Rollback())
		require.Equal(t, order.ClosedNow, <-answer)
	})
}

func TestALockThatStaysIsGivenUp(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db backend) {
		s, _, other := setupImpatient(t, db)
		s.create("o", withCoupon("c1"))
		before := dump(t, s)
		tx := selling(t, other, "b")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.Close(ctx, "o", due)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, order.ErrUnknownOutcome)
		require.NoError(t, tx.Rollback())
		require.Equal(t, before, dump(t, s))
		require.Equal(t, order.ClosedNow, s.close("o", due).Outcome)
	})
}

// Another application takes the rows of two skus the wrong way round. The close is the one that is
// stopped: it closes the circle, and has changed less.
func TestADeadlockIsTriedAgainWithNothingHalfDone(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db backend) {
		s, c, other := setupImpatient(t, db)
		s.create("o", withCoupon("c1"))
		before := dump(t, s)
		tx, err := other.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		defer func() { _ = tx.Rollback() }()
		// The close is to be the victim: MariaDB takes the lighter one, PostgreSQL who looks first.
		if db.name == "postgres" {
			_, err = tx.ExecContext(t.Context(), `SET LOCAL deadlock_timeout = '1min'`)
			require.NoError(t, err)
		}
		for i := range 50 {
			_, err = tx.ExecContext(t.Context(), fmt.Sprintf(`INSERT INTO sku_stock VALUES ('heavy %d', 0, 0, 0)`, i))
			require.NoError(t, err)
		}
		_, err = tx.ExecContext(t.Context(), sell("b"))
		require.NoError(t, err)

		got := make(chan error, 1)
		var begins, moves atomic.Int64
		again := make(chan struct{})
		c.arm(faults{before: func(_ context.Context, step string) error {
			switch {
			case step == "begin" && begins.Add(1) == 2:
				close(again)
			case step == "exec UPDATE sku_stock" && moves.Add(1) == 2: // it has a, and comes for b
				go func() {
					_, err := tx.Exec(sell("a"))
					got <- err
				}()
				awaitWaiting(s, other)
			}
			return nil
		}})
		answer := closing(s, "o")
		select {
		case <-again:
		case outcome := <-answer:
			t.Fatalf("the close was not the victim of the deadlock: %v", outcome)
		}
		require.NoError(t, <-got, "the other got the row that the close had")
		require.Equal(t, before, dump(t, s), "all of the close was taken back")
		require.NoError(t, tx.Rollback())
		require.Equal(t, order.ClosedNow, <-answer)
	})
}

// awaitWaiting returns when a transaction waits for a lock.
func awaitWaiting(s *shop, db *sql.DB) {
	for end := time.Now().Add(hang); ; time.Sleep(time.Millisecond) {
		var n int
		if err := db.QueryRow(s.db.waiting).Scan(&n); err != nil {
			s.t.Error(err)
			return
		}
		if n > 0 {
			return
		}
		if time.Now().After(end) {
			s.t.Error("nothing waits for a lock")
			return
		}
	}
}

func TestManyDeadlocksDelayNoClose(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db backend) {
		s, _, other := setupImpatient(t, db)
		nos := s.createMany("o", 100)
		ctx, stop := context.WithCancel(t.Context())
		var rogue, closes sync.WaitGroup
		var circles atomic.Int64
		rogue.Go(func() {
			for ctx.Err() == nil {
				if wrongWayRound(ctx, other) != nil {
					circles.Add(1)
				}
			}
		})
		work := make(chan string, len(nos))
		for _, no := range nos {
			work <- no
		}
		close(work)
		for range 8 {
			closes.Go(func() {
				for no := range work {
					if r, err := s.Close(context.Background(), no, due); err != nil || r.Outcome != order.ClosedNow {
						t.Errorf("close %s: %v, %v", no, r, err)
					}
				}
			})
		}
		closes.Wait()
		stop()
		rogue.Wait()
		t.Logf("the others were stopped %d times", circles.Load())
	})
}

// wrongWayRound takes b, then a, and lets them go.
func wrongWayRound(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for _, sku := range []string{"b", "a"} {
		if _, err := tx.ExecContext(ctx, sell(sku)); err != nil {
			return err
		}
	}
	return nil
}
