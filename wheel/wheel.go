package wheel

// Due is one armed id and the instant it expires.
type Due struct {
	ID    string
	DueMS int64 // Unix milliseconds of the store's clock
}

// Wheel is the contract that every engine keeps. All methods may be called by
// many goroutines at once, also from within the fire function.
type Wheel interface {
	// Schedule arms id for dueMS (Unix milliseconds), or moves it there when it
	// is armed already: one id has one due time, the last one wins. A due time
	// that has passed fires at the next opportunity; math.MaxInt64 never comes.
	// Before Start it only arms; after Stop it does nothing.
	Schedule(id string, dueMS int64)

	// Cancel disarms id. True: id was armed and is never handed to fire for
	// that Schedule. False: it has been handed over, or was not armed.
	Cancel(id string) bool

	// Len is the number of armed ids.
	Len() int

	// NextDue is the earliest due time armed, or a lower bound of it where an
	// engine knows no better; ok is false when nothing is armed.
	NextDue() (dueMS int64, ok bool)

	// Start begins to hand expired ids to fire, as one batch per slot, never
	// before the injected clock has reached their due time. fire must not block
	// for long, and some engines call it from several goroutines at once; the
	// batch is the receiver's to keep. Start is called at most once; a second
	// call panics, and one after Stop does nothing.
	Start(fire func([]Due))

	// Stop ends firing, waits until no call of fire is in progress, and frees
	// what is armed. It is safe twice and before Start. It must not be called
	// from within fire.
	Stop()
}

// Factory makes an engine that reads the time, in Unix milliseconds, from
// nowMS. nowMS must be cheap and safe for concurrent use. When it steps back,
// nothing happens until it passes the time seen before; when it jumps ahead,
// all that became due is handed over.
type Factory func(nowMS func() int64) Wheel
