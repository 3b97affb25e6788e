package persist

// MaxWaiting is maxWaiting.
const MaxWaiting = maxWaiting

// Waiting is how many ids wait for a flush.
func (r *Redis) Waiting() (ids int) {
	for _, s := range r.shards {
		for _, l := range s.lanes {
			l.mu.Lock()
			ids += l.mu.ids
			l.mu.Unlock()
		}
	}
	return ids
}

// ShardOf is the shard of an id in a store of so many.
func ShardOf(id string, shards int) int {
	return (&Redis{shards: make([]*shard, shards)}).ShardOf(id)
}

// FlushSource is lua/flush.lua with what stands in front of it.
var FlushSource = flushScript.src

// Put makes the task of r stand where r says, under token if it runs.
func (m *Memory) Put(r Record, token string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := &task{
		id: r.ID, attempt: r.Attempt, ran: r.FirstDueMS != 0, firstMS: r.FirstDueMS, lost: r.Lost,
	}
	m.mu.tasks.move(t, r.Status, r.DueMS+r.LeaseMS+r.BuriedMS)
	t.token, t.cancelled, t.again, t.againMS, t.reason = token, r.Cancelled, r.Successor != 0, r.Successor, r.Reason
}

// Token is that of the run of id, empty where it does not run.
func (m *Memory) Token(id string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.tasks.find(id).token
}
