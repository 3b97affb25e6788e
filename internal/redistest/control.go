package redistest

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// controlWithin bounds a command by which a test steers a server.
const controlWithin = 10 * time.Second

// control returns the client by which s is steered, closed when the test ends.
func (s *Server) control() *redis.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.client == nil {
		c := redis.NewClient(&redis.Options{Addr: s.Addr(), ContextTimeoutEnabled: true, ReadTimeout: controlWithin})
		s.t.Cleanup(func() { _ = c.Close() })
		s.mu.client = c
	}
	return s.mu.client
}

// must runs a command on s, fails the test on an error, and returns the answer.
func (s *Server) must(args ...any) any {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), controlWithin)
	defer cancel()
	v, err := s.control().Do(ctx, args...).Result()
	if err != nil {
		s.t.Fatalf("redistest: %v on %s: %v", args, s.Addr(), err)
	}
	return v
}

// nodeID is the name that s has in its Cluster.
func (s *Server) nodeID() string {
	s.t.Helper()
	return s.must("CLUSTER", "MYID").(string)
}

// runs reports whether s was neither killed nor paused.
func (s *Server) runs() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.proc != nil && !s.mu.paused
}
