package sqlstore

import (
	"database/sql"
	"time"

	"github.com/orderwheel/orderwheel/order"
)

// row is what a close looks at in an order. The zero value is that of no order.
type row struct {
	status   order.Status
	expireMS sql.NullInt64
	userID   string
	couponID sql.NullString
}

// look says whether a close at nowMS closes the order, or what it answers instead.
func (r row) look(nowMS int64) (res order.Result, due bool) {
	switch {
	case r.status == "":
		res.Outcome = order.NotFound
	case r.status == order.Paid:
		res.Outcome = order.WasPaid
	case r.status == order.Closed:
		res.Outcome = order.ClosedAlready
	case r.expireMS.Valid && r.expireMS.Int64 <= nowMS:
		return res, true
	default:
		res.Outcome, res.ExpireAt = order.NotYetDue, expireTime(r.expireMS)
	}
	return res, false
}

func expireTime(ms sql.NullInt64) time.Time {
	if !ms.Valid {
		return time.Time{}
	}
	return time.UnixMilli(ms.Int64)
}

// selectRows reads rows by number; the list of an IN follows.
const selectRows = `SELECT order_no, status, expire_at, user_id, coupon_id FROM orders WHERE order_no IN `

// scanRows reads what selectRows asks for, by number.
func scanRows(rows *sql.Rows) (map[string]row, error) {
	defer rows.Close()
	found := map[string]row{}
	for rows.Next() {
		var no string
		var r row
		if err := rows.Scan(&no, &r.status, &r.expireMS, &r.userID, &r.couponID); err != nil {
			return nil, err
		}
		found[no] = r
	}
	return found, rows.Err()
}
