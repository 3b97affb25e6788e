package main

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// counters are what the servers have counted so far.
type counters struct {
	queries  int64         // statements of the order database
	commands int64         // of Redis, those inside scripts included
	cpu      time.Duration // of all servers
}

// queryKinds are the statements that count as queries. Com_stmt_... would count some of them
// twice, and Com_show_status and Com_set_option are of who looks.
var queryKinds = []string{"Com_select", "Com_insert", "Com_update", "Com_update_multi", "Com_delete", "Com_delete_multi", "Com_replace",
	"Com_begin", "Com_commit", "Com_rollback"}

func countQueries(ctx context.Context, db *sql.DB) (n int64, err error) {
	rows, err := db.QueryContext(ctx, "SHOW GLOBAL STATUS LIKE 'Com\\_%'")
	if err != nil {
		return 0, fmt.Errorf("count queries: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var count int64
		if err := rows.Scan(&name, &count); err != nil {
			return 0, err
		}
		if slices.Contains(queryKinds, name) {
			n += count
		}
	}
	return n, rows.Err()
}

var callsOf = regexp.MustCompile(`(?m)^cmdstat_([a-z|_-]+):calls=(\d+)`)

// ownCommands are those that this program sends itself.
var ownCommands = []string{"info", "flushall", "config|set", "config|resetstat"}

func countCommands(ctx context.Context, r *redis.Client) (n int64, err error) {
	info, err := r.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, fmt.Errorf("count commands: %w", err)
	}
	for _, m := range callsOf.FindAllStringSubmatch(info, -1) {
		if slices.Contains(ownCommands, m[1]) {
			continue
		}
		count, err := strconv.ParseInt(m[2], 10, 64)
		if err != nil {
			return 0, err
		}
		n += count
	}
	return n, nil
}
