package persist

import "context"

// Now reads the clock of the server that holds the tasks.
func (r *Redis) Now(ctx context.Context) (Sample, error) {
	rp, err := r.run(ctx, nowScript)
	if err != nil {
		return Sample{}, err
	}
	sample := rp.sample()
	return sample, rp.done()
}
