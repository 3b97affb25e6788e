package persist

import (
	"fmt"
	"time"
)

// remembered is how long a failure counts where no call is under way that could show
// whether it lasts.
const remembered = 10 * time.Second

// Problems says in words which shards do not serve now, or refuse new tasks; empty: all is
// well, as far as the calls under way and those of the last ten seconds could tell. It
// asks nothing of Redis.
func (r *Redis) Problems() (problems []string) {
	now := time.Now()
	for _, s := range r.shards {
		where := "Redis"
		if s.name != "" {
			where = "Redis, " + s.name
		}
		if class, since, away := s.away.outage(now); away {
			problems = append(problems, fmt.Sprintf("%s does not serve (%s) since %s, for %v: calls are repeated until their ctx ends",
				where, class, since.Format(time.RFC3339), now.Sub(since).Round(time.Millisecond)))
		}
		if last := s.overloaded.Load(); last != nil && now.Sub(*last) <= remembered {
			problems = append(problems, fmt.Sprintf("%s has %d tasks pending, as many as MaxPending allows: new ones are refused, the last %v ago",
				where, r.mostPerShard(), now.Sub(*last).Round(time.Second)))
		}
	}
	return problems
}

// outage tells whether Redis is away, since when, and how. Of one that a single operation
// has met, and that nobody calls any more, nobody can say when it is over: a Redis that is
// full refuses schedules and nothing else, and if that makes a probe keep the users
// away, none comes that would find room. So it counts no longer than remembered.
func (p *presence) outage(now time.Time) (c class, since time.Time, away bool) {
	if !p.away.Load() {
		return 0, time.Time{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	lasts := p.mu.waiting > 0 || now.Sub(p.mu.last) <= remembered
	return p.mu.class, p.mu.since, p.mu.failed != nil && lasts
}
