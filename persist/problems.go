package persist

import (
	"fmt"
	"time"
)

// Problems says in words which shards do not serve now; empty: all do, as far as the
// last calls could tell. It asks nothing of Redis.
func (r *Redis) Problems() (problems []string) {
	for _, s := range r.shards {
		if class, since, away := s.away.outage(); away {
			where := "Redis"
			if len(r.shards) > 1 {
				where = "Redis, shard " + s.name
			}
			problems = append(problems, fmt.Sprintf("%s does not serve (%s) since %s, for %v: calls are repeated until their ctx ends",
				where, class, since.Format(time.RFC3339), time.Since(since).Round(time.Millisecond)))
		}
	}
	return problems
}

// outage tells whether Redis is away, since when, and how.
func (p *presence) outage() (c class, since time.Time, away bool) {
	if !p.away.Load() {
		return 0, time.Time{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.class, p.mu.since, p.mu.failed != nil
}
