// Package show prints what the audit found.
package show

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/orderwheel/orderwheel/examples/internal/audit"
)

// JSON prints the report as one object on one line.
func JSON(w io.Writer, r audit.Report) error {
	return json.NewEncoder(w).Encode(r)
}

// Table prints the report for people.
func Table(w io.Writer, r audit.Report) error {
	var table strings.Builder
	row := func(name string, n int64, note string) {
		line := fmt.Sprintf("%-19s %9s   %s", name, Comma(n), note)
		table.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	row("orders", r.Orders, "")
	row("paid", r.Paid, "")
	row("closed", r.Closed, fmt.Sprintf("late by %.1f ms (p50), %.1f ms (p99), %.1f ms (max)", r.LateMS.P50, r.LateMS.P99, r.LateMS.Max))
	row("refunds", r.Refunds, "payments of orders that were closed")
	row("fired", r.By.Total(), By(r.By)+"; some find the order paid")
	table.WriteString("\nmust be 0\n")
	for _, c := range r.Checks() {
		note := c.Means
		if c.Count != 0 {
			note = "WRONG: " + note
		}
		row("  "+c.Name, c.Count, note)
	}
	_, err := io.WriteString(w, table.String())
	return err
}

// By says what brought the tasks.
func By(b audit.By) string {
	return fmt.Sprintf("wheel %s, sweep %s, recovery %s, reconcile %s", Comma(b.Wheel), Comma(b.Sweep), Comma(b.Recovery), Comma(b.Reconcile))
}

// Comma writes a number with its thousands apart: 1,234,567.
func Comma(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}
