package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	sameTTL     = 100              // keys that expire at once
	otherKeys   = 100_000          // keys beside them, none of which expires meanwhile
	ttl         = time.Second      // of the keys
	eventsCome  = 40 * time.Second // how long events are waited for
	quietFor    = 3 * time.Second  // after which no more will come, where none need be waited for
	evictLimit  = "4mb"
	evictedSize = 4 << 10
)

// claimsOfExpiry try what is said of keyspace events.
func claimsOfExpiry(ctx context.Context, o options, _ Report, s *servers) ([]Claim, error) {
	if !picked(o, s, "key-expiry") {
		return nil, nil
	}
	var all []Claim
	for _, try := range []func(context.Context, *servers) (Claim, error){
		claimOfLateEvents, claimOfManyKeys, claimOfTwoSubscribers, claimOfNobody, claimOfEviction,
	} {
		c, err := try(ctx, s)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, s.reset(ctx)
}

// setKeys sets n keys that expire at due.
func setKeys(ctx context.Context, r *redis.Client, prefix string, n int, due time.Time) error {
	for at := 0; at < n; at += 1000 {
		_, err := r.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i := at; i < min(at+1000, n); i++ {
				p.SetArgs(ctx, prefix+strconv.Itoa(i), i, redis.SetArgs{ExpireAt: due})
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// listener hears the expired events of a server.
type listener struct{ events *redis.PubSub }

func listen(ctx context.Context, r *redis.Client) (listener, error) {
	if err := r.ConfigSet(ctx, "notify-keyspace-events", "Ex").Err(); err != nil {
		return listener{}, err
	}
	events := r.Subscribe(ctx, expiryChannel)
	_, err := events.Receive(ctx)
	return listener{events}, err
}

// hear gives when each of up to n events came, before the deadline.
func (l listener) hear(n int, deadline time.Time) (at []time.Time) {
	defer l.events.Close()
	events := l.events.Channel(redis.WithChannelSize(n + 1))
	for len(at) < n {
		select {
		case <-events:
			at = append(at, time.Now())
		case <-time.After(time.Until(deadline)):
			return at
		}
	}
	return at
}

// late are the lateness of events in milliseconds, sorted.
func late(at []time.Time, due time.Time) []float64 {
	ms := make([]float64, len(at))
	for i, t := range at {
		ms[i] = t.Sub(due).Seconds() * 1000
	}
	slices.Sort(ms)
	return ms
}

// sameTTLKeys sets keys that expire at once beside others that do not, and says how late the events were.
func sameTTLKeys(ctx context.Context, s *servers, others int) (lateMS []float64, err error) {
	if err := s.reset(ctx); err != nil {
		return nil, err
	}
	if err := setKeys(ctx, s.redis.client, "other:", others, time.Now().Add(time.Hour)); err != nil {
		return nil, err
	}
	l, err := listen(ctx, s.redis.client)
	if err != nil {
		return nil, err
	}
	due := time.Now().Add(ttl).Truncate(time.Millisecond)
	if err := setKeys(ctx, s.redis.client, expiryPrefix, sameTTL, due); err != nil {
		return nil, err
	}
	return late(l.hear(sameTTL, due.Add(eventsCome)), due), nil
}

func claimOfLateEvents(ctx context.Context, s *servers) (Claim, error) {
	ms100, err := sameTTLKeys(ctx, s, 0)
	return Claim{"key expiry events come some milliseconds late, where few keys have a time to live", verdict(len(ms100) == sameTTL && quantile(ms100, 1) < 1000),
		fmt.Sprintf("%d keys with one time to live and no others: first %s, p50 %s, last %s ms", sameTTL, ms(quantile(ms100, 0)), ms(quantile(ms100, 0.5)), ms(quantile(ms100, 1)))}, err
}

func claimOfManyKeys(ctx context.Context, s *servers) (Claim, error) {
	got, err := sameTTLKeys(ctx, s, otherKeys)
	v := inPart
	if len(got) < sameTTL {
		v = inPart + ": later than that"
	} else if quantile(got, 1) < 1000 {
		v = refuted
	}
	return Claim{"and up to about 30 s late, where many do", v,
		fmt.Sprintf("the same beside %d keys that expire in an hour: p50 of those that came %s, last %s ms; %d of %d had not come after %v",
			otherKeys, ms(quantile(got, 0.5)), ms(quantile(got, 1)), sameTTL-len(got), sameTTL, eventsCome)}, err
}

func claimOfTwoSubscribers(ctx context.Context, s *servers) (Claim, error) {
	if err := s.reset(ctx); err != nil {
		return Claim{}, err
	}
	var both [2]listener
	for i := range both {
		var err error
		if both[i], err = listen(ctx, s.redis.client); err != nil {
			return Claim{}, err
		}
	}
	due := time.Now().Add(ttl)
	if err := setKeys(ctx, s.redis.client, expiryPrefix, sameTTL, due); err != nil {
		return Claim{}, err
	}
	heard := 0
	for _, l := range both {
		heard += len(l.hear(sameTTL, due.Add(eventsCome)))
	}
	return Claim{"each subscriber gets every event", verdict(heard == 2*sameTTL),
		fmt.Sprintf("%d keys, two subscribers: %d events", sameTTL, heard)}, nil
}

func claimOfNobody(ctx context.Context, s *servers) (Claim, error) {
	if err := s.reset(ctx); err != nil {
		return Claim{}, err
	}
	if err := s.redis.client.ConfigSet(ctx, "notify-keyspace-events", "Ex").Err(); err != nil {
		return Claim{}, err
	}
	if err := setKeys(ctx, s.redis.client, expiryPrefix, sameTTL, time.Now().Add(ttl)); err != nil {
		return Claim{}, err
	}
	for until := time.Now().Add(eventsCome); time.Now().Before(until); { // nobody listens
		n, err := s.redis.client.DBSize(ctx).Result()
		if err != nil {
			return Claim{}, err
		}
		if n == 0 {
			break
		}
		if err := sleepUntil(ctx, time.Now().Add(pollEvery)); err != nil {
			return Claim{}, err
		}
	}
	l, err := listen(ctx, s.redis.client)
	if err != nil {
		return Claim{}, err
	}
	heard := len(l.hear(sameTTL, time.Now().Add(quietFor)))
	return Claim{"what expires while nobody listens is lost", verdict(heard == 0),
		fmt.Sprintf("%d keys expired before a subscriber came: %d events", sameTTL, heard)}, nil
}

// claimOfEviction fills a Redis of its own until it evicts keys.
func claimOfEviction(ctx context.Context, s *servers) (Claim, error) {
	dir := filepath.Join(s.dir, "evicts")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Claim{}, err
	}
	server, err := startRedis(ctx, dir, "--appendonly", "no", "--maxmemory", evictLimit, "--maxmemory-policy", "volatile-ttl")
	if err != nil {
		return Claim{}, err
	}
	defer server.stop()
	l, err := listen(ctx, server.client)
	if err != nil {
		return Claim{}, err
	}
	if err := setKeys(ctx, server.client, expiryPrefix, sameTTL, time.Now().Add(time.Hour)); err != nil {
		return Claim{}, err
	}
	for i := range 2000 {
		value := make([]byte, evictedSize)
		if err := server.client.Set(ctx, "other:"+strconv.Itoa(i), value, 2*time.Hour).Err(); err != nil {
			return Claim{}, err
		}
	}
	left := 0
	for i := range sameTTL {
		n, err := server.client.Exists(ctx, expiryPrefix+strconv.Itoa(i)).Result()
		if err != nil {
			return Claim{}, err
		}
		left += int(n)
	}
	heard := len(l.hear(sameTTL, time.Now().Add(quietFor)))
	return Claim{"an evicted key sends no expired event", verdict(left < sameTTL && heard == 0),
		fmt.Sprintf("%d keys, %d of them evicted: %d events", sameTTL, sameTTL-left, heard)}, nil
}
