package persist

// MaxWaiting is maxWaiting.
const MaxWaiting = maxWaiting

// Waiting is how many ids wait for a flush.
func (r *Redis) Waiting() (ids int) {
	for _, l := range []*lane{r.user, r.work} {
		l.mu.Lock()
		ids += l.mu.ids
		l.mu.Unlock()
	}
	return ids
}
