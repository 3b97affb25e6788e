package sqlstore_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A page costs what it costs with few orders: counted in the blocks that PostgreSQL touches, which do
// not depend on how busy the machine is. Five million orders where ORDERWHEEL_LONG is set.
func TestAPageCostsTheSameHoweverManyOrdersThereAre(t *testing.T) {
	t.Parallel()
	n := 50_000
	if os.Getenv("ORDERWHEEL_LONG") != "" {
		n = 5_000_000
	}
	few, many := blocksOfPages(t, 5_000), blocksOfPages(t, n)
	t.Logf("blocks of a page, at the begin, the middle and the end: %v of 5,000 orders, %v of %d", few, many, n)
	for i := range few {
		require.LessOrEqual(t, many[i], 2*few[i])
	}
}

// blocksOfPages makes n orders, one in ten of them unpaid, and counts the blocks that three pages of
// 100 touch.
func blocksOfPages(t *testing.T, n int) (blocks []int) {
	t.Helper()
	s, c := uncheckedFaulty(t, named("postgres"))
	s.exec(fmt.Sprintf(`
		INSERT INTO orders (order_no, user_id, status, expire_at, amount, created_at, closed_at)
		SELECT to_char(i, 'FM0000000'), 'u', CASE WHEN i %% 10 = 0 THEN 'unpaid' ELSE 'closed' END, %d, 500, 0,
			CASE WHEN i %% 10 <> 0 THEN 0 END
		FROM generate_series(0, %d) i`, due.UnixMilli(), n-1))
	// A worker of autovacuum that was at the table meanwhile may keep blocks from being marked as
	// visible to all, and then an index alone does not do.
	for start, hidden := time.Now(), -1; hidden != 0; {
		require.Less(t, time.Since(start), time.Minute, "%d blocks are not visible to all", hidden)
		s.exec(`VACUUM ANALYZE orders`)
		hidden = s.count(`SELECT relpages - relallvisible FROM pg_class WHERE relname = 'orders'`)
	}
	for _, after := range []string{"", fmt.Sprintf("%07d", n/2), fmt.Sprintf("%07d", n-1100)} {
		page := sent(c, func() {
			ids, _, err := s.Unpaid(t.Context(), after, 100)
			require.NoError(t, err)
			require.Len(t, ids, 100)
		})[0]
		s.db.explain = "EXPLAIN (ANALYZE, BUFFERS) "
		plan := strings.Join(s.explain(page), "\n")
		require.Contains(t, plan, "Index Only Scan using orders_unpaid")
		blocks = append(blocks, buffers(t, plan))
	}
	return blocks
}

// buffers is the sum of the first line "Buffers: shared hit=3 read=1" of a plan, which is that of the
// whole.
func buffers(t *testing.T, plan string) (sum int) {
	t.Helper()
	_, line, found := strings.Cut(plan, "Buffers: shared ")
	require.True(t, found, plan)
	line, _, _ = strings.Cut(line, "\n")
	for _, part := range strings.Fields(line) {
		var n int
		_, number, _ := strings.Cut(part, "=")
		_, err := fmt.Sscan(number, &n)
		require.NoError(t, err, line)
		sum += n
	}
	return sum
}
