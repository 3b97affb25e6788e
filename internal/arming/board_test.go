package arming

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

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

func setup() (*Board, *armed) {
	w := &armed{due: map[string]int64{}}
	return New(w), w
}

func TestAnAnswerToAnOlderQuestionArmsNothing(t *testing.T) {
	t.Parallel()
	b, w := setup()
	before := b.Ask()
	b.UserScheduled("A", 5)
	after := b.Ask()
	require.False(t, b.Arm(before, "A", 9))
	require.EqualValues(t, 5, w.due["A"])
	require.True(t, b.Arm(before, "B", 9), "another id is not concerned")
	require.True(t, b.Arm(after, "A", 7))
	require.EqualValues(t, 7, w.due["A"])
	b.End(before)
	require.True(t, b.Arm(after, "A", 8))
	b.End(after)
}

func TestAnAnswerToAnOlderQuestionDoesNotUndoACancel(t *testing.T) {
	t.Parallel()
	b, w := setup()
	b.UserScheduled("A", 5)
	ticket := b.Ask()
	b.UserCancelled("A")
	require.False(t, b.Arm(ticket, "A", 5))
	require.Empty(t, w.due)
	b.End(ticket)
}

func TestMissedDisarmsOnlyWhatNoUserHasMoved(t *testing.T) {
	t.Parallel()
	b, w := setup()
	b.UserScheduled("A", 5)
	b.UserScheduled("B", 5)
	ticket := b.Ask()
	b.UserScheduled("A", 99)
	require.False(t, b.Missed(ticket, "A"))
	require.True(t, b.Missed(ticket, "B"))
	require.False(t, b.Missed(ticket, "B"))
	require.Equal(t, map[string]int64{"A": 99}, w.due)
	b.End(ticket)
}

// The memory of user answers lasts as long as the oldest open question, and no
// longer.
func TestUserAnswersAreForgottenWhenNoQuestionIsOlder(t *testing.T) {
	t.Parallel()
	b, _ := setup()
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
	require.Equal(t, map[string]uint64{"A": 102, "0": 103}, b.mu.touched)
	require.Len(t, b.mu.order, 2)
	b.End(second)
	require.Empty(t, b.mu.touched)
	require.Empty(t, b.mu.order)
	require.Empty(t, b.mu.open)
}

// Random questions and answers against a model that remembers every user answer for
// ever.
func TestBoardAgreesWithAModelThatForgetsNothing(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		b, w := setup()
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
			require.Equal(t, want, w.due, "seed %d step %d", seed, step)
		}
	}
}
