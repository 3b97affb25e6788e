//go:build !race

package persist_test

// The properties, and the story that they are told by: what was asked and answered
// about the id, in the order in which Redis executed it. The story never looks at a flag
// of the model.
//
// A write is executed by right once, and only until its call is over: until it was
// answered, or a later flush of its lane was. That is the promise of the sessions. So a
// write of unknown outcome counts from when it is executed, if ever, and a copy of a
// writer that has died for as long as it is on its way. What is executed against that
// does not enter the story, and so shows as what it does to the task:
//
//	a  A schedule that was answered was executed. From then on the task stands until a
//	   run that started later was settled, or a cancel was executed later, or it was buried
//	   after such a run. It stands at the last time scheduled, or at that of the retry.
//	b  What a cancel answered Cancelled or Running starts no run, unless a schedule,
//	   ensure or requeue was called before the cancel was answered and was not executed when it
//	   was called, or was called later. Nothing starts a run once it is done. Cancelled is
//	   never said while a handler may be at work; NotFound and Gone never of what stands.
//	c  A token that does not hold the run changes nothing and is refused. The one that
//	   holds it is heeded, and nobody takes the run from it before its lease is over, as
//	   it was last told.
//	d  After each script the id stands in one place or none. What is dead stays dead until
//	   it is requeued, discarded or scheduled.
//	e  From every state there is a way to gone or dead: see wayOut. No writer that lives is
//	   shut out, none of its calls refused as late while it waits, and none that is at
//	   rest has a copy on its way that could still be executed.
//	f  A run starts at its due time or later. Its attempt is the count of the runs since the task
//	   was last fresh, without those taken back, and never above the limit. The first due is
//	   that of the first of them.
//	g  Each call that is answered gets what its one execution said.
//	h  An ensure brings back what stands nowhere, and changes nothing else.
type story struct {
	alive bool // scheduled, and neither done, nor cancelled, nor buried
	owed  bool // and no run has started since
	dead  bool
	work  bool // the handler of a run that ended without it may be at work
	ban   bool // cancelled, and nothing that could bring it back was called since

	at     int8 // when the next run may start; of a run: of the one after it, none if there is none
	first  int8 // due time of the first run
	runs   int8 // that count
	holder int8 // token of the run that goes on, 0 if none does
	until  int8 // the end of its lease, as it was told
}

// byHand holds a run whose record somebody removed: nobody has its token.
const byHand int8 = 127

var untold = story{at: none, first: none, until: none}

// afresh is a task without a past, due at the given tick.
func (s *story) afresh(at int8) {
	*s = story{alive: true, at: at, first: none, until: none, ban: s.ban, owed: true}
}

// over is a task that is gone.
func (s *story) over() { *s = story{at: none, first: none, until: none, ban: s.ban} }

func (s *story) died() {
	s.over()
	s.dead = true
}

// ended tells the end of a run. Nothing is left to tell where the successor or the
// cancel decides.
func (s *story) ended() (decided bool) {
	switch {
	case s.owed:
		s.afresh(s.at)
		return true
	case !s.alive:
		s.over()
		return true
	}
	s.holder, s.until = 0, none
	return false
}

// tell adds an execution to the story, and returns what is wrong with it. seen is the
// task that the script found, after it was healed.
func (s *story) tell(o op, now int8, seen, after cell, a answer, byRight bool) string {
	starts := seen.lease == none && after.lease != none
	if starts {
		if wrong := s.mayStart(o, now); wrong != "" {
			return wrong
		}
	}
	if o.kind == ack || o.kind == retry || o.kind == bury || o.kind == renew {
		switch holds := s.holder != 0 && o.token == s.holder; {
		case !holds && after != seen:
			return "c: a token that holds no run changed something"
		case !holds && a.state != refused:
			return "c: a token that holds no run was not refused"
		case holds && byRight && a.state == refused:
			return "c: the token that holds the run was refused"
		}
	}
	if seen.lease != none && after.lease == none && s.until > now && o.token != s.holder {
		return "c: a run was taken away before its lease was over"
	}
	if byRight {
		if wrong := s.add(o, now, seen, after, a); wrong != "" {
			return wrong
		}
	}
	return s.fits(after)
}

// mayStart judges the start of a run.
func (s *story) mayStart(o op, now int8) string {
	switch {
	case s.ban:
		return "b: a run started after a cancel was answered"
	case s.holder != 0:
		return "c: a run started while another goes on"
	case !s.alive:
		return "b: a run started of what was done, cancelled or never there"
	case now < s.at:
		return "f: a run started before it was due"
	case o.arg > 0 && s.runs >= o.arg:
		return "f: a run started after the last attempt"
	}
	return ""
}

func (s *story) add(o op, now int8, seen, after cell, a answer) string {
	switch o.kind {
	case schedule:
		if s.holder != 0 {
			s.alive, s.owed, s.at = true, true, o.at
		} else {
			s.afresh(o.at)
		}
	case cancel:
		return s.addCancel(a)
	case claim:
		return s.addClaim(o, now, a)
	case ack, bury, retry:
		if o.token != s.holder || s.holder == 0 || s.ended() {
			return ""
		}
		switch {
		case o.kind == ack:
			s.over()
		case o.kind == bury:
			s.died()
		default:
			s.addRetry(o)
		}
	case renew:
		if o.token == s.holder && s.holder != 0 {
			s.until = max(s.until, now+renewLease)
		}
	case requeue:
		if s.dead != (a.state == scheduled) {
			return "d: requeue is Scheduled where the id is dead, and only there"
		}
		if s.dead {
			s.afresh(now)
		}
	case discard:
		if s.dead != (a.state == 1) {
			return "d: discard is true where the id is dead, and only there"
		}
		if s.dead {
			s.over()
		}
	case ensure:
		stands := s.alive || s.holder != 0 || s.dead
		if stands == (a.state == 1) {
			return "h: ensure is true where the id stands nowhere, and only there"
		}
		if !stands {
			s.afresh(o.at)
		}
	case reap:
		if s.holder != 0 && seen.lease != none && after.lease == none && !s.ended() {
			s.at, s.work = now, true
		}
	}
	return ""
}

func (s *story) addCancel(a answer) string {
	switch {
	case a.state == notFound && (s.alive || s.holder != 0):
		return "b: cancel did not find what stands"
	case a.state != notFound && !s.alive && s.holder == 0:
		return "b: cancel found what does not stand"
	case a.state == cancelled && (s.work || s.holder != 0):
		return "b: Cancelled while a handler may be at work"
	case a.state == running && !s.work && s.holder == 0:
		return "b: Running while no handler is at work"
	case s.holder != 0: // the run goes on
		s.alive, s.owed, s.at = false, false, none
	case s.alive:
		s.over()
	}
	return ""
}

func (s *story) addClaim(o op, now int8, a answer) string {
	switch a.state {
	case gone:
		if s.alive || s.holder != 0 {
			return "b: claim says Gone of what stands"
		}
	case busy:
		if s.holder == 0 || s.holder == o.token {
			return "c: claim says Busy where nobody else runs it"
		}
	case notYet:
		if s.holder != 0 || now >= s.at || a.at != s.at || a.left != s.at-now {
			return "f: claim says NotYet, or when, and it is not so"
		}
	case wasDead:
		if s.holder != 0 || s.owed && s.alive || !s.alive || o.arg == 0 || s.runs < o.arg {
			return "a: buried without a run, or before the last attempt"
		}
		s.died()
	case claimed:
		return s.addRun(o, now, a)
	}
	return ""
}

func (s *story) addRun(o op, now int8, a answer) string {
	switch {
	case s.holder == 0:
		s.runs++
		if s.first == none {
			s.first = s.at
		}
		s.holder, s.owed, s.at = o.token, false, none
	case s.holder != o.token:
		return "c: two claims hold one run"
	}
	s.until = now + claimLease
	switch {
	case a.attempt != s.runs:
		return "f: an attempt was counted twice, or not at all"
	case a.at != s.first:
		return "f: the first due is not that of the first run"
	}
	return ""
}

func (s *story) addRetry(o op) {
	s.at = o.at
	if o.arg&uncounted != 0 {
		s.runs = max(0, s.runs-1)
	}
	s.work = s.work || o.arg&abandoned != 0
	if s.runs == 0 && !s.work {
		s.first = none
	}
}

// fits judges what is left in the keys.
func (s *story) fits(c cell) string {
	places := 0
	for _, at := range []int8{c.due, c.lease, c.buried} {
		if at != none {
			places++
		}
	}
	stands := s.alive || s.holder != 0
	switch {
	case places > 1:
		return "d: it stands in two places"
	case s.holder != 0 && c.lease == none:
		return "c: a run was taken away"
	case s.holder == 0 && c.lease != none:
		return "b: a run that nobody started"
	case s.alive && s.holder == 0 && c.due == none:
		return "a: a schedule is gone without a run that started after it"
	case s.alive && s.holder == 0 && c.due != s.at:
		return "a: it is not due when it was scheduled last"
	case s.owed && s.holder != 0 && c.succ != s.at:
		return "a: a schedule during a run is gone"
	case !s.owed && c.succ != none:
		return "b: a successor of what was cancelled"
	case !s.alive && c.due != none:
		return "b: what is done or cancelled is due"
	case s.dead != (c.buried != none):
		return "d: dead without burial, or gone from the dead"
	case stands && c.attempt != s.runs:
		return "f: an attempt was counted twice, or not at all"
	}
	return ""
}
