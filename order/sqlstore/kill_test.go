package sqlstore_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/order"
	"github.com/orderwheel/orderwheel/order/sqlstore"
)

// The test binary runs itself with these set, to be killed.
const (
	childJob = "ORDERWHEEL_TEST_CHILD"
	childDB  = "ORDERWHEEL_TEST_DB"
	childDSN = "ORDERWHEEL_TEST_DSN"
)

// child is the other process. Its jobs:
//
//	before K   close order o; say "here" and stop just before the K-th step
//	after K    the same just after it
//	all        close all orders, every third paid at the same time; a line for each answer
//
// It says "done" when it came to the end, and waits for the kill.
func child(job string, b backend, dsn string) int {
	db, c, err := openFaulty(b, dsn)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer db.Close()
	s := sqlstore.New(db, b.dialect)
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
func killed(t *testing.T, b backend, dsn, job string, enough func(line string) bool) (lines []string, done bool) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), childJob+"="+job, childDB+"="+b.name, childDSN+"="+dsn)
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

// whileOpen runs do on the shop that stands at dsn, which nobody holds open before or after.
func whileOpen(t *testing.T, b backend, dsn string, do func(*shop)) {
	t.Helper()
	db, err := b.open(t.Context(), dsn)
	require.NoError(t, err)
	s := newShop(t, b, db)
	do(s)
	s.check()
	require.NoError(t, db.Close())
}

func TestKilledAtEachStepOfACloseAllOrNothingStands(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		for _, when := range []string{"before", "after"} {
			t.Run(when, func(t *testing.T) {
				t.Parallel()
				dsn := db.place(t)
				closed, k := 0, 0
				for done := false; !done; k++ {
					var open, lines []string
					whileOpen(t, db, dsn, func(s *shop) {
						s.reset()
						s.create("o", withCoupon("c1"))
						open = dump(t, s)
					})
					lines, done = killed(t, db, dsn, fmt.Sprint(when, " ", k), func(string) bool { return true })
					if done {
						break
					}
					require.Equal(t, []string{"here"}, lines)
					whileOpen(t, db, dsn, func(s *shop) {
						s.check()
						if s.status("o") == order.Closed {
							closed++
							require.Equal(t, order.ClosedAlready, s.close("o", due).Outcome)
						} else {
							require.Equal(t, open, dump(t, s), "nothing is half applied")
							require.Equal(t, order.ClosedNow, s.close("o", due).Outcome)
						}
						require.Equal(t, [3]int64{100, 0, 0}, s.stock("a"))
						require.Equal(t, "unused", s.coupon("c1"))
					})
				}
				require.Equal(t, 12, k, "begin, ten statements, commit")
				require.Equal(t, map[string]int{"before": 0, "after": 1}[when], closed, "only the commit closes")
			})
		}
	})
}

func TestKilledAtRandomWhatWasAnsweredStandsAndTheRestCloses(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db backend) {
		const orders = 40
		rnd := newRand(t)
		dsn := db.place(t)
		initial := map[string]int64{}
		for round := range races() / 125 {
			var nos []string
			whileOpen(t, db, dsn, func(s *shop) {
				s.initial = initial
				nos = s.createMany(fmt.Sprintf("r%04d-", round), orders)
			})

			left, pause := 1+rnd.IntN(orders), time.Duration(rnd.IntN(3000))*time.Microsecond
			lines, done := killed(t, db, dsn, "all", func(string) bool {
				left--
				if left == 0 {
					time.Sleep(pause) // into the middle of something
				}
				return left == 0
			})
			require.False(t, done)

			whileOpen(t, db, dsn, func(s *shop) {
				s.initial = initial
				s.check()
				for _, line := range lines { // what it said is committed
					no, answer, _ := strings.Cut(line, " ")
					require.Contains(t, []string{"closed <nil>", "already closed <nil>", "paid <nil>", "refunded <nil>"}, answer)
					require.NotEqual(t, order.Unpaid, s.status(no), line)
				}
				for _, no := range nos {
					require.True(t, s.close(no, due).Done())
				}
				require.Zero(t, s.count(`SELECT COUNT(*) FROM orders WHERE status = 'unpaid'`))
			})
		}
	})
}
