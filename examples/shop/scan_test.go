package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order"
)

// numbers are n order numbers, half of which the engine has with a share of 50.
func numbers(n int) (engines, scans []string) {
	for i := 0; len(engines) < n/2 || len(scans) < n/2; i++ {
		no := fmt.Sprintf("o%d", i)
		if share(50).has(no) {
			engines = append(engines, no)
		} else {
			scans = append(scans, no)
		}
	}
	return engines[:n/2], scans[:n/2]
}

func TestTheScanAloneClosesWhatIsOverdue(t *testing.T) {
	t.Parallel()
	a := setup(t, "-trigger", "scan", "-scan-every", "20ms", "-time-to-pay", "100ms")
	a.order("o1")
	a.eventually(func() bool { return a.get("/orders/o1")["status"] == "closed" })
	a.requireTea(10, 0, 0)
	a.eventually(func() bool { return a.scan.stats().Closed == 1 })
	require.Equal(t, true, a.get("/healthz")["ok"])
	require.NotContains(t, a.get("/stats"), "Engine")
}

func TestWithBothTheEngineClosesItsShareAndTheScanTheOthers(t *testing.T) {
	t.Parallel()
	a := setup(t, "-trigger", "both", "-engine-percent", "50", "-scan-every", "20ms", "-time-to-pay", "200ms")
	engines, scans := numbers(4)
	for _, no := range slices.Concat(engines, scans) {
		a.order(no)
	}
	for _, no := range slices.Concat(engines, scans) {
		a.eventually(func() bool { return a.get("/orders/" + no)["status"] == "closed" })
	}
	a.requireTea(10, 0, 0)
	a.eventually(func() bool { return a.scan.stats().Closed == len(scans) })
	require.Zero(t, a.scan.stats().ClosedForEngine)
	a.eventually(func() bool { return a.shop.engine.Stats().Executor.Done == uint64(len(engines)) })
}

func TestOrdersFromBeforeTheEngineComeToItWhenItStarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before := open(t, dir, "-trigger", "scan", "-scan-every", "1h")
	before.post("/stock/tea", `{"add":10}`, 200)
	engines, scans := numbers(2)
	due := expireMS(t, before.order(engines[0]))
	before.order(scans[0])
	before.stop()

	a := open(t, dir, "-trigger", "both", "-engine-percent", "50", "-scan-every", "1h")
	a.eventually(func() bool { return a.dueMS(engines[0]) == due })
	a.eventually(func() bool { return a.shop.engine.Stats().Recovery.Reconciled == 1 })
	require.Zero(t, a.dueMS(scans[0]))
}

// scanOver is a scan that a test makes the rounds of, beside an engine of that share which does
// nothing, and when its orders expire.
func scanOver(t *testing.T, sh share, orders int) (*scan, time.Time) {
	t.Helper()
	a := setup(t, "-trigger", "scan", "-scan-every", "1h")
	a.post("/stock/tea", fmt.Sprintf(`{"add":%d}`, orders), 200)
	now := time.Now()
	for i := range orders {
		require.NoError(t, a.shop.store.Create(t.Context(), order.Order{
			No: fmt.Sprintf("o%04d", i), UserID: "ann", ExpireAt: now, Items: []order.Item{{SKU: "tea", Quantity: 1}},
		}, now))
	}
	return &scan{store: a.shop.store, dialect: a.dialect, share: sh, log: slog.New(slog.DiscardHandler)}, time.UnixMilli(order.CeilMS(now))
}

func TestTheScanLeavesTheEnginesOrdersToItForAMinute(t *testing.T) {
	t.Parallel()
	s, expireAt := scanOver(t, everyOrder, 3)
	for after, want := range map[time.Duration]int{0: 0, engineLate - time.Millisecond: 0} {
		s.now = func(context.Context) (time.Time, error) { return expireAt.Add(after), nil }
		s.round(t.Context())
		require.Equal(t, want, s.stats().ClosedForEngine)
	}
	s.now = func(context.Context) (time.Time, error) { return expireAt.Add(engineLate), nil }
	for range 2 {
		s.round(t.Context())
		require.Equal(t, 3, s.stats().ClosedForEngine)
	}
	require.Zero(t, s.stats().Closed)
}

func TestTheScanReadsPageByPageOverOrdersOfOneInstant(t *testing.T) {
	t.Parallel()
	s, expireAt := scanOver(t, 0, 2*scanPage+1)
	s.now = func(context.Context) (time.Time, error) { return expireAt, nil }
	s.round(t.Context())
	require.Equal(t, 2*scanPage+1, s.stats().Closed)
}

func TestAnOrderThatCannotBeClosedHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s, expireAt := scanOver(t, 0, 3)
	_, err := s.store.DB().ExecContext(t.Context(), `INSERT INTO stock_ledger VALUES ('o0001', 'tea', 'release', 1, 0)`)
	require.NoError(t, err)
	s.now = func(context.Context) (time.Time, error) { return expireAt, nil }
	s.round(t.Context())
	got := s.stats()
	require.Equal(t, 2, got.Closed)
	require.Equal(t, 1, got.Failed)
	require.Contains(t, got.Problem, `order "o0001"`)
}

func TestAScanThatFailsIsInHealthUntilOneSucceeds(t *testing.T) {
	t.Parallel()
	a := setup(t, "-trigger", "scan", "-scan-every", "1h")
	a.eventually(func() bool { return a.scan.stats().Rounds == 1 })
	now := a.scan.now
	a.scan.now = func(context.Context) (time.Time, error) { return time.Time{}, errors.New("no clock") }
	a.scan.round(t.Context())
	require.Equal(t, map[string]any{"ok": true, "warnings": []any{"the last scan failed: no clock"}}, a.get("/healthz"),
		"it is no reason to take no payments")
	a.scan.now = now
	a.scan.round(t.Context())
	require.Equal(t, map[string]any{"ok": true}, a.get("/healthz"))
}

func TestANightlyScanThatFailedIsMadeAgainInAMinute(t *testing.T) {
	t.Parallel()
	a := setup(t)
	now := time.Date(2026, 5, 1, 3, 0, 0, 0, time.Local)
	require.Equal(t, 24*time.Hour, a.scan.pause(now))
	clock := a.scan.now
	a.scan.now = func(context.Context) (time.Time, error) { return time.Time{}, errors.New("no clock") }
	a.scan.round(t.Context())
	require.Equal(t, time.Minute, a.scan.pause(now))
	require.Equal(t, 30*time.Second, a.scan.pause(now.Add(24*time.Hour-30*time.Second)), "not after its time")
	a.scan.now = clock
	a.scan.round(t.Context())
	require.Equal(t, 24*time.Hour, a.scan.pause(now))
}

func TestTheNightlyScanIsOnceADayAtItsTime(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	at := func(text string) time.Time {
		got, err := time.ParseInLocation("2006-01-02 15:04:05", text, berlin)
		require.NoError(t, err)
		return got
	}
	three, err := parseTimeOfDay("03:00")
	require.NoError(t, err)
	for now, want := range map[string]string{
		"2026-05-01 02:59:59": "2026-05-01 03:00:00",
		"2026-05-01 03:00:00": "2026-05-02 03:00:00",
		"2026-12-31 23:00:00": "2027-01-01 03:00:00",
		"2026-03-28 12:00:00": "2026-03-29 03:00:00", // a night of 23 hours
		"2026-10-24 12:00:00": "2026-10-25 03:00:00", // one of 25
	} {
		require.Equal(t, at(want), three.after(at(now)), now)
	}
}
