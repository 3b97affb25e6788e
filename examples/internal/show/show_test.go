package show

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/examples/internal/audit"
)

var sample = audit.Report{
	Orders: 3000, Paid: 1700, Closed: 1299, Open: 1, Refunds: 12, Lost: 1, DuplicateEffects: 1234567,
	By:     audit.By{Wheel: 1290, Sweep: 7, Recovery: 2, Reconcile: 1},
	LateMS: audit.LateMS{P50: 0.812, P99: 3.5, Max: 12},
}

func TestTheReportIsOneObjectOnOneLine(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, JSON(&out, sample))
	require.Equal(t, `{"orders":3000,"paid":1700,"closed":1299,"open":1,"refunds":12,`+
		`"stock_locked":0,"stock_missing":0,"coupons_frozen":0,"early":0,"lost":1,"duplicate_effects":1234567,`+
		`"by":{"wheel":1290,"sweep":7,"recovery":2,"reconcile":1},"late_ms":{"p50":0.812,"p99":3.5,"max":12}}`+"\n", out.String())
}

func TestTheTableShowsWhatIsWrong(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, Table(&out, sample))
	require.Equal(t, `orders                  3,000
paid                    1,700
closed                  1,299   late by 0.8 ms (p50), 3.5 ms (p99), 12.0 ms (max)
refunds                    12   payments of orders that were closed
fired                   1,300   wheel 1,290, sweep 7, recovery 2, reconcile 1; some find the order paid

must be 0
  open                      1   WRONG: orders neither paid nor closed
  stock_locked              0   units still locked by orders that are not open
  stock_missing             0   units neither free, locked nor sold
  coupons_frozen            0   coupons still frozen by orders that are not open
  early                     0   calls of the handler before the order expired
  lost                      1   WRONG: open orders of which Redis knows no task
  duplicate_effects 1,234,567   WRONG: units, coupons and refunds given back twice
`, out.String())
}

func TestThousandsAreApart(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", -100: "-100", 1234567: "1,234,567"} {
		require.Equal(t, want, Comma(n))
	}
}
