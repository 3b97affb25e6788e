package sqlstore_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/sqlstore"
	"github.com/orderwheel/orderwheel/order/sqlstore/sqlite"
)

// The test binary runs itself with these set, to be killed.
const (
	childJob  = "ORDERWHEEL_TEST_CHILD"
	childPath = "ORDERWHEEL_TEST_PATH"
)

// child is the other process. Its jobs:
//
//	before K   close order o; say "here" and stop just before the K-th step
//	after K    the same just after it
//	all        close all orders, every third paid at the same time; a line for each answer
//
// It says "done" when it came to the end, and waits for the kill.
func child(job, path string) int {
	db, c, err := openFaulty(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer db.Close()
	s := sqlstore.New(db, sqlite.Dialect{})
	kind, arg, _ := strings.Cut(job, " ")
	if kind == "all" {
		childAll(s)
	} else {
		k, _ := strconv.Atoi(arg)
		childStep(s, c, kind, k)
	}
	fmt.Println("done")
	awaitKill()
	return 0
}

// awaitKill ends when the parent kills this process, or dies itself.
func awaitKill() { _, _ = io.Copy(io.Discard, os.Stdin) }

func childStep(s *sqlstore.Store, c *faultConnector, kind string, k int) {
	stop := at(k, new(atomic.Bool), func(context.Context, string) error {
		fmt.Println("here")
		awaitKill()
		return nil
	})
	if kind == "before" {
		c.arm(faults{before: stop})
	} else {
		c.arm(faults{after: stop})
	}
	if _, err := s.Close(context.Background(), "o", due); err != nil {
		fmt.Println(err)
	}
}

func childAll(s *sqlstore.Store) {
	ctx := context.Background()
	nos, _, err := s.Unpaid(ctx, "", 1_000_000)
	if err != nil {
		fmt.Println(err)
	}
	var wg sync.WaitGroup
	var next atomic.Int64
	for range 4 {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(nos)); i = next.Add(1) - 1 {
				if i%3 == 0 {
					wg.Go(func() {
						out, err := s.Pay(ctx, payment("p-"+nos[i], nos[i]))
						fmt.Println(nos[i], out, err)
					})
				}
				r, err := s.Close(ctx, nos[i], due)
				fmt.Println(nos[i], r, err)
			}
		})
	}
	wg.Wait()
}

// killed runs a child and kills it (kill -9) when enough says so of a line of its, or when it is
// done. It returns the lines up to then.
func killed(t *testing.T, path, job string, enough func(line string) bool) (lines []string, done bool) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), childJob+"="+job, childPath+"="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer in.Close()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	for sc := bufio.NewScanner(out); !done && sc.Scan(); {
		if done = sc.Text() == "done"; done {
			break
		}
		lines = append(lines, sc.Text())
		if enough(sc.Text()) {
			break
		}
	}
	require.NoError(t, cmd.Process.Kill())
	require.ErrorContains(t, cmd.Wait(), "killed")
	return lines, done
}

func TestKilledAtEachStepOfACloseAllOrNothingStands(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before", "after"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			closed := 0
			k := 0
			for ; ; k++ {
				s, path := setupKill(t)
				s.create("o", withCoupon("c1"))
				open := dump(t, s.DB())
				require.NoError(t, s.DB().Close())

				lines, done := killed(t, path, fmt.Sprint(when, " ", k), func(string) bool { return true })
				s = newShop(t, openDB(t, path), sqlite.Dialect{})
				s.initial = map[string]int64{"a": 100, "b": 100}
				s.checkAtEnd()
				if done {
					break
				}
				require.Equal(t, []string{"here"}, lines)
				checkInvariants(t, s.DB(), s.initial)
				if s.status("o") == order.Closed {
					closed++
					require.Equal(t, order.ClosedAlready, s.close("o", due).Outcome)
				} else {
					require.Equal(t, open, dump(t, s.DB()), "nothing is half applied")
					require.Equal(t, order.ClosedNow, s.close("o", due).Outcome)
				}
				require.Equal(t, [3]int64{100, 0, 0}, s.stock("a"))
				require.Equal(t, "unused", s.coupon("c1"))
			}
			require.Equal(t, 12, k, "begin, ten statements, commit")
			require.Equal(t, map[string]int{"before": 0, "after": 1}[when], closed, "only the commit closes")
		})
	}
}

// setupKill is a filled shop and its file.
func setupKill(t *testing.T) (*shop, string) {
	path := filepath.Join(t.TempDir(), "orders.db")
	db, err := sqlite.OpenWith(t.Context(), path, sqlite.Options{Sync: sqlite.SyncNormal})
	require.NoError(t, err)
	s := newShop(t, db, sqlite.Dialect{})
	s.fill()
	return s, path
}

func TestKilledAtRandomWhatWasAnsweredStandsAndTheRestCloses(t *testing.T) {
	t.Parallel()
	const orders = 40
	rnd := newRand(t)
	path := filepath.Join(t.TempDir(), "orders.db")
	initial := map[string]int64{}
	rounds := races() / 125
	for round := range rounds {
		db, err := sqlite.OpenWith(t.Context(), path, sqlite.Options{Sync: sqlite.SyncNormal})
		require.NoError(t, err)
		s := newShop(t, db, sqlite.Dialect{})
		s.initial = initial
		nos := s.createMany(fmt.Sprintf("r%04d-", round), orders)
		require.NoError(t, db.Close())

		left, pause := 1+rnd.IntN(orders), time.Duration(rnd.IntN(3000))*time.Microsecond
		lines, done := killed(t, path, "all", func(string) bool {
			left--
			if left == 0 {
				time.Sleep(pause) // into the middle of something
			}
			return left == 0
		})
		require.False(t, done)

		db, err = sqlite.OpenWith(t.Context(), path, sqlite.Options{Sync: sqlite.SyncNormal})
		require.NoError(t, err)
		after := newShop(t, db, sqlite.Dialect{})
		checkInvariants(t, db, s.initial)
		for _, line := range lines { // what it said is committed
			no, answer, _ := strings.Cut(line, " ")
			require.Contains(t, []string{"closed <nil>", "already closed <nil>", "paid <nil>", "refunded <nil>"}, answer)
			require.NotEqual(t, order.Unpaid, after.status(no), line)
		}
		for _, no := range nos {
			require.True(t, after.close(no, due).Done())
		}
		require.Zero(t, after.count(`SELECT COUNT(*) FROM orders WHERE status = 'unpaid'`))
		checkInvariants(t, db, s.initial)
		require.NoError(t, db.Close())
	}
}
