package faultproxy

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Clients count while everything goes wrong at random, and the held requests go
// when they may. There is one sum: what the server has counted is what was executed. A
// failed run is repeated, but for the order of its clients, by
//
//	ORDERWHEEL_SEED=42 go test -run TestRandom ./internal/faultproxy
func TestRandomFaultsHitWholeCommands(t *testing.T) {
	r := setup(t)
	seed := rand.Uint64()
	if s := os.Getenv("ORDERWHEEL_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err, "ORDERWHEEL_SEED")
	}
	t.Logf("ORDERWHEEL_SEED=%d", seed)
	var all []Action
	for f := Pass; f <= HoldReply; f++ {
		all = append(all, Action{Fault: f, Reply: "-BUSY wait\r\n"})
	}
	all = append(all, Action{DelayRequest: time.Millisecond}, Action{DelayReply: time.Millisecond})
	r.SetRule(Random(seed, 0.3, all...))
	r.SetWelcome(func(n int) Welcome { return map[int]Welcome{7: CutAtOnce, 11: HangAtOnce}[n%13] })

	const clients, conns = 4, 40
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range conns {
				r.count(t)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for over := false; !over; {
		select {
		case <-done:
			over = true
		case <-time.After(time.Millisecond): // late, by any number of requests
		}
		r.ReleaseHeld()
	}
	require.NoError(t, r.Normal())
	r.CutAll()
	r.await(t, func(c Counts) bool { r.ReleaseHeld(); return c.Open == 0 })

	got := r.Counts()
	require.Equal(t, got.Sent, got.Executed, "%+v", got)
	r.has(t, "n", fmt.Sprint(got.Executed))
	require.LessOrEqual(t, got.Answered, got.Executed+got.MadeUp)
	require.Zero(t, got.Malformed)
	t.Logf("%+v", got)
}

// count asks for INCR on one connection, ten at a time, until it gives way. What
// it hears is whole, or made up, or is nothing.
func (r rig) count(t *testing.T) {
	conn, err := net.Dial("tcp", r.Addr())
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Millisecond)) // some of it hangs
	in := newReader(conn, false)
	last := 0
	for range 5 {
		for range 10 {
			if _, err := fmt.Fprint(conn, "INCR n\r\n"); err != nil {
				return
			}
		}
		for range 10 {
			m, err := in.next()
			if err != nil {
				return
			}
			if string(m) == "-BUSY wait\r\n" {
				continue
			}
			var n int
			if _, err := fmt.Sscanf(string(m), ":%d\r\n", &n); err != nil || n <= last {
				t.Errorf("%q after %d", m, last)
			}
			last = n
		}
	}
}
