package persist

// MaxWaiting is maxWaiting.
const MaxWaiting = maxWaiting

// Waiting is how many ids wait for a flush.
func (r *Redis) Waiting() (ids int) {
	for _, s := range r.shards {
		for _, l := range []*lane{s.user, s.work} {
			l.mu.Lock()
			ids += l.mu.ids
			l.mu.Unlock()
		}
	}
	return ids
}

// ShardOf is the shard of an id in a store of so many.
func ShardOf(id string, shards int) int {
	return (&Redis{shards: make([]*shard, shards)}).shardOf(id)
}
