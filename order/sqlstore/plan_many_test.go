package sqlstore_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order"
)

func TestEachStatementOfABatchUsesAnIndex(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s, c, open := setupGrown(t, db)
		list := sent(c, func() {
			for _, r := range s.closeMany(due, open[1:5]...) {
				require.Equal(t, order.ClosedNow, r.Outcome)
			}
		})
		require.Len(t, list, 7, "the orders locked, and closed, the count, their lines, two skus, the coupons")
		for _, st := range list {
			plan := strings.Join(s.explain(st), "\n")
			require.Regexp(t, db.indexed, plan, st.query)
			require.NotRegexp(t, db.scanned, plan, st.query)
		}
	})
}
