package orderwheel

// Store is what the engine needs of the persistence, for tests that stand between the two.
type Store = store

// WrapStore puts a store of the test's between e, which was not started yet, and its own.
func WrapStore(e *Engine, wrap func(Store) Store) { e.store = wrap(e.store) }
