package persisttest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/persist"
)

// bad is a call with a wrong argument: the error names field, value and remedy.
type bad struct {
	name string
	call func(b *bed) error
	says []string
}

var long = strings.Repeat("x", persist.MaxIDLen+1)

var badCalls = []bad{
	{"an empty id is not scheduled", func(b *bed) error {
		return b.Schedule(b.ctx, []persist.Due{{ID: "good", DueMS: past}, {ID: "", DueMS: past}})
	}, []string{"ID", "task 1", "empty", "use 1 to 256 bytes"}},
	{"an id of 257 bytes is not scheduled", func(b *bed) error {
		return b.Schedule(b.ctx, []persist.Due{{ID: "good", DueMS: past}, {ID: long, DueMS: past}})
	}, []string{"ID", "task 1", "257 bytes", "use 1 to 256 bytes"}},
	{"a due time before 1970 is not scheduled", func(b *bed) error {
		return b.Schedule(b.ctx, []persist.Due{{ID: "good", DueMS: past}, {ID: "early", DueMS: -1}})
	}, []string{"DueMS", "task 1", "-1", "use"}},
	{"a due time after 9999 is not scheduled", func(b *bed) error {
		return b.Schedule(b.ctx, []persist.Due{{ID: "good", DueMS: past}, {ID: "late", DueMS: persist.MaxDueMS + 1}})
	}, []string{"DueMS", "task 1", "253402300800000", "use", "253402300799999"}},
	{"every fault of a list is reported", func(b *bed) error {
		return b.Schedule(b.ctx, []persist.Due{{ID: "", DueMS: -1}, {ID: "good", DueMS: past}, {ID: long, DueMS: -2}})
	}, []string{"ID of task 0", "DueMS of task 0 is -1", "ID of task 2", "DueMS of task 2 is -2"}},
	{"a fault in a later chunk is found before the first is written", func(b *bed) error {
		list := []persist.Due{}
		for _, id := range names("good", many) {
			list = append(list, persist.Due{ID: id, DueMS: past})
		}
		return b.Schedule(b.ctx, append(list, persist.Due{ID: "early", DueMS: -1}))
	}, []string{"DueMS of task 2500", "-1"}},

	{"an empty id is not cancelled", func(b *bed) error { _, err := b.Cancel(b.ctx, []string{"there", ""}); return err },
		[]string{"ID", "task 1", "empty", "use"}},
	{"an empty id is not requeued", func(b *bed) error { _, err := b.Requeue(b.ctx, []string{"dead", ""}); return err },
		[]string{"ID", "task 1", "empty", "use"}},
	{"an empty id is not ensured", func(b *bed) error {
		_, err := b.Ensure(b.ctx, []persist.Due{{ID: "there", DueMS: past}, {DueMS: past}})
		return err
	}, []string{"ID", "task 1", "empty", "use"}},
	{"a time before 1970 is not ensured", func(b *bed) error {
		_, err := b.Ensure(b.ctx, []persist.Due{{ID: "good", DueMS: -1}})
		return err
	}, []string{"DueMS", "task 0", "-1", "use"}},
	{"nobody without a name takes the turn", func(b *bed) error { _, _, err := b.TakeTurn(b.ctx, "", time.Hour, true); return err },
		[]string{"owner", "use"}},
	{"a turn has a time", func(b *bed) error { _, _, err := b.TakeTurn(b.ctx, "me", 0, true); return err },
		[]string{"turn's time", "0s", "must be"}},
	{"a turn's rest has a time", func(b *bed) error { _, err := b.EndTurn(b.ctx, "me", 0); return err },
		[]string{"turn's time", "0s", "must be"}},
	{"an empty id is not discarded", func(b *bed) error { _, err := b.Discard(b.ctx, []string{"dead", ""}); return err },
		[]string{"ID", "task 1", "empty", "use"}},
	{"an id of 257 bytes is not looked up", func(b *bed) error { _, err := b.Lookup(b.ctx, []string{"there", long}); return err },
		[]string{"ID", "task 1", "257 bytes", "use"}},

	badToken(""), badToken("-"), badToken("a b"), badToken("a\n"), badToken("Ä"), badToken(strings.Repeat("t", 65)),
	{"a claim has a lease", func(b *bed) error { _, err := b.Claim(b.ctx, "new", []string{"there"}, 0, 0); return err },
		[]string{"lease", "0s", "must be"}},
	{"a lease is not negative", func(b *bed) error {
		_, err := b.Claim(b.ctx, "new", []string{"there"}, -time.Second, 0)
		return err
	}, []string{"lease", "-1s", "must be"}},
	{"a limit of attempts is not negative", func(b *bed) error {
		_, err := b.Claim(b.ctx, "new", []string{"there"}, time.Hour, -1)
		return err
	}, []string{"maxAttempts", "-1", "0 for no limit"}},
	{"a renewal has a lease", func(b *bed) error { _, err := b.Renew(b.ctx, leases(token, "running"), 0); return err },
		[]string{"lease", "0s", "must be"}},
	{"a retry has a time that can be", func(b *bed) error {
		l := persist.Lease{ID: "running", Token: token}
		_, err := b.Retry(b.ctx, []persist.Retry{{Lease: l, DueMS: past}, {Lease: l, DueMS: -1}, {Lease: l, DueMS: persist.MaxDueMS + 1}})
		return err
	}, []string{"DueMS of task 1", "-1", "DueMS of task 2", "253402300800000", "use"}},

	{"a reap has a limit", func(b *bed) error { _, err := b.Reap(b.ctx, 0); return err }, []string{"limit", "0", "at least 1"}},
	{"a limit of a reap is not negative", func(b *bed) error { _, err := b.Reap(b.ctx, -1); return err }, []string{"limit", "-1", "at least 1"}},
	{"a window has a limit", func(b *bed) error {
		page, err := b.Window(b.ctx, persist.Cursor{DueMS: 7, ID: "c"}, future, 0)
		if (page.Next != persist.Cursor{DueMS: 7, ID: "c"}) {
			return errors.New("the cursor has moved")
		}
		return err
	}, []string{"limit", "0", "at least 1"}},
	{"a page of the dead has a limit", func(b *bed) error {
		page, err := b.Dead(b.ctx, persist.Cursor{DueMS: 7, ID: "c"}, -1)
		if (page.Next != persist.Cursor{DueMS: 7, ID: "c"}) {
			return errors.New("the cursor has moved")
		}
		return err
	}, []string{"limit", "-1", "at least 1"}},
}

func badToken(token string) bad {
	return bad{"a token is one word, not " + strings.ToValidUTF8(token, "?"), func(b *bed) error {
		_, err := b.Claim(b.ctx, token, []string{"there"}, time.Hour, 0)
		return err
	}, []string{"token", "use"}}
}

var inputs = append([]conformance{
	{"wrong arguments are refused, and nothing is written", func(t *testing.T, b *bed) {
		ids := b.oneOfEach(t)
		before := b.lookup(t, ids...)
		for _, bad := range badCalls {
			t.Run(bad.name, func(t *testing.T) {
				err := bad.call(b)
				require.ErrorIs(t, err, persist.ErrInvalid)
				for _, part := range bad.says {
					require.ErrorContains(t, err, part)
				}
				require.Equal(t, before, b.lookup(t, ids...))
				require.Equal(t, persist.Depth{Due: 1, Running: 1, Dead: 1}, b.depth(t))
			})
		}
	}},
	{"the error for a list in which all is wrong is short", func(t *testing.T, b *bed) {
		err := b.Schedule(b.ctx, make([]persist.Due, 100_000))
		require.ErrorIs(t, err, persist.ErrInvalid)
		require.Less(t, len(err.Error()), 2000)
	}},
	{"an id that cannot be is gone, and its runs are refused", func(t *testing.T, b *bed) {
		for _, id := range []string{"", long} {
			require.Equal(t, persist.Claim{ID: id, State: persist.Gone}, b.claim(t, token, time.Hour, id).Claims[0])
			require.Equal(t, persist.Settlement{ID: id}, b.ack(t, token, id)[0])
			require.Equal(t, persist.Settlement{ID: id}, b.retry(t, persist.Retry{Lease: persist.Lease{ID: id, Token: token}}))
			require.Equal(t, persist.Settlement{ID: id}, b.bury(t, token, "none", id)[0])
			require.Equal(t, []bool{false}, b.renew(t, token, time.Hour, id))
		}
		b.requireEmpty(t)
	}},
	{"a token may be any word", func(t *testing.T, b *bed) {
		for _, token := range []string{"t", "--", "0", "!~/%#", "{a}", strings.Repeat("t", 64)} {
			b.schedule(t, past, "x")
			b.take(t, token, "x")
			require.Equal(t, persist.Settled, b.ack(t, token, "x")[0].State, token)
		}
	}},
	{"a lease is rounded up to a millisecond", func(t *testing.T, b *bed) {
		for lease, ms := range map[time.Duration]int64{1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, time.Hour - 1: 3_600_000} {
			b.schedule(t, past, "x")
			claims := b.claim(t, token, lease, "x")
			require.Equal(t, claims.NowMS+ms, b.lookup(t, "x")[0].LeaseMS, "%v", lease)
			b.ack(t, token, "x")
		}
	}},
}, endedCalls...)

// oneOfEach leaves an id due, one running and one dead.
func (b *bed) oneOfEach(t *testing.T) (ids []string) {
	b.schedule(t, past, "there")
	b.start(t, "running")
	b.kill(t, "dead")
	return []string{"there", "running", "dead", "good"}
}

// endedCalls: a call whose ctx has ended returns its error and does nothing. One made
// with a list of wrong arguments as well may say either.
var endedCalls = []conformance{
	{"a call whose ctx has ended does nothing", func(t *testing.T, b *bed) {
		ids := b.oneOfEach(t)
		before := b.lookup(t, ids...)
		ctx, cancel := context.WithCancel(b.ctx)
		cancel()
		for name, call := range map[string]func() error{
			"schedule": func() error { return b.Schedule(ctx, []persist.Due{{ID: "good", DueMS: past}}) },
			"cancel":   func() error { _, err := b.Cancel(ctx, []string{"there"}); return err },
			"claim":    func() error { _, err := b.Claim(ctx, "new", []string{"there"}, time.Hour, 0); return err },
			"ack":      func() error { _, err := b.Ack(ctx, leases(token, "running")); return err },
			"retry": func() error {
				_, err := b.Retry(ctx, []persist.Retry{{Lease: persist.Lease{ID: "running", Token: token}, DueMS: past}})
				return err
			},
			"bury": func() error {
				_, err := b.Bury(ctx, []persist.Burial{{Lease: persist.Lease{ID: "running", Token: token}}})
				return err
			},
			"renew":   func() error { _, err := b.Renew(ctx, leases(token, "running"), 2*time.Hour); return err },
			"reap":    func() error { _, err := b.Reap(ctx, 10); return err },
			"requeue": func() error { _, err := b.Requeue(ctx, []string{"dead"}); return err },
			"discard": func() error { _, err := b.Discard(ctx, []string{"dead"}); return err },
			"ensure":  func() error { _, err := b.Ensure(ctx, []persist.Due{{ID: "good", DueMS: past}}); return err },
			"turn":    func() error { _, _, err := b.TakeTurn(ctx, "me", time.Hour, true); return err },
			"window":  func() error { _, err := b.Window(ctx, persist.Cursor{}, future, 10); return err },
			"dead":    func() error { _, err := b.Dead(ctx, persist.Cursor{}, 10); return err },
			"lookup":  func() error { _, err := b.Lookup(ctx, ids); return err },
			"depth":   func() error { _, err := b.Depth(ctx); return err },
			"now":     func() error { _, err := b.Now(ctx); return err },
			"check":   func() error { _, err := b.Check(ctx); return err },
		} {
			t.Run(name, func(t *testing.T) {
				err := call()
				require.ErrorIs(t, err, context.Canceled)
				require.NotErrorIs(t, err, persist.ErrUnknownOutcome, "nothing was sent")
				require.Equal(t, before, b.lookup(t, ids...))
			})
		}
	}},
	{"check finds a store that works, and leaves its tasks alone", func(t *testing.T, b *bed) {
		ids := b.oneOfEach(t)
		before := b.lookup(t, ids...)
		_, err := b.Check(b.ctx)
		require.NoError(t, err)
		require.Equal(t, before, b.lookup(t, ids...))
	}},
}
