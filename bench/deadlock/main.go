// Command deadlock hangs the timing wheel of github.com/RussellLuo/timingwheel
// (its issue #53), prints the goroutines that show it, and says what happened.
//
//	go run ./bench/deadlock
//
// Exit status 0: it hung and the stacks are printed. 1: it did not hang within
// -for; try again, it is a matter of chance.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/RussellLuo/timingwheel"
)

const explanation = `
What happened. The library keeps the timers of one slot in a bucket with a lock.
When the slot's time has come, Flush takes the lock, and hands every timer that
has not expired to addOrRun, which puts it into the bucket where it belongs now,
all while Flush holds the lock.

  1. An adder reads the wheel's clock, finds that its timer belongs into bucket b,
     and loses the processor, or waits for b's lock, before it has inserted.
  2. The wheel's clock goes past that time; b is flushed and used for the next lap:
     another timer, due one lap later, is put into it.
  3. The adder goes on. It inserts, and sets the expiration of b to a time that has
     passed: so b is flushed at once, with the timer of the next lap in it.
  4. That timer has not expired. It belongs into the wheel, one lap on: into b.
     bucket.Add waits for the lock of b, which bucket.Flush, its own caller, holds.

Nothing expires any more, and each call that touches b waits with it: one after the
other, the adders hang too. The fewer slots, the shorter the lap, and the
likelier it is that a timer of the next lap lies in the bucket.
`

func main() {
	slots := flag.Int64("slots", 20, "slots of a level; 20 is what the library's examples use")
	adders := flag.Int("adders", 8, "goroutines that add timers")
	limit := flag.Duration("for", time.Minute, "give up after that")
	flag.Parse()
	// More threads than processors: the kernel takes a processor from one in the middle
	// of an insertion, as on a machine that others use too.
	threads := 4 * runtime.NumCPU()
	runtime.GOMAXPROCS(threads)

	fmt.Printf("%d adders, a tick of 1 ms, %d slots, %d threads on %d processors; delays up to two laps; at most %v\n",
		*adders, *slots, threads, runtime.NumCPU(), *limit)
	start := time.Now()
	if !hangs(*slots, *adders, *limit) {
		fmt.Printf("it did not hang within %v; try again\n", *limit)
		os.Exit(1)
	}
	stacks := stuck()
	if len(stacks) == 0 {
		fmt.Printf("nothing has expired for %v, but it waits for no lock of its own: the machine is too busy; try again\n", silence)
		os.Exit(1)
	}
	fmt.Printf("it hangs, %v after the start: nothing has expired for %v\n", time.Since(start).Round(time.Millisecond), silence)
	for _, stack := range stacks {
		fmt.Printf("\n%s\n", stack)
	}
	fmt.Print(explanation)
}

// silence is how long nothing may expire before the wheel is taken to hang.
const silence = 3 * time.Second

// maxPending keeps the adders from outrunning the wheel: one that lags behind
// the wall clock hangs less easily, since what is added is then never due soon.
const maxPending = 5000

// delay is up to two laps. Every second one is at the edge of a slot or of a
// lap, where it can happen: with even delays it happens too, only later.
func delay(rnd *rand.Rand, slots int64) time.Duration {
	ms := 1 + rnd.Int64N(2*slots)
	switch rnd.IntN(4) {
	case 0:
		ms = 1
	case 1:
		ms = slots + rnd.Int64N(2)
	}
	return time.Duration(ms) * time.Millisecond
}

// hangs keeps a wheel busy until nothing expires any more.
func hangs(slots int64, adders int, limit time.Duration) bool {
	tw := timingwheel.NewTimingWheel(time.Millisecond, slots)
	tw.Start()
	var expired, added atomic.Int64
	end := time.Now().Add(limit)
	for a := range adders {
		rnd := rand.New(rand.NewPCG(uint64(a), uint64(time.Now().UnixNano())))
		go func() {
			for time.Now().Before(end) {
				tw.AfterFunc(delay(rnd, slots), func() { expired.Add(1) })
				if added.Add(1)-expired.Load() > maxPending {
					time.Sleep(100 * time.Microsecond)
				}
			}
		}()
	}
	last, since := int64(-1), time.Now()
	for time.Now().Before(end) {
		time.Sleep(100 * time.Millisecond)
		if n := expired.Load(); n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) > silence {
			return true
		}
	}
	return false
}

// stuck is the stacks of the goroutine that waits for the lock it holds, and of
// one adder that waits with it; nil if there is none.
func stuck() []string {
	buf := make([]byte, 4<<20)
	all := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
	var flush, adder string
	for _, s := range all {
		switch {
		case strings.Contains(s, "(*bucket).Flush"):
			if !strings.Contains(s, "(*bucket).Add") {
				continue
			}
			flush = "The goroutine that flushes: Add, at the top, waits for the lock that Flush, below it, holds.\n" + s
		case strings.Contains(s, "(*bucket).Add") && adder == "":
			adder = "An adder that waits for the same lock:\n" + s
		}
	}
	if flush == "" {
		return nil
	}
	if adder == "" {
		return []string{flush}
	}
	return []string{flush, adder}
}
