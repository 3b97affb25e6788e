package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/orderwheel/orderwheel/internal/dbtest"
	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/sqlstore"
)

func TestMain(m *testing.M) {
	if job := os.Getenv(childJob); job != "" {
		os.Exit(child(job, named(os.Getenv(childDB)), os.Getenv(childDSN)))
	}
	goleak.VerifyTestMain(dbtest.Stopping(m), // the two are of ants' own default pool
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"))
}

// The instants of the tests: orders are created at t0 and expire at due.
var (
	t0  = time.UnixMilli(1_700_000_000_000)
	due = t0.Add(30 * time.Minute)
)

const ms = time.Millisecond

// shop is a store on a file of its own, with what the invariants need to know.
type shop struct {
	*sqlstore.Store
	t       testing.TB
	db      backend
	initial map[string]int64 // units added, by sku
	kinds   *[]string        // the messages that each close leaves in the outbox
}

// setup makes a shop with 100 units each of sku a and b, and the coupon c1 of user u, valid for a
// day. The invariants are checked when the test ends.
func setup(t testing.TB, db backend) *shop {
	t.Helper()
	s := unchecked(t, db)
	s.checkAtEnd()
	return s
}

func unchecked(t testing.TB, db backend) *shop {
	t.Helper()
	s := newShop(t, db, db.opened(t, db.place(t)))
	s.fill()
	return s
}

// newShop is a shop on what the database holds: at first nothing.
func newShop(t testing.TB, b backend, db *sql.DB) *shop {
	t.Helper()
	s := &shop{Store: sqlstore.New(db, b.dialect), t: t, db: b, initial: map[string]int64{}, kinds: new([]string)}
	require.NoError(t, s.Migrate(t.Context()))
	return s
}

func (s *shop) checkAtEnd() { s.t.Cleanup(s.check) }

// check fails the test for each violation of an invariant.
func (s *shop) check() {
	s.t.Helper()
	for _, v := range s.violations() {
		s.t.Error(v)
	}
}

func (s *shop) fill() {
	s.t.Helper()
	s.addStock("a", 100)
	s.addStock("b", 100)
	require.NoError(s.t, s.AddCoupon(s.t.Context(), "c1", "u", t0.Add(24*time.Hour)))
}

// tables are those of the store, each before those that refer to it.
var tables = []string{"sku_stock", "orders", "order_items", "stock_ledger", "user_coupons", "payments", "refunds", "close_log", "user_unpaid", "outbox"}

// reset empties the shop and fills it again.
func (s *shop) reset() {
	s.t.Helper()
	for _, table := range slices.Backward(tables) {
		s.exec("DELETE FROM " + table)
	}
	clear(s.initial)
	s.fill()
}

func (s *shop) addStock(sku string, n int64) {
	s.t.Helper()
	require.NoError(s.t, s.AddStock(s.t.Context(), sku, n))
	s.initial[sku] += n
}

// createMany places n orders in a few statements, as newOrder has them, numbered prefix + 00000 and
// so on, with just enough stock; every other has a coupon of its own, "c-" and its number, valid a
// millisecond longer.
func (s *shop) createMany(prefix string, n int) (nos []string) {
	s.t.Helper()
	return s.createDue(prefix, n, func(int) time.Time { return due })
}

// createDue is createMany with an expire_at for each.
func (s *shop) createDue(prefix string, n int, at func(i int) time.Time) (nos []string) {
	s.t.Helper()
	s.addStock("a", 2*int64(n))
	s.addStock("b", 3*int64(n))
	var rows []string
	for i := range n {
		no, coupon := fmt.Sprintf("%s%05d", prefix, i), "NULL"
		if i%2 == 1 {
			coupon = "'c-" + no + "'"
		}
		nos = append(nos, no)
		rows = append(rows, fmt.Sprintf("('%s', 'u', 'unpaid', %d, 500, %s, 0)", no, at(i).UnixMilli(), coupon))
	}
	for page := range slices.Chunk(rows, 1000) {
		s.exec(`INSERT INTO orders (order_no, user_id, status, expire_at, amount, coupon_id, created_at) VALUES ` + strings.Join(page, ", "))
	}
	if s.count(`SELECT COUNT(*) FROM user_unpaid WHERE user_id = 'u'`) == 0 {
		s.exec(`INSERT INTO user_unpaid (user_id, unpaid) VALUES ('u', 0)`)
	}
	for _, stmt := range []string{
		`UPDATE user_unpaid SET unpaid = unpaid + :n WHERE user_id = 'u'`,
		`INSERT INTO order_items SELECT order_no, 'a', 2 FROM orders WHERE order_no >= :prefix`,
		`INSERT INTO order_items SELECT order_no, 'b', 3 FROM orders WHERE order_no >= :prefix`,
		`INSERT INTO stock_ledger SELECT order_no, sku_id, 'lock', quantity, 0 FROM order_items WHERE order_no >= :prefix`,
		`UPDATE sku_stock SET lock_stock = lock_stock + 2 * :n, stock = stock - 2 * :n WHERE sku_id = 'a'`,
		`UPDATE sku_stock SET lock_stock = lock_stock + 3 * :n, stock = stock - 3 * :n WHERE sku_id = 'b'`,
		`INSERT INTO user_coupons SELECT coupon_id, 'u', 'frozen', order_no, expire_at + 1 FROM orders
			WHERE order_no >= :prefix AND coupon_id IS NOT NULL`,
	} {
		s.exec(strings.NewReplacer(":prefix", "'"+prefix+"'", ":n", fmt.Sprint(n)).Replace(stmt))
	}
	return nos
}

// create places an order of 2 a and 3 b with the changes of edit.
func (s *shop) create(no string, edit ...func(*order.Order)) order.Order {
	s.t.Helper()
	o := newOrder(no, edit...)
	require.NoError(s.t, s.Create(s.t.Context(), o, t0))
	return o
}

func newOrder(no string, edit ...func(*order.Order)) order.Order {
	o := order.Order{No: no, UserID: "u", Amount: 500, ExpireAt: due,
		Items: []order.Item{{SKU: "a", Quantity: 2}, {SKU: "b", Quantity: 3}}}
	for _, e := range edit {
		e(&o)
	}
	return o
}

func withCoupon(id string) func(*order.Order) { return func(o *order.Order) { o.CouponID = id } }
func expiring(at time.Time) func(*order.Order) {
	return func(o *order.Order) { o.ExpireAt = at }
}

func payment(id, no string) order.Payment {
	return order.Payment{ID: id, OrderNo: no, Amount: 500, At: t0.Add(time.Minute)}
}

func (s *shop) close(no string, now time.Time) order.Result {
	s.t.Helper()
	r, err := s.Close(s.t.Context(), no, now)
	require.NoError(s.t, err)
	return r
}

func (s *shop) pay(p order.Payment) order.PayOutcome {
	s.t.Helper()
	out, err := s.Pay(s.t.Context(), p)
	require.NoError(s.t, err)
	return out
}

func (s *shop) status(no string) order.Status {
	s.t.Helper()
	_, status, err := s.Find(s.t.Context(), no)
	require.NoError(s.t, err)
	return status
}

// stock is the row of a sku: free, locked, sold.
func (s *shop) stock(sku string) [3]int64 {
	s.t.Helper()
	var u [3]int64
	require.NoError(s.t, s.DB().QueryRowContext(context.Background(),
		s.db.dialect.Rebind(`SELECT stock, lock_stock, sold FROM sku_stock WHERE sku_id = ?`), sku).Scan(&u[0], &u[1], &u[2]))
	return u
}

func (s *shop) coupon(id string) string {
	return s.text(`SELECT status FROM user_coupons WHERE coupon_id = ?`, id)
}

func (s *shop) count(query string, args ...any) (n int) {
	s.t.Helper()
	require.NoError(s.t, s.DB().QueryRowContext(context.Background(), s.db.dialect.Rebind(query), args...).Scan(&n))
	return n
}

func (s *shop) text(query string, args ...any) (v string) {
	s.t.Helper()
	require.NoError(s.t, s.DB().QueryRowContext(context.Background(), s.db.dialect.Rebind(query), args...).Scan(&v))
	return v
}

// exec changes tables behind the store's back.
func (s *shop) exec(query string, args ...any) {
	s.t.Helper()
	_, err := s.DB().ExecContext(context.Background(), s.db.dialect.Rebind(query), args...)
	require.NoError(s.t, err)
}
