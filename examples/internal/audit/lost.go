package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"
)

// lost counts the open orders that expire and stand in no ZSet of tasks. An
// order can be closed and its task removed between the look into the database
// and that into Redis; so a suspect counts only if it is open afterwards, too:
// no order opens again.
func (a *Audit) lost(ctx context.Context) (int64, error) {
	open, err := a.openOrders(ctx)
	if err != nil {
		return 0, err
	}
	suspects, err := a.tasks.without(ctx, open)
	if err != nil || len(suspects) == 0 {
		return 0, err
	}
	still, err := a.openOrders(ctx)
	if err != nil {
		return 0, err
	}
	var lost int64
	for _, orderNo := range suspects {
		if _, open := slices.BinarySearch(still, orderNo); open {
			lost++
		}
	}
	return lost, nil
}

// openOrders lists the unpaid orders that expire, sorted.
func (a *Audit) openOrders(ctx context.Context) ([]string, error) {
	rows, err := a.db.QueryContext(ctx, `SELECT order_no FROM orders WHERE status = 'unpaid' AND expire_at IS NOT NULL`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var open []string
	for rows.Next() {
		var orderNo string
		if err := rows.Scan(&orderNo); err != nil {
			return nil, err
		}
		open = append(open, orderNo)
	}
	slices.Sort(open)
	return open, rows.Err()
}

// taskKeys are the ZSets in which the tasks of a namespace stand: each task in
// exactly one.
type taskKeys struct {
	redis     redis.UniversalClient
	namespace string
}

func (k taskKeys) all() []string {
	tag := "{" + k.namespace + ":0}"
	return []string{tag + ":due", tag + ":running", tag + ":dead"}
}

// without returns those of ids that stand in no ZSet. The ZSets are asked in
// one transaction, for a task may move from one to another meanwhile.
func (k taskKeys) without(ctx context.Context, ids []string) ([]string, error) {
	var without []string
	for batch := range slices.Chunk(ids, 500) {
		stands := make([][]*redis.FloatCmd, len(batch))
		_, err := k.redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
			for i, id := range batch {
				for _, key := range k.all() {
					stands[i] = append(stands[i], p.ZScore(ctx, key, id))
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, redis.Nil) { // Nil: that of the first id that is not found
			return nil, err
		}
		for i, id := range batch {
			found := false
			for _, score := range stands[i] {
				switch err := score.Err(); {
				case err == nil:
					found = true
				case !errors.Is(err, redis.Nil):
					return nil, err
				}
			}
			if !found {
				without = append(without, id)
			}
		}
	}
	return without, nil
}

// Tasks counts the tasks that Redis still has for the engine, in whatever
// state.
func (a *Audit) Tasks(ctx context.Context) (int64, error) {
	var n int64
	for _, key := range a.tasks.all() {
		tasks, err := a.tasks.redis.ZCard(ctx, key).Result()
		if err != nil {
			return 0, fmt.Errorf("audit: count the tasks: %w", err)
		}
		n += tasks
	}
	return n, nil
}
