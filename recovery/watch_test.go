package recovery

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/internal/arming"
	"github.com/orderwheel/orderwheel/wheel"
)

// well is a sighting of a wheel with nothing to do.
var well = sighting{nextMS: math.MaxInt64, nowMS: 1_000_000}

func TestAWheelIsJudgedByWhatItDoes(t *testing.T) {
	t.Parallel()
	at := func(change func(i int, s *sighting)) func(int) sighting {
		return func(i int) sighting {
			s := well
			s.nowMS += int64(i) * lookEvery.Milliseconds()
			change(i, &s)
			return s
		}
	}
	for name, c := range map[string]struct {
		see  func(i int) sighting
		want string
	}{
		"nothing to do": {at(func(int, *sighting) {}), ""},
		"it carries, however much waits": {at(func(i int, s *sighting) {
			s.Waiting, s.Carried = 1000, uint64(i)
		}), ""},
		"it does not carry":  {at(func(_ int, s *sighting) { s.Waiting = 1 }), "to be armed"},
		"it does not answer": {at(func(_ int, s *sighting) { s.awaiting = true }), "answer"},
		"late for a moment, again and again": {at(func(i int, s *sighting) {
			if i%7 > 0 {
				s.nextMS = 1
			}
			s.Fired = uint64(i / 7)
		}), ""},
		"late, and it fires":                   {at(func(i int, s *sighting) { s.nextMS, s.Fired = int64(i), uint64(i) }), ""},
		"late, and fires nothing":              {at(func(i int, s *sighting) { s.nextMS = int64(i) }), "does not leave"},
		"it fires all but the one that hangs":  {at(func(i int, s *sighting) { s.nextMS, s.Fired = 1, uint64(i) }), "does not leave"},
		"a little late is within what it says": {at(func(i int, s *sighting) { s.nextMS = s.nowMS - lateMS }), ""},
		"the sweep finds what it should have fired": {at(func(i int, s *sighting) {
			s.Missed = uint64(i / 4)
		}), "does not leave"},
		"now and then the sweep is faster": {at(func(i int, s *sighting) {
			s.Missed, s.Fired = uint64(i/4), uint64(i/3)
		}), ""},
		"the clock stepped back": {at(func(i int, s *sighting) {
			if i > 10 {
				s.nowMS -= 3_600_000
			}
		}), "stepped back by 59m59"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJudge(time.Second, 0)
			reason := ""
			for i := 0; i < 1000 && reason == ""; i++ {
				reason = j.see(c.see(i))
			}
			if c.want == "" {
				require.Empty(t, reason)
			} else {
				require.Contains(t, reason, c.want)
			}
		})
	}
}

// A process that was held up for an hour sees all late at once.
func TestOneLookAfterALongPauseCondemnsNoWheel(t *testing.T) {
	t.Parallel()
	j := newJudge(time.Second, 0)
	require.Empty(t, j.see(well))
	s := well
	s.nowMS += 3_600_000
	s.nextMS, s.Waiting, s.awaiting = well.nowMS, 5, true
	require.Empty(t, j.see(s))
}

// standing is a wheel of which some part does not go.
type standing struct {
	*armed
	part string
	free chan struct{} // what hangs goes on when it is closed
	fire func([]wheel.Due)
	once sync.Once
}

func newStanding(part string) *standing {
	return &standing{armed: newArmed(), part: part, free: make(chan struct{})}
}

func (s *standing) hang(part string) {
	if s.part == part {
		<-s.free
	}
}

func (s *standing) Schedule(id string, dueMS int64) {
	s.hang("schedule")
	s.armed.Schedule(id, dueMS)
}

func (s *standing) NextDue() (dueMS int64, ok bool) {
	s.hang("next due")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ms := range s.due {
		if !ok || ms < dueMS {
			dueMS, ok = ms, true
		}
	}
	return dueMS, ok
}

func (s *standing) Start(fire func([]wheel.Due)) { s.fire = fire }
func (s *standing) Stop()                        { s.hang("stop"); s.hang("schedule"); s.hang("next due") }
func (s *standing) release()                     { s.once.Do(func() { close(s.free) }) }

func TestAWheelThatStandsStillIsReplacedAndRebuiltFromTheStore(t *testing.T) {
	for _, part := range []string{"schedule", "next due", "driver"} {
		t.Run(part, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				old := newStanding(part)
				r := setup(t, func(c *Config) { c.Board = arming.New(old) })
				t.Cleanup(old.release)
				nowMS := time.Now().UnixMilli()
				for i := range 3000 {
					r.store.put(fmt.Sprintf("%06d", i), nowMS+int64(i)*20)
				}
				r.Start()
				go func() { require.NoError(t, r.Rebuild(t.Context())) }()
				later(15 * time.Second)
				require.EqualValues(t, 1, r.Stats().WheelReplaced)
				require.Equal(t, 1, strings.Count(r.log.String(), "wheel_replaced"))
				require.Empty(t, r.Problems(), "it is mended")
				nowMS = time.Now().UnixMilli()
				r.requireArmed(t, nowMS, nowMS+3_600_000, nowMS+3_600_000)
				_, again := r.cfg.Board.Wheel().(*standing)
				require.False(t, again)
			})
		})
	}
}

// A factory whose wheels all hang must not fill the memory with them.
func TestWheelsThatHangAreReplacedOnlySoOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made []*standing
		r := setup(t, func(c *Config) {
			c.NewWheel = func() wheel.Wheel {
				made = append(made, newStanding("schedule"))
				return made[len(made)-1]
			}
			c.Board = arming.New(c.NewWheel())
		})
		t.Cleanup(func() {
			for _, w := range made {
				w.release()
			}
		})
		r.store.put("A", time.Now().UnixMilli()+3_500_000)
		r.Start()
		go func() { _ = r.Rebuild(t.Context()) }()
		later(10 * time.Minute)
		require.Len(t, made, 1+maxHanging)
		require.EqualValues(t, maxHanging, r.Stats().WheelReplaced)
		require.Contains(t, fmt.Sprint(r.Problems()), "is not replaced")
		made[len(made)-1].release() // the last one goes on by itself
		later(time.Minute)
		require.NotContains(t, fmt.Sprint(r.Problems()), "stands still")
	})
}

// A wheel stands still until its clock has caught up: for an hour, here.
func TestAfterAStepBackOfTheStoresClockAnotherWheelFiresOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clock *Clock
		r := setup(t, func(c *Config) {
			clock = c.Clock
			c.NewWheel = func() wheel.Wheel { return wheel.New(clock.NowMS) }
			c.Board = arming.New(c.NewWheel())
		})
		fired := make(chan int64, 10)
		r.fired = func(due []wheel.Due) { fired <- clock.NowMS() - due[0].DueMS }
		r.Start()
		require.NoError(t, r.Rebuild(t.Context()))
		r.store.set(func() { r.store.offset = -time.Hour })
		later(3 * time.Second)
		r.cfg.Board.UserScheduled("A", clock.NowMS()+1000)
		later(1100 * time.Millisecond)
		require.Len(t, fired, 1)
		require.LessOrEqual(t, <-fired, int64(1))
		require.EqualValues(t, 1, r.Stats().WheelReplaced)
	})
}
