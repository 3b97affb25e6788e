package sqlstore_test

import (
	"database/sql/driver"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// statement is one that the store sent, to be explained.
type statement struct {
	query string
	args  []any
}

// sent has the statements that do sends. INSERTs have no plan and are left out.
func sent(c *faultConnector, do func()) (list []statement) {
	c.arm(faults{statement: func(query string, args []driver.NamedValue) {
		st := statement{query: strings.TrimSpace(query)}
		for _, a := range args {
			st.args = append(st.args, a.Value)
		}
		if !strings.HasPrefix(st.query, "INSERT") {
			list = append(list, st)
		}
	}})
	do()
	c.disarm()
	return list
}

// explain is the plan of a statement, a line a step.
func (s *shop) explain(st statement) []string {
	s.t.Helper()
	tx, err := s.DB().BeginTx(s.t.Context(), nil)
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, tx.Rollback()) }()
	return readAll(s.t, tx, s.db.explain+st.query, st.args...)
}

// setupGrown is a shop with many orders, of which few are open, and of many skus, so that it pays to
// use an index, and a database that knows it.
func setupGrown(t *testing.T, db backend) (*shop, *faultConnector, []string) {
	t.Helper()
	s, c := uncheckedFaulty(t, db)
	var skus, users []string
	for i := range 2000 {
		skus = append(skus, fmt.Sprintf("('sku-%04d', 0, 0, 0)", i))
		users = append(users, fmt.Sprintf("('user-%04d', 0)", i))
	}
	s.exec(`INSERT INTO sku_stock (sku_id, stock, lock_stock, sold) VALUES ` + strings.Join(skus, ", "))
	s.exec(`INSERT INTO user_unpaid (user_id, unpaid) VALUES ` + strings.Join(users, ", "))
	nos := s.createMany("o", 4000)
	s.exec(`UPDATE orders SET status = 'paid', payment_id = order_no, paid_at = 0 WHERE order_no < 'o03900'`)
	s.exec(db.analyze)
	return s, c, nos[3900:]
}
