package orderwheel_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/orderwheel/orderwheel"
	"github.com/orderwheel/orderwheel/persist"
)

// chaosNever is later than all.
const chaosNever = math.MaxInt64

// chaosCall is one call of a user on one id. Times are Unix microseconds, by the clock
// that Redis has, too.
type chaosCall struct {
	dueUS      int64 // of a Schedule; chaosNever: it was a Cancel, or did nothing
	begun, end int64 // end is chaosNever while nobody knows what it did
	final      bool  // a Cancel that was answered true, and nothing runs without a claim
}

// chaosID is what is known of one id.
type chaosID struct {
	calls []*chaosCall
	began int                 // runs
	ran   []int64             // when what ended well was claimed
	asked [chaosEngines]int64 // when each engine first asked for the claim that it was granted last
}

// mayRun tells whether a claim may have been granted that was first asked at asked, and
// answered at claimed, which is rounded down to a millisecond: a call may have made the id
// due by then, and no later one was answered before.
func (id *chaosID) mayRun(asked, claimed int64) bool {
	for _, a := range id.calls {
		over := false
		for _, b := range id.calls {
			over = over || b.begun >= a.end && (b.end < asked || b.final && b.end < claimed)
		}
		if !over && a.begun < claimed+1000 && a.dueUS <= claimed {
			return true
		}
	}
	return false
}

// scheduledOnly tells whether id was scheduled once and nothing has happened since.
func (id *chaosID) scheduledOnly() bool {
	return len(id.calls) == 1 && id.calls[0].end != chaosNever && id.calls[0].dueUS != chaosNever
}

func (id *chaosID) String() (text string) {
	for _, a := range id.calls {
		text += fmt.Sprintf("%+v; ", *a)
	}
	return text
}

// chaosModel is what the users of all engines were told.
type chaosModel struct {
	t      *testing.T
	strict bool // nothing runs without a claim

	mu  sync.Mutex
	rnd *rand.Rand
	ids map[string]*chaosID
}

func (m *chaosModel) n(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rnd.IntN(n)
}

func (m *chaosModel) ms(n int) time.Duration { return time.Duration(m.n(n)) * time.Millisecond }

// call makes one call of a user, and notes what came of it.
func (m *chaosModel) call(ctx context.Context, eng *orderwheel.Engine, name string, cancel bool, at time.Time) error {
	at = at.Truncate(time.Millisecond)
	one := &chaosCall{dueUS: at.UnixMicro(), end: chaosNever}
	if cancel {
		one.dueUS = chaosNever
	}
	m.mu.Lock()
	id := m.ids[name]
	fresh := id.scheduledOnly()
	one.begun = time.Now().UnixMicro()
	id.calls = append(id.calls, one)
	m.mu.Unlock()

	cancelled, err := false, error(nil)
	if cancel {
		cancelled, err = eng.Cancel(ctx, name)
	} else {
		err = eng.Schedule(ctx, name, at)
	}
	end := time.Now().UnixMicro()
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		one.end, one.final = end, cancelled && m.strict
		if cancel && !cancelled && fresh && len(id.calls) == 2 && id.began == 0 && id.calls[0].dueUS > end {
			m.t.Errorf("%s was cancelled before it was due, and the answer was false: %v", name, id)
		}
	case !errors.Is(err, persist.ErrUnknownOutcome):
		one.begun, one.dueUS = chaosNever, chaosNever
	}
	return err
}

// chaosStore notes since when a claim may have been granted: one that is repeated, for its
// answer was lost, is granted as it was the first time.
type chaosStore struct {
	orderwheel.Store
	m      *chaosModel
	engine int
	tokens map[string]int64 // when each was asked first; guarded by chaosModel.mu
}

func (s *chaosStore) Claim(ctx context.Context, token string, ids []string, lease time.Duration, most int) (persist.Claims, error) {
	s.m.mu.Lock()
	if _, again := s.tokens[token]; !again {
		s.tokens[token] = time.Now().UnixMicro()
	}
	s.m.mu.Unlock()
	claims, err := s.Store.Claim(ctx, token, ids, lease, most)
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	for _, one := range claims.Claims {
		if one.State == persist.Claimed {
			s.m.ids[one.ID].asked[s.engine] = s.tokens[token]
		}
	}
	return claims, err
}
