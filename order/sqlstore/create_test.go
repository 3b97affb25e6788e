package sqlstore_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order"
)

func TestCreatedOrdersAreFoundAsTheyWerePlaced(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		o := newOrder("o", withCoupon("c1"), func(o *order.Order) {
			o.Items = []order.Item{{SKU: "b", Quantity: 1}, {SKU: "a", Quantity: 2}}
		})
		require.NoError(t, s.Create(t.Context(), o, t0))
		require.Equal(t, "b", o.Items[0].SKU, "the caller's order is left as it was")

		got, status, err := s.Find(t.Context(), "o")
		require.NoError(t, err)
		require.Equal(t, order.Unpaid, status)
		o.Items = []order.Item{{SKU: "a", Quantity: 2}, {SKU: "b", Quantity: 1}}
		require.Equal(t, o, got)
	})
}

func TestCreateRefusesAndChangesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		require.NoError(t, s.AddCoupon(t.Context(), "other's", "v", due))
		require.NoError(t, s.AddCoupon(t.Context(), "over", "u", t0))
		require.NoError(t, s.AddCoupon(t.Context(), "frozen", "u", due))
		require.NoError(t, s.AddCoupon(t.Context(), "used", "u", due))
		s.create("there", withCoupon("frozen"))
		s.create("spent", withCoupon("used"))
		s.pay(payment("p", "spent"))
		before := dump(t, s)

		line := func(sku string, n int64) order.Item { return order.Item{SKU: sku, Quantity: n} }
		items := func(it ...order.Item) func(*order.Order) { return func(o *order.Order) { o.Items = it } }
		for name, c := range map[string]struct {
			o    order.Order
			want error
			says string
		}{
			"the number exists":    {newOrder("there"), order.ErrDuplicate, `"there"`},
			"out of stock":         {newOrder("n", items(line("a", 1), line("b", 98))), order.ErrOutOfStock, `sku "b" has 94, the order asks for 98`},
			"no such sku":          {newOrder("n", items(line("a", 1), line("z", 1))), order.ErrOutOfStock, `no sku "z"`},
			"skus differ by case":  {newOrder("n", items(line("A", 1))), order.ErrOutOfStock, `no sku "A"`},
			"no such coupon":       {newOrder("n", withCoupon("none")), order.ErrCoupon, "no such coupon"},
			"another user's":       {newOrder("n", withCoupon("other's")), order.ErrCoupon, "belongs to another user"},
			"over this very ms":    {newOrder("n", withCoupon("over")), order.ErrCoupon, "it expired at 2023-11-14T22:13:20Z"},
			"frozen":               {newOrder("n", withCoupon("frozen")), order.ErrCoupon, `frozen by order "there"`},
			"used":                 {newOrder("n", withCoupon("used")), order.ErrCoupon, `used by order "spent"`},
			"a sku in two lines":   {newOrder("n", items(line("a", 1), line("a", 1))), order.ErrInvalid, "Items[1].SKU"},
			"no line":              {newOrder("n", items()), order.ErrInvalid, "Items is empty"},
			"expires in year 1":    {newOrder("n", expiring(time.Time{}.Add(1))), order.ErrInvalid, "ExpireAt is 0001"},
			"a number of no bytes": {newOrder(""), order.ErrInvalid, "No is"},
		} {
			t.Run(name, func(t *testing.T) {
				err := s.Create(t.Context(), c.o, t0)
				require.ErrorIs(t, err, c.want)
				require.ErrorContains(t, err, c.says)
				require.Equal(t, before, dump(t, s))
			})
		}
		require.ErrorIs(t, s.Create(t.Context(), newOrder("n"), time.Time{}), order.ErrInvalid)
	})
}

func TestAnExpiredCouponOfAClosedOrderIsNotUsableAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		require.NoError(t, s.AddCoupon(t.Context(), "c", "u", due))
		s.create("o", withCoupon("c"))
		s.close("o", due)
		err := s.Create(t.Context(), newOrder("p", withCoupon("c")), t0)
		require.ErrorIs(t, err, order.ErrCoupon)
		require.ErrorContains(t, err, "it is expired")
	})
}

func TestTheLastUnitIsSoldOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		s.addStock("last", 1)
		one := func(o *order.Order) { o.Items = []order.Item{{SKU: "last", Quantity: 1}} }
		s.create("o1", one)
		require.ErrorIs(t, s.Create(t.Context(), newOrder("o2", one), t0), order.ErrOutOfStock)
		s.close("o1", due)
		s.create("o2", one)
		require.Equal(t, [3]int64{0, 1, 0}, s.stock("last"))
	})
}

func TestStockAndCouponsAreAdded(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		s.addStock("a", 5)
		require.Equal(t, [3]int64{105, 0, 0}, s.stock("a"))
		require.ErrorIs(t, s.AddCoupon(t.Context(), "c1", "v", due), order.ErrDuplicate)
		require.ErrorIs(t, s.AddStock(t.Context(), "a", 0), order.ErrInvalid)
		require.ErrorIs(t, s.AddStock(t.Context(), "", 1), order.ErrInvalid)
		require.ErrorIs(t, s.AddStock(t.Context(), "a", math.MaxInt64), order.ErrInvalid)
		require.ErrorIs(t, s.AddCoupon(t.Context(), "c", "", time.Time{}), order.ErrInvalid)
		require.NoError(t, s.Migrate(t.Context()), "again: it leaves what is there")
		require.Equal(t, [3]int64{105, 0, 0}, s.stock("a"))
	})
}

func TestUnpaidPagesThroughOpenOrdersByNumber(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := setup(t, db)
		for i, no := range []string{"e", "a", "d", "paid", "c", "closed", "b"} {
			s.create(no, expiring(due.Add(time.Duration(i)*ms)))
		}
		s.create("cod", expiring(time.Time{}))
		s.pay(payment("p", "paid"))
		s.close("closed", due.Add(time.Hour))

		var got []string
		dueOf := map[string]int64{}
		for after := ""; ; after = got[len(got)-1] {
			ids, dueMS, err := s.Unpaid(t.Context(), after, 2)
			require.NoError(t, err)
			require.Len(t, dueMS, len(ids))
			got = append(got, ids...)
			for i, id := range ids {
				dueOf[id] = dueMS[i]
			}
			if len(ids) < 2 {
				break
			}
		}
		require.Equal(t, []string{"a", "b", "c", "d", "e"}, got)
		require.Equal(t, due.UnixMilli()+6, dueOf["b"])
		_, _, err := s.Unpaid(t.Context(), "", 0)
		require.ErrorIs(t, err, order.ErrInvalid)
	})
}

func TestStockThatOverflowsIsRefused(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := unchecked(t, db)
		s.exec(`UPDATE sku_stock SET stock = 9223372036854775806 WHERE sku_id = 'a'`)
		require.Error(t, s.AddStock(t.Context(), "a", 2))
		require.Equal(t, [3]int64{math.MaxInt64 - 1, 0, 0}, s.stock("a"))
	})
}
