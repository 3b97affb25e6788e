package recovery

// Problems says in words what is wrong now; empty: all is well. It asks nothing of the
// store.
func (r *Recovery) Problems() (list []string) {
	add := func(problem string) {
		if problem != "" {
			list = append(list, problem)
		}
	}
	for _, p := range r.pulses {
		add(p.problem())
	}
	add(r.pagesProblem())
	add(r.watch.problem())
	add(r.losses.problem(r.cfg.Source != nil))
	return append(list, r.rounds.problems()...)
}
