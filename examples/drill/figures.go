package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/orderwheel/orderwheel/examples/internal/audit"
	"github.com/orderwheel/orderwheel/examples/internal/show"
)

// figures are the report of a round.
type figures struct {
	Orders int64 `json:"orders"`
	Closed int64 `json:"closed"`
	Paid   int64 `json:"paid"`

	// Kills counts the kills by where the worker was; "redis" are those of Redis.
	Kills map[step]int64 `json:"kills"`

	// What must be 0; see audit.Report.
	Lost             int64 `json:"lost"`
	Early            int64 `json:"early"`
	DuplicateEffects int64 `json:"duplicate_effects"`
	StockMissing     int64 `json:"stock_missing"`
	StockLocked      int64 `json:"stock_locked"`

	By         audit.By     `json:"by"`
	RecoveryMS recoveryMS   `json:"recovery_ms"`
	LateMS     audit.LateMS `json:"late_ms"`
}

// recoveryMS says how long it took from the start of a worker to its engine's
// Start having returned. The median is the one of the nearest rank.
type recoveryMS struct {
	P50 float64 `json:"p50"`
	Max float64 `json:"max"`
}

func newFigures(r audit.Report, kills map[step]int64, starts []time.Duration) *figures {
	f := &figures{
		Orders: r.Orders, Closed: r.Closed, Paid: r.Paid, Kills: maps.Clone(kills),
		Lost: r.Lost, Early: r.Early, DuplicateEffects: r.DuplicateEffects,
		StockMissing: r.StockMissing, StockLocked: r.StockLocked,
		By: r.By, LateMS: r.LateMS,
	}
	if n := len(starts); n > 0 {
		starts = slices.Sorted(slices.Values(starts))
		ms := func(d time.Duration) float64 { return math.Round(d.Seconds()*1e6) / 1e3 }
		f.RecoveryMS = recoveryMS{P50: ms(starts[(n-1)/2]), Max: ms(starts[n-1])}
	}
	return f
}

// check is a figure that must be 0.
type check struct {
	name  string // as in the JSON
	count int64
	means string
}

func (f *figures) checks() []check {
	return []check{
		{"lost", f.Lost, "open orders of which Redis knows no task"},
		{"early", f.Early, "calls of the handler before the order expired"},
		{"duplicate_effects", f.DuplicateEffects, "units, coupons and refunds given back twice"},
		{"stock_missing", f.StockMissing, "units neither free, locked nor sold"},
		{"stock_locked", f.StockLocked, "units still locked by orders that are not open"},
	}
}

func (f *figures) sound() bool {
	return !slices.ContainsFunc(f.checks(), func(c check) bool { return c.count != 0 })
}

// writeJSON prints the figures as one object on one line.
func (f *figures) writeJSON(w io.Writer) error { return json.NewEncoder(w).Encode(f) }

// writeTable prints the figures for people.
func (f *figures) writeTable(w io.Writer) error {
	var table strings.Builder
	row := func(name string, n int64, note string) {
		table.WriteString(strings.TrimRight(fmt.Sprintf("%-19s %9s   %s", name, show.Comma(n), note), " ") + "\n")
	}
	row("orders", f.Orders, "")
	row("closed", f.Closed, fmt.Sprintf("late by %.1f ms (p50), %.1f ms (p99), %.1f ms (max)", f.LateMS.P50, f.LateMS.P99, f.LateMS.Max))
	row("paid", f.Paid, "")
	row("fired", f.By.Total(), show.By(f.By))
	var kills int64
	var places []string
	for _, s := range slices.Sorted(maps.Keys(f.Kills)) {
		kills += f.Kills[s]
		places = append(places, fmt.Sprintf("%s %d", s, f.Kills[s]))
	}
	row("kills", kills, strings.Join(places, ", "))
	table.WriteString(fmt.Sprintf("%-19s %9s   from the start of a process, max %.1f ms\n", "recovery p50, ms", fmt.Sprintf("%.1f", f.RecoveryMS.P50), f.RecoveryMS.Max))
	table.WriteString("\nmust be 0\n")
	for _, c := range f.checks() {
		note := c.means
		if c.count != 0 {
			note = "WRONG: " + note
		}
		row("  "+c.name, c.count, note)
	}
	_, err := io.WriteString(w, table.String())
	return err
}
