package persist

import "context"

// Now reads the clock of the server that holds the tasks; on a Cluster of the one
// that holds the first shard.
func (r *Redis) Now(ctx context.Context) (Sample, error) {
	rp, err := r.shards[0].run(ctx, nowScript)
	if err != nil {
		return Sample{}, err
	}
	sample := rp.sample()
	return sample, rp.done()
}
