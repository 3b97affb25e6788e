package main

import (
	"context"
	"hash/fnv"
)

// share is the part of the orders that the engine closes, in percent. Which ones follows from the
// order number alone, so every instance, and every version, agrees; and a larger share has all
// that a smaller one has.
type share int

const everyOrder share = 100

// has reports whether the engine closes the order.
func (s share) has(orderNo string) bool {
	h := fnv.New32a()
	h.Write([]byte(orderNo))
	return share(h.Sum32()%100) < s
}

// unpaidOrders is sqlstore.Store's, as the engine reads it.
type unpaidOrders interface {
	Unpaid(ctx context.Context, after string, limit int) (ids []string, dueMS []int64, err error)
}

// sharedSource gives the engine the unpaid orders of its share. So when the engine starts, orders
// from before the share was raised come to it, as those do that Redis has lost.
type sharedSource struct {
	all   unpaidOrders
	share share
}

// Unpaid passes over pages without an order of the share: an empty page would be the end.
func (s sharedSource) Unpaid(ctx context.Context, after string, limit int) (ids []string, dueMS []int64, err error) {
	for len(ids) == 0 {
		all, due, err := s.all.Unpaid(ctx, after, limit)
		if err != nil || len(all) == 0 {
			return nil, nil, err
		}
		for i, id := range all {
			if s.share.has(id) {
				ids, dueMS = append(ids, id), append(dueMS, due[i])
			}
		}
		after = all[len(all)-1]
	}
	return ids, dueMS, nil
}
