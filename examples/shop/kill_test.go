package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/examples/internal/audit"
	"github.com/orderwheel/orderwheel/internal/redistest"
	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/sqlstore/sqlite"
)

const (
	killOrders = 300
	killSpread = 8 * time.Second
	killToPay  = 2 * time.Second
	killHang   = 5 * time.Minute
)

// The shop is driven over HTTP, killed twice with kill -9 while requests are under way, and started
// again. Then the audit of the drill judges it, and what customers were told must stand.
func TestKillsUnderLoadDoNoHarm(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	// Few connections, so that no request waits in the shop for longer than it answers, however slow
	// the machine.
	l := &load{t: t, ctx: ctx, told: map[string]string{}, client: &http.Client{Transport: &http.Transport{MaxConnsPerHost: 8}}}
	defer l.client.CloseIdleConnections()
	start := func() *process {
		p := startProcess(t, dir, "-redis", server.Addr(), "-time-to-pay", killToPay.String())
		l.url.Store(&p.url)
		return p
	}
	shop := start()
	l.openAudit(dir, server)
	l.insist("/stock/tea", fmt.Sprintf(`{"add":%d}`, 3*killOrders))
	l.insist("/stock/cup", fmt.Sprintf(`{"add":%d}`, 3*killOrders))
	require.NoError(t, l.audit.NoteStock(t.Context()))

	for i := 0; i < killOrders; i += 3 {
		no := orderNo(i)
		l.insist("/coupons", `{"coupon_id":"coupon-`+no+`","user_id":"ann","expire_at":"2999-01-01T00:00:00Z"}`)
	}

	var customers sync.WaitGroup
	defer customers.Wait()
	defer stop()
	rng := rand.New(rand.NewPCG(1, 2))
	began := time.Now()
	for i := range killOrders {
		at := began.Add(time.Duration(rng.Int64N(int64(killSpread))))
		jitter := time.Duration(rng.Int64N(int64(killToPay)))
		customers.Go(func() { l.customer(i, at, jitter) })
	}
	for kill := range 2 {
		require.Eventually(t, func() bool { return l.created.Load() > int64(kill+1)*killOrders/3 }, killHang, 10*time.Millisecond)
		cutOff := l.cutOff.Load()
		shop.kill()
		shop = start()
		require.Eventually(t, func() bool { return l.cutOff.Load() > cutOff }, hang, 10*time.Millisecond, "no request was cut off")
	}
	customers.Wait()
	require.False(t, t.Failed())
	require.Eventually(t, func() bool {
		r, err := l.audit.Report(t.Context())
		require.NoError(t, err)
		tasks, err := l.audit.Tasks(t.Context())
		require.NoError(t, err)
		return r.Open == 0 && tasks == 0
	}, killHang, 100*time.Millisecond, "orders or tasks are left")

	l.noteAgain()
	r, err := l.audit.Report(t.Context())
	require.NoError(t, err)
	require.Empty(t, r.Faults(), "%+v", r)
	require.EqualValues(t, killOrders, r.Orders)
	require.EqualValues(t, killOrders, r.Paid+r.Closed)
	t.Logf("%d requests were cut off; %+v", l.cutOff.Load(), r)
	for no, want := range l.told {
		status, body := l.once("GET", "/orders/"+no, "")
		require.Equal(t, 200, status, no)
		require.Equal(t, want, body["status"], no)
	}
}

// openAudit opens the audit of the shop's database and Redis.
func (l *load) openAudit(dir string, server *redistest.Server) {
	t := l.t
	var err error
	l.db, err = sqlite.OpenWith(t.Context(), filepath.Join(dir, "shop.db"), sqlite.Options{Sync: sqlite.SyncNormal})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.db.Close()) })
	l.audit, err = audit.Open(t.Context(), audit.Config{DB: l.db, Redis: server.Client(t), Namespace: namespace, Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.audit.Close()) })
}

// load is what the customers do, and what they were told.
type load struct {
	t       *testing.T
	ctx     context.Context // ends with the test, and the customers with it
	client  *http.Client
	url     atomic.Pointer[string]
	db      *sql.DB // the shop's
	audit   *audit.Audit
	created atomic.Int64
	cutOff  atomic.Int64 // requests without an answer

	mu    sync.Mutex
	told  map[string]string // the status that an order must have in the end
	again []string          // orders that were not placed at the first try
}

func orderNo(i int) string { return fmt.Sprintf("order-%04d", i) }

// customer does all that becomes of an order: one in ten is abandoned, four are paid in time, one at
// the last moment, one too late, one is extended and then paid, and the others are closed, half of
// them after an extension.
func (l *load) customer(i int, at time.Time, jitter time.Duration) {
	no, coupon := orderNo(i), ""
	if i%3 == 0 {
		coupon = "coupon-" + no
	}
	time.Sleep(time.Until(at))
	begun := time.Now()
	placed, tries := l.insist("/orders", `{"order_no":"`+no+`","user_id":"ann","amount":500,"coupon_id":"`+coupon+
		`","items":[{"sku":"tea","quantity":2},{"sku":"cup","quantity":1}]}`)
	l.created.Add(1)
	due, err := time.Parse(time.RFC3339, fmt.Sprint(placed["expire_at"]))
	if err != nil {
		if l.ctx.Err() == nil {
			l.t.Errorf("%s: %v", no, placed)
		}
		return
	}
	if tries > 1 {
		l.placedAgain(begun, no, due)
	}
	pay := func(at time.Time) {
		time.Sleep(time.Until(at))
		answer, _ := l.insist("/orders/"+no+"/pay", `{"payment_id":"payment-`+no+`","amount":500}`)
		if answer["outcome"] == order.Refunded.String() {
			l.must(no, "closed")
		} else {
			l.must(no, "paid")
		}
	}
	extend := func() {
		time.Sleep(jitter / 2)
		to, begun := due.Add(killToPay), time.Now()
		answer, _ := l.insist("/orders/"+no+"/extend", `{"expire_at":"`+stamp(to)+`"}`)
		if answer["expire_at"] == stamp(to) {
			l.audit.Moved(begun, no, to)
		}
	}
	switch i % 10 {
	case 0:
		time.Sleep(jitter)
		answer, _ := l.insist("/orders/"+no+"/abandon", "{}")
		if answer["status"] == "closed" {
			l.must(no, "closed")
		}
	case 1, 2, 3, 4:
		pay(time.Now().Add(jitter))
	case 5:
		pay(due.Add(jitter/50 - killToPay/100)) // 10 ms around it
	case 6:
		pay(due.Add(jitter))
	case 7:
		extend()
		pay(due.Add(jitter))
	case 8:
		extend()
	}
}

// must notes what an order has to be in the end.
func (l *load) must(no, status string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told[no] = status
}

// placedAgain notes that an order was placed at a later try than the first. A kill may have left
// the task of an earlier one, at an instant that nobody knows: until the Schedule of this one has
// returned, no call is early.
func (l *load) placedAgain(begun time.Time, no string, expireAt time.Time) {
	l.audit.Moved(begun, no, expireAt)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.again = append(l.again, no)
}

// noteAgain tells the audit of these orders, as of the first move of each.
func (l *load) noteAgain() {
	for n, no := range l.again {
		_, err := l.db.ExecContext(l.t.Context(), `INSERT INTO audit_expiries (rowid, order_no, expire_at) VALUES (?, ?, 0)`, -1-n, no)
		require.NoError(l.t, err)
	}
}

// insist posts until it is answered, other than by "again". The answer may be a fault: that the
// order was closed before, say.
func (l *load) insist(path, body string) (answer map[string]any, tries int) {
	for end := time.Now().Add(killHang); time.Now().Before(end); {
		tries++
		status, answer := l.once("POST", path, body)
		if status != 0 && status != http.StatusServiceUnavailable {
			if status >= 500 {
				l.t.Errorf("%s: %d %v", path, status, answer)
			}
			return answer, tries
		}
		select {
		case <-l.ctx.Done():
			return nil, tries
		case <-time.After(50 * time.Millisecond):
		}
	}
	l.t.Errorf("%s: no answer", path)
	return nil, tries
}

// once sends a request; status 0 is none.
func (l *load) once(method, path, body string) (status int, answer map[string]any) {
	r, err := http.NewRequestWithContext(l.ctx, method, *l.url.Load()+path, strings.NewReader(body))
	if err != nil {
		l.t.Error(err)
		return 0, nil
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := l.client.Do(r)
	if err != nil {
		l.cutOff.Add(1)
		return 0, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || json.Unmarshal(text, &answer) != nil {
		l.cutOff.Add(1)
		return 0, nil
	}
	return resp.StatusCode, answer
}
