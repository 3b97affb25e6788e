package executor

// Stats counts since Start. It is local and costs the same however much is pending.
type Stats struct {
	Ready    int // due, waiting for a worker
	Running  int // being claimed, or with the handler
	Awaiting int // due, and waiting for a claim from a shard of the store that is away

	Unclaimed uint64 // runs without a claim, while the store was away; not in Lateness until claimed

	Done      uint64 // acknowledged
	Failed    uint64 // attempts that ended in an error or a panic
	Panicked  uint64 // of these, panics
	Retried   uint64 // put back after a failed attempt
	Postponed uint64 // put back by RetryAt
	Cancelled uint64 // failed or postponed, and cancelled meanwhile: not put back
	LeaseLost uint64 // answers refused: the lease was over, or the task was handed to another

	NotYet uint64 // claims refused because the task was due later
	Busy   uint64 // claims refused because another had it
	Gone   uint64 // claims refused because it was cancelled or done

	Lateness Lateness // of first attempts
}

// Stats reads the counters.
func (e *Executor) Stats() Stats {
	e.mu.Lock()
	ready, running, awaiting := e.mu.fresh.len()+e.mu.backlog.len(), e.mu.running, e.awaitingLocked()
	e.mu.Unlock()
	return Stats{
		Ready:     ready,
		Running:   running,
		Awaiting:  awaiting,
		Unclaimed: e.stats.unclaimed.Load(),
		Done:      e.stats.done.Load(),
		Failed:    e.stats.failed.Load(),
		Panicked:  e.stats.panicked.Load(),
		Retried:   e.stats.retried.Load(),
		Postponed: e.stats.postponed.Load(),
		Cancelled: e.stats.cancelled.Load(),
		LeaseLost: e.stats.leaseLost.Load(),
		NotYet:    e.stats.notYet.Load(),
		Busy:      e.stats.busy.Load(),
		Gone:      e.stats.gone.Load(),
		Lateness:  e.stats.late.snapshot(),
	}
}
