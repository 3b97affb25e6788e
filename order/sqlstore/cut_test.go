package sqlstore_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order"
)

// cutter stands between the store and its server, and cuts all connections at what comes next.
type cutter struct {
	t      *testing.T
	l      net.Listener
	server string
	next   atomic.Pointer[cut]
	hold   func() // called where an answer is withheld

	mu    sync.Mutex
	conns []net.Conn
	wg    sync.WaitGroup
}

type cut string

// Where a cut is made. Of what a connection carries one message is lost at least.
const (
	atRequest cut = "before the request has reached the server"
	atAnswer  cut = "before the answer has reached the store"

	// No cut: the answer is withheld, and the store waits.
	withheld cut = "the answer is withheld"
)

func newCutter(t *testing.T, server string) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cutter{t: t, l: l, server: server}
	c.wg.Go(c.serve)
	t.Cleanup(func() {
		_ = l.Close()
		c.cutAll()
		c.wg.Wait()
	})
	return c
}

func (c *cutter) serve() {
	for {
		store, err := c.l.Accept()
		if err != nil {
			return // closed
		}
		server, err := net.Dial("tcp", c.server)
		if err != nil {
			_ = store.Close()
			continue
		}
		c.mu.Lock()
		c.conns = append(c.conns, store, server)
		c.mu.Unlock()
		c.wg.Go(func() { c.carry(server, store, atRequest) })
		c.wg.Go(func() { c.carry(store, server, atAnswer) })
	}
}

// carry copies from one side to the other, until a cut of this kind is due.
func (c *cutter) carry(to, from net.Conn, here cut) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if n > 0 {
			if next := c.next.Load(); next != nil && *next == here {
				c.next.Store(nil)
				c.cutAll()
				return
			}
			if next := c.next.Load(); next != nil && *next == withheld && here == atAnswer {
				c.next.Store(nil)
				c.hold()
			} else if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return // io.EOF, or cut
		}
	}
}

func (c *cutter) cutAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

// setupCut is a shop whose connections can be cut.
func setupCut(t *testing.T, b backend) (*shop, *faultConnector, *cutter) {
	t.Helper()
	var wire *cutter
	served := b.served
	b.place = func(t testing.TB) string {
		d := served(t)
		wire = newCutter(t.(*testing.T), d.Server.Addr())
		return d.DSNAt(wire.l.Addr().String())
	}
	s, c := setupFaulty(t, b)
	return s, c, wire
}

// Each step of a close, in turn, is where its connection ends. All but a commit are run again by the
// store itself.
func TestAConnectionThatIsCutAtAStepAppliesAllOrNothing(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db backend) {
		for _, where := range []cut{atRequest, atAnswer} {
			t.Run(string(where), func(t *testing.T) {
				t.Parallel()
				s, c, wire := setupCut(t, db)
				s.create("o", withCoupon("c1"))
				require.Equal(t, order.ClosedNow, s.close("o", due).Outcome)
				after := dump(t, s)

				steps := 0
				for {
					s.reset()
					s.create("o", withCoupon("c1"))
					before := dump(t, s)
					var reached atomic.Bool
					var last string
					c.arm(faults{before: at(steps, &reached, func(_ context.Context, step string) error {
						last = step
						wire.next.Store(&where)
						return nil
					})})
					_, err := s.Close(t.Context(), "o", due)
					c.disarm()
					if !reached.Load() {
						require.NoError(t, err)
						break
					}
					steps++
					now := dump(t, s)
					switch {
					case last == "commit":
						require.ErrorIs(t, err, order.ErrUnknownOutcome)
						require.Equal(t, map[cut][]string{atRequest: before, atAnswer: after}[where], now)
					default: // it ran again by another connection
						require.NoError(t, err, last)
						require.Equal(t, after, now)
					}
					require.True(t, s.close("o", due).Done())
					require.Equal(t, after, dump(t, s), "effects once")
				}
				require.Equal(t, 12, steps, "begin, ten statements, commit")
			})
		}
	})
}

// A customer hangs up while the server's answer to a commit is on its way. (The driver of MySQL waits for
// it all the same.)
func TestACtxThatEndsBeforeTheAnswerToACommitDoesNotDenyIt(t *testing.T) {
	t.Parallel()
	s, c, wire := setupCut(t, named("postgres"))
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	wire.hold = hangUp
	c.arm(faults{before: func(_ context.Context, step string) error {
		if step == "commit" {
			next := withheld
			wire.next.Store(&next)
		}
		return nil
	}})
	err := s.Create(ctx, newOrder("o"), t0)
	c.disarm()
	require.ErrorIs(t, err, order.ErrUnknownOutcome)
	require.ErrorIs(t, s.Create(t.Context(), newOrder("o"), t0), order.ErrDuplicate, "it stands")
}

// The pool holds connections that the server, or something between, has closed meanwhile.
func TestConnectionsThatWereCutWhileIdleCostNoCall(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db backend) {
		s, _, wire := setupCut(t, db)
		for i, no := range s.createMany("o", 5) {
			wire.cutAll()
			require.Equal(t, order.ClosedNow, s.close(no, due).Outcome)
			if i%2 == 0 {
				wire.cutAll()
			}
			_, _, err := s.Unpaid(t.Context(), "", 10)
			require.NoError(t, err)
		}
	})
}

// A server that is killed and comes back has what it had answered.
func TestAServerThatIsKilledComesBackWithWhatItAnswered(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db backend) {
		server := db.private(t)
		store, err := db.open(t.Context(), server.DSN(db.initial))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		s := newShop(t, db, store)
		nos := s.createMany("o", 200)
		var closed sync.Map
		var wg sync.WaitGroup
		work := make(chan string, len(nos))
		for _, no := range nos {
			work <- no
		}
		close(work)
		var done atomic.Int64
		half := make(chan struct{})
		for range 8 {
			wg.Go(func() {
				for no := range work {
					if r, err := s.Close(context.Background(), no, due); err == nil && r.Outcome == order.ClosedNow {
						closed.Store(no, true)
					}
					if done.Add(1) == int64(len(nos)/2) {
						close(half)
					}
				}
			})
		}
		<-half
		server.Kill()
		wg.Wait()
		require.NoError(t, server.Restart(t.Context()))
		s.check()
		answered := 0
		closed.Range(func(no, _ any) bool {
			answered++
			require.Equal(t, order.Closed, s.status(no.(string)))
			return true
		})
		t.Logf("%d of %d were answered before the kill", answered, len(nos))
		for _, no := range nos {
			require.True(t, s.close(no, due).Done())
		}
		s.check()
	})
}
