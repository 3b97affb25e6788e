package arming

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/orderwheel/orderwheel/wheel"
)

// armed is a wheel that only remembers.
type armed struct {
	mu  sync.Mutex
	due map[string]int64
}

func (a *armed) Schedule(id string, dueMS int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.due[id] = dueMS
}

func (a *armed) Cancel(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.due[id]
	delete(a.due, id)
	return ok
}
func (a *armed) Len() int                { return len(a.due) }
func (a *armed) NextDue() (int64, bool)  { return 0, false }
func (a *armed) Start(func([]wheel.Due)) {}
func (a *armed) Stop()                   {}

func setup(t *testing.T) (*Board, *armed) {
	w := &armed{due: map[string]int64{}}
	b := New(w)
	b.Start()
	t.Cleanup(func() { require.NoError(t, b.Stop(context.Background())) })
	return b, w
}

// knows is what the wheel has armed, once it has been told all.
func knows(t *testing.T, b *Board, w *armed) map[string]int64 {
	require.NoError(t, b.Drain(context.Background()))
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.due)
}

func TestAnAnswerToAnOlderQuestionArmsNothing(t *testing.T) {
	t.Parallel()
	b, w := setup(t)
	before := b.Ask()
	b.UserScheduled("A", 5)
	after := b.Ask()
	require.False(t, b.Arm(before, "A", 9))
	require.EqualValues(t, 5, knows(t, b, w)["A"])
	require.True(t, b.Arm(before, "B", 9), "another id is not concerned")
	require.True(t, b.Arm(after, "A", 7))
	require.EqualValues(t, 7, knows(t, b, w)["A"])
	b.End(before)
	require.True(t, b.Arm(after, "A", 8))
	b.End(after)
}

func TestAnAnswerToAnOlderQuestionDoesNotUndoACancel(t *testing.T) {
	t.Parallel()
	b, w := setup(t)
	b.UserScheduled("A", 5)
	ticket := b.Ask()
	b.UserCancelled("A")
	require.False(t, b.Arm(ticket, "A", 5))
	require.Empty(t, knows(t, b, w))
	b.End(ticket)
}

func TestMissedDisarmsOnlyWhatNobodyHasArmedSince(t *testing.T) {
	t.Parallel()
	b, w := setup(t)
	for _, id := range []string{"moved by the user", "retried", "missed"} {
		b.UserScheduled(id, 5)
	}
	page := b.Ask()
	b.UserScheduled("moved by the user", 99)
	later := b.Ask()
	require.True(t, b.Arm(later, "retried", 99))
	for _, id := range []string{"moved by the user", "retried", "missed", "never armed"} {
		b.Missed(page, id)
	}
	require.Equal(t, map[string]int64{"moved by the user": 99, "retried": 99}, knows(t, b, w))
	require.EqualValues(t, 1, b.MissedCount())
	b.End(page)
	b.End(later)
}

// A wheel that hangs holds up nobody who decides, and what is decided waits in
// bounds.
func TestAWheelThatHangsHoldsUpOnlyItsCarrier(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	b := New(hanging{armed: &armed{due: map[string]int64{}}, release: release})
	b.Start()
	ticket := b.Ask()
	for i := range maxQueue + 10 {
		b.UserScheduled("A", int64(i))
	}
	require.False(t, b.Arm(ticket, "A", 1))
	b.End(ticket)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, b.Drain(ctx), context.DeadlineExceeded)
	require.GreaterOrEqual(t, b.Waiting(), maxQueue)
	require.LessOrEqual(t, b.Waiting(), 2*maxQueue)
	require.ErrorIs(t, b.Stop(ctx), context.DeadlineExceeded)
	close(release)
	require.NoError(t, b.Stop(t.Context()))
}

type hanging struct {
	*armed
	release chan struct{}
}

func (h hanging) Schedule(id string, dueMS int64) {
	<-h.release
	h.armed.Schedule(id, dueMS)
}

func TestStopOfABoardIsSafeBeforeStartAndTwice(t *testing.T) {
	t.Parallel()
	b := New(&armed{due: map[string]int64{}})
	require.NoError(t, b.Stop(t.Context()))
	require.NoError(t, b.Stop(t.Context()))
	b.UserScheduled("A", 1)
	require.NoError(t, b.Drain(t.Context()))
	require.Zero(t, b.Waiting())
}

// The memory of user answers lasts as long as the oldest open question, and no
// longer.
func TestUserAnswersAreForgottenWhenNoQuestionIsOlder(t *testing.T) {
	t.Parallel()
	b, _ := setup(t)
	b.UserScheduled("A", 1)
	require.Empty(t, b.mu.touched, "nobody has asked")
	first := b.Ask()
	for i := range 100 {
		b.UserScheduled(fmt.Sprint(i), 1)
	}
	second := b.Ask()
	b.UserScheduled("A", 2)
	b.UserScheduled("0", 2)
	require.Len(t, b.mu.touched, 101)
	b.End(first)
	require.Equal(t, map[string]mark{"A": {102, 102, 2}, "0": {103, 103, 2}}, b.mu.touched)
	require.Len(t, b.mu.order, 2)
	b.End(second)
	require.Empty(t, b.mu.touched)
	require.Empty(t, b.mu.order)
	require.Empty(t, b.mu.open)
}

// Random questions and answers against a model that remembers every user answer
// for ever.
func TestBoardAgreesWithAModelThatForgetsNothing(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		b, w := setup(t)
		type question struct {
			ticket Ticket
			asked  int
		}
		var open []question
		last := map[string]int{}
		want := map[string]int64{}
		for step := range 2000 {
			id := fmt.Sprint(rnd.IntN(5))
			switch due := int64(step); rnd.IntN(5) {
			case 0:
				open = append(open, question{b.Ask(), step})
			case 1:
				if len(open) > 0 {
					i := rnd.IntN(len(open))
					b.End(open[i].ticket)
					open = append(open[:i], open[i+1:]...)
				}
			case 2:
				b.UserScheduled(id, due)
				last[id], want[id] = step, due
			case 3:
				b.UserCancelled(id)
				last[id] = step
				delete(want, id)
			case 4:
				if len(open) > 0 {
					q := open[rnd.IntN(len(open))]
					at, touched := last[id]
					fresh := !touched || at < q.asked
					require.Equal(t, fresh, b.Arm(q.ticket, id, due), "seed %d step %d", seed, step)
					if fresh {
						want[id] = due
					}
				}
			}
			if rnd.IntN(20) == 0 {
				require.Equal(t, want, knows(t, b, w), "seed %d step %d", seed, step)
			}
		}
	}
}
