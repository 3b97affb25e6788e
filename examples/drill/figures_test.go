package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/examples/internal/audit"
)

func sample() *figures {
	return newFigures(audit.Report{
		Orders: 3000, Paid: 1700, Closed: 1300, Lost: 1, StockMissing: 2,
		By:     audit.By{Wheel: 1290, Sweep: 7, Recovery: 2, Reconcile: 1},
		LateMS: audit.LateMS{P50: 0.812, P99: 3.5, Max: 2012},
	}, map[step]int64{atRandom: 3, inClose: 1, "redis": 2}, []time.Duration{20 * time.Millisecond, 10 * time.Millisecond, 1500 * time.Microsecond})
}

func TestTheReportIsOneObjectOnOneLine(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, sample().writeJSON(&out))
	require.Equal(t, `{"orders":3000,"closed":1300,"paid":1700,"kills":{"in-close":1,"random":3,"redis":2},`+
		`"lost":1,"early":0,"duplicate_effects":0,"stock_missing":2,"stock_locked":0,`+
		`"by":{"wheel":1290,"sweep":7,"recovery":2,"reconcile":1},"recovery_ms":{"p50":10,"max":20},`+
		`"late_ms":{"p50":0.812,"p99":3.5,"max":2012}}`+"\n", out.String())
}

func TestTheTableShowsWhatIsWrong(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, sample().writeTable(&out))
	require.Equal(t, `orders                  3,000
closed                  1,300   late by 0.8 ms (p50), 3.5 ms (p99), 2012.0 ms (max)
paid                    1,700
fired                   1,300   wheel 1,290, sweep 7, recovery 2, reconcile 1
kills                       6   in-close 1, random 3, redis 2
recovery p50, ms         10.0   from the start of a process, max 20.0 ms

must be 0
  lost                      1   WRONG: open orders of which Redis knows no task
  early                     0   calls of the handler before the order expired
  duplicate_effects         0   units, coupons and refunds given back twice
  stock_missing             2   WRONG: units neither free, locked nor sold
  stock_locked              0   units still locked by orders that are not open
`, out.String())
}

func TestEachFigureThatMustBeZeroIsAFault(t *testing.T) {
	t.Parallel()
	require.True(t, newFigures(audit.Report{Orders: 1, Paid: 1, Refunds: 1}, nil, nil).sound())
	for _, r := range []audit.Report{{Lost: 1}, {Early: 1}, {DuplicateEffects: 1}, {StockMissing: 1}, {StockLocked: 1}} {
		require.False(t, newFigures(r, nil, nil).sound(), "%+v", r)
	}
}
