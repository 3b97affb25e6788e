//go:build !race

package sqlstore_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order"
)

func TestAPageOfUnpaidOrdersIsReadFromItsIndexAlone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s, c, open := setupGrown(t, db)
		list := sent(c, func() {
			ids, _, err := s.Unpaid(t.Context(), open[10], 20)
			require.NoError(t, err)
			require.Equal(t, open[11:31], ids)
		})
		require.Len(t, list, 1)
		plan := strings.Join(s.explain(list[0]), "\n")
		require.Regexp(t, db.covered, plan)
		for _, bad := range []string{"Sort", "filesort", "TEMP B-TREE", "Seq Scan"} {
			require.NotContains(t, plan, bad)
		}
	})
}

func TestEachStatementOfACloseUsesAnIndex(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s, c, open := setupGrown(t, db)
		list := sent(c, func() { require.Equal(t, order.ClosedNow, s.close(open[1], due).Outcome) })
		require.Len(t, list, 7, "the order, whose it is, the count, its lines, two skus, the coupon")
		for _, st := range list {
			plan := strings.Join(s.explain(st), "\n")
			require.Regexp(t, db.indexed, plan, st.query)
			require.NotRegexp(t, db.scanned, plan, st.query)
		}
	})
}

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
