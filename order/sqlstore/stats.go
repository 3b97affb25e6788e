package sqlstore

import "sync/atomic"

// Stats counts since the store was made.
type Stats struct {
	Asked     uint64 // answers of Options.Ask: the sum of the next four
	NotPaid   uint64
	PaidThere uint64 // held back: an alarm where it stays, for a payment has not been told
	Unknown   uint64 // held back
	AskFailed uint64 // held back: an error, a panic, or nothing within AskTimeout

	Batches       uint64 // transactions for many orders
	BatchesFailed uint64 // of these, those whose orders had to be closed one by one

	Told         uint64 // calls of Options.AfterClose
	TellPanicked uint64 // of these, panics
}

// Stats reads the counters.
func (s *Store) Stats() Stats {
	c := &s.stats
	return Stats{
		Asked:         c.asked.Load(),
		NotPaid:       c.notPaid.Load(),
		PaidThere:     c.paidThere.Load(),
		Unknown:       c.unknown.Load(),
		AskFailed:     c.askFailed.Load(),
		Batches:       c.batches.Load(),
		BatchesFailed: c.batchesFailed.Load(),
		Told:          c.told.Load(),
		TellPanicked:  c.tellPanicked.Load(),
	}
}

type counters struct {
	asked, notPaid, paidThere, unknown, askFailed atomic.Uint64
	batches, batchesFailed                        atomic.Uint64
	told, tellPanicked                            atomic.Uint64
}
