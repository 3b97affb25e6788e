package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/sqlstore"
)

// twoKinds is a shop whose closes leave two messages.
func twoKinds(s *shop) *shop {
	return s.with(sqlstore.Options{Outbox: []string{"stock", "preauth"}})
}

// inbox records what was sent to it, and fails for the kinds of fail.
type inbox struct {
	got  []string
	fail map[string]error
}

func (in *inbox) take(_ context.Context, m sqlstore.Message) error {
	in.got = append(in.got, fmt.Sprint(m.OrderNo, " ", m.Kind, " ", m.Reason, " ", m.At.UnixMilli()))
	return in.fail[m.Kind]
}

func (s *shop) unsent() (ids []string, dueMS []int64) {
	s.t.Helper()
	ids, dueMS, err := s.Outbox().Unpaid(s.t.Context(), "", 100)
	require.NoError(s.t, err)
	return ids, dueMS
}

func TestEachCloseLeavesItsMessagesAndNothingElseDoes(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := twoKinds(setup(t, db))
		for _, no := range []string{"paid", "open", "timeout", "abandoned"} {
			s.create(no)
		}
		s.pay(payment("p", "paid"))
		s.close("paid", due)
		s.close("open", due.Add(-ms))
		require.Zero(t, s.count(`SELECT COUNT(*) FROM outbox`))
		s.close("timeout", due)
		s.close("timeout", due.Add(ms))
		s.abandon("abandoned", t0)
		s.close("abandoned", due)
		require.Equal(t, 4, s.count(`SELECT COUNT(*) FROM outbox`))

		ids, dueMS := s.unsent()
		require.Equal(t, []string{"abandoned", "timeout"}, ids)
		require.Equal(t, []int64{t0.UnixMilli(), due.UnixMilli()}, dueMS)
		var in inbox
		for _, id := range []string{"timeout", "abandoned", "paid", "none"} {
			require.NoError(t, s.Outbox().Relay(t.Context(), id, due, in.take))
		}
		require.Equal(t, []string{
			fmt.Sprint("timeout preauth timeout ", due.UnixMilli()), fmt.Sprint("timeout stock timeout ", due.UnixMilli()),
			fmt.Sprint("abandoned preauth abandoned ", t0.UnixMilli()), fmt.Sprint("abandoned stock abandoned ", t0.UnixMilli()),
		}, in.got)
		ids, _ = s.unsent()
		require.Empty(t, ids)
		require.NoError(t, s.Outbox().Relay(t.Context(), "timeout", due, in.take))
		require.Len(t, in.got, 4, "what is sent is not sent again")
	})
}

func TestAMessageThatFailsHoldsUpNoOtherAndIsSentAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := twoKinds(setup(t, db))
		s.create("o")
		s.close("o", due)
		in := inbox{fail: map[string]error{"preauth": errInjected}}
		err := s.Outbox().Relay(t.Context(), "o", due, in.take)
		require.ErrorIs(t, err, errInjected)
		require.ErrorContains(t, err, `relay "preauth" of order "o"`)
		require.NotContains(t, err.Error(), "stock")
		ids, _ := s.unsent()
		require.Equal(t, []string{"o"}, ids)

		in.fail, in.got = nil, nil
		require.NoError(t, s.Outbox().Relay(t.Context(), "o", due, in.take))
		require.Equal(t, []string{fmt.Sprint("o preauth timeout ", due.UnixMilli())}, in.got)
	})
}

// Fail each step of a relay in turn: what was not noted is sent again, and nothing is left out.
func TestARelayThatIsCutOffSendsAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		for k := 0; ; k++ {
			s, c := setupFaulty(t, db)
			s = twoKinds(s)
			s.create("o")
			s.close("o", due)
			var in inbox
			var reached atomic.Bool
			c.arm(faults{before: at(k, &reached, func(context.Context, string) error { return errInjected })})
			err := s.Outbox().Relay(t.Context(), "o", due, in.take)
			c.disarm()
			if !reached.Load() {
				require.NoError(t, err)
				require.Equal(t, 1+2*3, k, "a query, and for each message begin, update, commit")
				return
			}
			require.ErrorIs(t, err, errInjected)
			first := len(in.got)
			require.NoError(t, s.Outbox().Relay(t.Context(), "o", due, in.take))
			require.Subset(t, in.got, []string{
				fmt.Sprint("o preauth timeout ", due.UnixMilli()), fmt.Sprint("o stock timeout ", due.UnixMilli())})
			require.LessOrEqual(t, len(in.got), first+2)
			ids, _ := s.unsent()
			require.Empty(t, ids)
		}
	})
}

func TestUnsentMessagesArePagedByOrder(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := twoKinds(setup(t, db))
		want := []string{}
		for i := range 7 {
			no := fmt.Sprint("o", i)
			s.create(no)
			s.close(no, due)
			want = append(want, no)
		}
		var got []string
		for after := ""; ; {
			ids, dueMS, err := s.Outbox().Unpaid(t.Context(), after, 3)
			require.NoError(t, err)
			require.Len(t, dueMS, len(ids))
			got = append(got, ids...)
			if len(ids) < 3 {
				break
			}
			after = ids[2]
		}
		require.Equal(t, want, got)
		_, _, err := s.Outbox().Unpaid(t.Context(), "", 0)
		require.ErrorIs(t, err, order.ErrInvalid)
		require.ErrorIs(t, s.Outbox().Relay(t.Context(), "o1", t0.AddDate(-999, 0, 0), (&inbox{}).take), order.ErrInvalid)
	})
}

func TestAnUnpaidOrderThatHasAMessageOfItsCloseIsLeftAlone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		s := twoKinds(setup(t, db))
		s.create("o")
		s.exec(`INSERT INTO outbox (order_no, kind, reason, at) VALUES ('o', 'stock', 'timeout', 0)`)
		before := dump(t, s)
		_, err := s.Close(t.Context(), "o", due)
		require.ErrorIs(t, err, order.ErrInconsistency)
		require.ErrorContains(t, err, `close order "o"`)
		require.Equal(t, before, dump(t, s))
		s.exec(`DELETE FROM outbox`)
		require.Equal(t, order.ClosedNow, s.close("o", due).Outcome)
	})
}

func TestTheKindsOfTheOutboxAreChecked(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 65)
	_, err := sqlstore.NewWith(nil, nil, sqlstore.Options{Outbox: []string{"a", "", "a", long}})
	require.True(t, errors.Is(err, order.ErrInvalid))
	for _, says := range []string{`Options.Outbox[1] is "": give 1 to`, `Options.Outbox[2] is "a": name each kind once`,
		`Options.Outbox[3] is "` + long + `": give at most 64 bytes`} {
		require.ErrorContains(t, err, says)
	}
	_, err = sqlstore.NewWith(nil, nil, sqlstore.Options{Outbox: make([]string, 17)})
	require.ErrorContains(t, err, "Options.Outbox is a list of 17: give at most 16 kinds")
}
