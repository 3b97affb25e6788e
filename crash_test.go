package orderwheel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The named crash points. Each test kills a process (kill -9) at exactly one step between two
// of the promises, looks at what stands then, and starts a second process, after which
// every order must be closed, once and not early, and nothing be left: see recovers.
// Whatever else could help is switched off, so that each fails when the one thing that is
// to protect its step does not work.

const (
	crashSoon  = 300 * time.Millisecond // when the orders expire
	crashLease = 3 * time.Second        // of the process that is killed: a busy machine does not lose it before
	crashSweep = 20 * time.Millisecond
	crashHang  = 2 * time.Minute // a process that takes its time to start is none
	crashNever = time.Hour       // for sweeps and leases: not in this test
)

// Only the order database knows of the order: the reconciliation at Start finds it.
func TestKilledAfterTheCommitAndBeforeTheSchedule(t *testing.T) {
	t.Parallel()
	s := newCrashShop(t)
	s.killedAt(crashJob{Step: committed, Place: s.toPlace(1, crashSoon)})
	require.Equal(t, stand{gone: 1}, s.stand())
	ran := s.recovers(crashJob{Source: true})
	require.Len(t, ran, 1)
	require.Equal(t, 1, ran[0].attempt)
}

// Redis knows of the task, and no wheel: the rebuild at Start arms it.
func TestKilledAfterTheScheduleAndBeforeTheWheel(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]time.Duration{"due while nothing runs": 0, "due later": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCrashShop(t)
			// The first process neither fires nor sweeps: it is at the step, and its wheel is empty.
			s.killedAt(crashJob{Step: scheduled, Sweep: crashNever, Place: s.toPlace(1, in)})
			require.Equal(t, stand{due: 1}, s.stand())
			require.Empty(t, s.ran)
			require.Len(t, s.recovers(crashJob{Sweep: crashNever}), 1)
		})
	}
}

// The task is the dead process's until its lease ends: then it is reaped.
func TestKilledAfterTheClaimAndBeforeTheHandler(t *testing.T) {
	t.Parallel()
	s := newCrashShop(t)
	s.place(3, crashSoon)
	s.killedAt(crashJob{Step: claimed, Lease: crashLease, Sweep: crashNever, Workers: 1})
	require.Equal(t, stand{due: 2, running: 1}, s.stand())
	require.Empty(t, s.ran)
	attempts := map[int]int{}
	for _, r := range s.recovers(crashJob{Sweep: crashSweep}) {
		attempts[r.attempt]++
	}
	require.Equal(t, map[int]int{1: 2, 2: 1}, attempts, "the claim counted, and so it is the second run")
}

// All of the close or nothing: here nothing, and the close runs again.
func TestKilledInsideTheTransactionOfTheClose(t *testing.T) {
	t.Parallel()
	for _, step := range []crashStep{
		wrote("UPDATE orders"), wrote("UPDATE sku_stock"), wrote("INSERT INTO"), wrote("UPDATE user_coupons"), closing,
	} {
		t.Run(strings.ReplaceAll(string(step), " ", "_"), func(t *testing.T) {
			t.Parallel()
			s := newCrashShop(t)
			s.place(2, crashSoon)
			s.killedAt(crashJob{Step: step, Lease: crashLease, Sweep: crashNever, Workers: 1})
			require.Equal(t, stand{due: 1, running: 1}, s.stand())
			require.NotEmpty(t, s.ran) // more, where the process was too slow for its lease
			require.Len(t, s.recovers(crashJob{Sweep: crashSweep}), 2)
		})
	}
}

// The order is closed, and what runs again finds nothing to do.
func TestKilledAfterTheCommitOfTheCloseAndBeforeTheAck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		step  crashStep
		stand stand
		again int // calls of the second process
	}{
		{closed, stand{running: 1, closed: 1}, 1},
		{unacked, stand{running: 1, closed: 1}, 1},
		{acked, stand{gone: 1, closed: 1}, 0},
	} {
		t.Run(strings.ReplaceAll(string(c.step), " ", "_"), func(t *testing.T) {
			t.Parallel()
			s := newCrashShop(t)
			s.place(1, crashSoon)
			s.killedAt(crashJob{Step: c.step, Lease: crashLease, Sweep: crashNever})
			require.Equal(t, c.stand, s.stand())
			require.Len(t, s.recovers(crashJob{Sweep: crashSweep}), c.again)
		})
	}
}

// Reading changes nothing: the next rebuild reads all of it.
func TestKilledDuringTheRebuild(t *testing.T) {
	t.Parallel()
	for _, pages := range []int{1, 2, 3} {
		t.Run(fmt.Sprint("pages=", pages), func(t *testing.T) {
			t.Parallel()
			s := newCrashShop(t)
			s.place(6, 3*time.Second)
			s.killedAt(crashJob{Step: rebuilding, Skip: int64(pages - 1), Page: 2, Sweep: crashNever, Mute: true})
			require.Equal(t, stand{due: 6}, s.stand())
			require.Len(t, s.recovers(crashJob{Page: 2, Sweep: crashNever}), 6)
		})
	}
}

// What is loaded fires before the rebuild is done: so a kill then finds some at work.
func TestKilledWhenTheRebuildHasBegunToFire(t *testing.T) {
	t.Parallel()
	s := newCrashShop(t)
	s.place(4, 0)
	s.place(4, 2*time.Second)
	s.killedAt(crashJob{Step: rebuilding, Skip: 1, Fired: true, Stay: true, Page: 2, Lease: crashLease, Sweep: crashNever})
	now := s.stand()
	require.NotZero(t, now.running)
	require.NotEmpty(t, s.ran)
	require.GreaterOrEqual(t, now.due, 4)
	s.recovers(crashJob{Page: 2, Sweep: crashSweep})
}

// Stop ends in a moment, with nothing at work or with its lease handed back; or it is as if
// it had not begun, and the lease ends.
func TestKilledDuringStop(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		step  crashStep
		in    time.Duration // what Stop is given
		lease time.Duration
		stand stand
	}{
		{stopping, hang, crashLease, stand{due: 3, running: 1}},
		{handing, 50 * time.Millisecond, crashLease, stand{due: 3, running: 1}},
		{handed, 50 * time.Millisecond, crashNever, stand{due: 4}},
	} {
		t.Run(strings.ReplaceAll(string(c.step), " ", "_"), func(t *testing.T) {
			t.Parallel()
			s := newCrashShop(t)
			s.place(4, crashSoon)
			s.killedAt(crashJob{Step: c.step, Stop: c.in, Stay: true, Lease: c.lease, Sweep: crashNever, Workers: 1})
			require.Equal(t, c.stand, s.stand())
			require.Len(t, s.ran, 1)
			require.Len(t, s.recovers(crashJob{Sweep: crashSweep}), 4)
		})
	}
}

// What was at work has ended, what waited is due, and no lease is left to wait for.
func TestKilledWhenAllIsSettledAndStopHasNotReturned(t *testing.T) {
	t.Parallel()
	s := newCrashShop(t)
	s.place(20, crashSoon)
	s.killedAt(crashJob{Step: leaving, Stop: hang, Lease: crashNever, Workers: 2})
	now := s.stand()
	require.Equal(t, stand{due: 20 - now.closed, gone: now.closed, closed: now.closed}, now)
	require.Len(t, s.ran, now.closed)
	require.Len(t, s.recovers(crashJob{Sweep: crashNever}), now.due)
}
