package redistest

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// Move is a slot on its way from one master to another. Until End, the old one serves
// the keys that it still has and answers ASK for others, and each answers TRYAGAIN to
// a command for several keys of which it has only some.
type Move struct {
	c        *Cluster
	slot     int
	from, to *Server
}

// MoveSlot moves a slot to another master while clients read and write.
func (c *Cluster) MoveSlot(slot int, to *Server) {
	c.t.Helper()
	c.BeginMove(slot, to).End()
}

// BeginMove opens the slot on both sides, and moves no key yet.
func (c *Cluster) BeginMove(slot int, to *Server) *Move {
	c.t.Helper()
	c.mu.Lock()
	from := c.mu.owner[slot]
	c.mu.Unlock()
	m := &Move{c: c, slot: slot, from: from, to: to}
	to.must("CLUSTER", "SETSLOT", slot, "IMPORTING", from.nodeID())
	from.must("CLUSTER", "SETSLOT", slot, "MIGRATING", to.nodeID())
	return m
}

// Some moves at most n of the keys that are left and returns how many it took: fewer
// where fewer were left.
func (m *Move) Some(n int) int {
	m.c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), controlWithin)
	defer cancel()
	keys, err := m.from.control().ClusterGetKeysInSlot(ctx, m.slot, n).Result()
	if err != nil {
		m.c.t.Fatalf("redistest: the keys of slot %d on %s: %v", m.slot, m.from.Addr(), err)
	}
	m.Keys(keys...)
	return len(keys)
}

// Keys moves these keys. One that is not there any more is none to move.
func (m *Move) Keys(keys ...string) {
	m.c.t.Helper()
	if len(keys) == 0 {
		return
	}
	args := []any{"MIGRATE", "127.0.0.1", m.to.port, "", 0, (controlWithin / 2).Milliseconds(), "KEYS"}
	for _, key := range keys {
		args = append(args, key)
	}
	m.from.must(args...)
}

// End moves the keys that are left and hands the slot over. Every node that runs
// is told; the others hear of it when they are back.
func (m *Move) End() {
	m.c.t.Helper()
	for m.Some(100) > 0 {
	}
	m.c.waitEpoch(m.to)
	// The new one first: else the old one would send clients to a node that does not
	// take them yet.
	id := m.to.nodeID()
	m.to.must("CLUSTER", "SETSLOT", m.slot, "NODE", id)
	m.from.must("CLUSTER", "SETSLOT", m.slot, "NODE", id)
	for _, s := range m.c.nodes {
		if s != m.to && s != m.from && s.runs() {
			s.must("CLUSTER", "SETSLOT", m.slot, "NODE", id)
		}
	}
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	m.c.mu.owner[m.slot] = m.to
}

// waitEpoch waits until a node knows the latest epoch of the Cluster. What it claims
// from then on has a later one, and no packet that is still on its way takes it back.
func (c *Cluster) waitEpoch(s *Server) {
	c.t.Helper()
	epoch := func(s *Server) (n int64) {
		text, _ := s.must("CLUSTER", "INFO").(string)
		_, text, _ = strings.Cut(text, "cluster_current_epoch:")
		text, _, _ = strings.Cut(text, "\r\n")
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			c.t.Fatalf("redistest: the epoch of %s: %v", s.Addr(), err)
		}
		return n
	}
	var latest int64
	for _, other := range c.nodes {
		if other.runs() {
			latest = max(latest, epoch(other))
		}
	}
	for end := time.Now().Add(clusterReadyWithin); epoch(s) < latest; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("redistest: %s does not hear of epoch %d", s.Addr(), latest)
		}
	}
}
