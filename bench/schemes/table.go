package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

func printJSON(w io.Writer, r Report) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// printTable prints the report for people.
func printTable(w io.Writer, r Report) error {
	fmt.Fprintf(w, "%d orders (with a kill or two instances: %d), a tenth of them paid in time; %d expire a second.\n", r.Orders, r.FewOrders, r.Rate)
	fmt.Fprintf(w, "The database closes %d a second with one handler, %d with %d.\n", r.ClosesOne, r.ClosesAtOnce, r.Workers)
	fmt.Fprintf(w, "scale %d: scan and retry periods, leases and locks are the articles' divided by that.\n\n", r.Scale)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "scheme\tlate p50\tp99\tmax ms\tearly\tnever closed\tthe same\tdouble\tqueries\tcommands\tCPU s\tservers'\tMB\tcanary\t\n")
	fmt.Fprintf(t, "\t\t\t\t\t\tafter kill -9\ttwo inst.\tan order\tan order\t\tCPU s\t\tp99 ms\t\n")
	for _, row := range r.Rows {
		fmt.Fprintln(t, line(r, row))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, row := range r.Rows {
		if row.Absent != "" {
			fmt.Fprintf(w, "\n%s was not run. %s\n", row.Name, row.Absent)
		}
	}
	printStorm(w, r)
	fmt.Fprintln(w, "\nDescribed, not measured:")
	for _, d := range described {
		fmt.Fprintf(w, "  %s: %s.\n", d.name, d.text)
	}
	if len(r.Claims) > 0 {
		fmt.Fprintln(w, "\nWhat the articles claim, and what came of it:")
	}
	for _, c := range r.Claims {
		fmt.Fprintf(w, "  %s: %s\n      %s\n", c.Claim, c.Verdict, c.Figure)
	}
	_, err := fmt.Fprintf(w, "\nIt took %.0f minutes.\n", r.Took.Minutes())
	return err
}

func line(r Report, row Row) string {
	text := row.Name + "\t"
	if p := row.Plain; p != nil {
		text += fmt.Sprintf("%s\t%s\t%s\t%d\t%d\t", ms(p.LateP50MS), ms(p.LateP99MS), ms(p.LateMaxMS), p.Early, p.NeverClosed)
	} else {
		text += "-\t-\t-\t-\t-\t"
	}
	text += count(row.Kill, func(f *Figures) int { return f.NeverClosed })
	text += count(row.Two, func(f *Figures) int { return f.DoubleEffects })
	if p := row.Plain; p != nil {
		return text + fmt.Sprintf("%.2f\t%.2f\t%.1f\t%.1f\t%.0f\t%.1f\t",
			p.QueriesPerOrder, p.CommandsPerOrder, p.CPUSeconds, p.ServersCPUSeconds, p.MemoryMB, p.CanaryP99MS)
	}
	return text + "-\t-\t-\t-\t-\t-\t"
}

func count(f *Figures, of func(*Figures) int) string {
	if f == nil {
		return "-\t"
	}
	return fmt.Sprintf("%d\t", of(f))
}

// ms gives milliseconds with no more digits than mean something.
func ms(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

func printStorm(w io.Writer, r Report) {
	first := true
	for _, row := range r.Rows {
		if row.Storm == nil {
			continue
		}
		if first {
			fmt.Fprintf(w, "\nA storm, %d orders in one second:\n", stormOrders)
			first = false
		}
		fmt.Fprintf(w, "  %-16s late by %s ms (p50), %s (p99), %s (max); never closed %d\n", row.Name,
			ms(row.Storm.LateP50MS), ms(row.Storm.LateP99MS), ms(row.Storm.LateMaxMS), row.Storm.NeverClosed)
	}
}
