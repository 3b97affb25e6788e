package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// Claim is one claim of the articles, and what came of it.
type Claim struct {
	Claim   string
	Verdict string
	Figure  string
}

// The verdicts.
const (
	confirmed = "confirmed"
	refuted   = "refuted"
	inPart    = "in part"
)

// verdict is confirmed or refuted.
func verdict(ok bool) string {
	if ok {
		return confirmed
	}
	return refuted
}

// claimed is what tries a claim. It answers with none where that cannot be tried: a row that was not
// asked for, a server that is absent.
type claimed func(ctx context.Context, o options, r Report, s *servers) ([]Claim, error)

func claims(ctx context.Context, o options, r Report, s *servers, progress io.Writer) (all []Claim, err error) {
	began := time.Now()
	for _, c := range []struct {
		name string
		try  claimed
	}{
		{"what the table says", claimsOfTable},
		{"key expiry", claimsOfExpiry},
		{"the cost of a scan", claimsOfScan},
		{"the heap", claimOfHeap},
		{"slow handlers on a wheel", claimOfSlowHandler},
		{"batches at a kill", claimOfBatches},
		{"times to pay that differ", claimOfHeadOfLine},
		{"times of whole seconds", claimOfWholeSeconds},
	} {
		fmt.Fprintf(progress, "schemes: claims: %s %s\n", time.Since(began).Round(time.Second), c.name)
		found, err := c.try(ctx, o, r, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// row finds a row that has run.
func (r Report) row(name string) (Row, bool) {
	for _, row := range r.Rows {
		if row.Name == name && row.Plain != nil {
			return row, true
		}
	}
	return Row{}, false
}

// picked tells whether a row of the scheme was asked for and can run.
func picked(o options, s *servers, scheme string) bool {
	for _, r := range o.rows {
		if r.scheme == scheme {
			return s.missing(r) == ""
		}
	}
	return false
}

// claimsOfTable are those that the rows decide.
func claimsOfTable(_ context.Context, o options, r Report, _ *servers) (all []Claim, _ error) {
	if c, ok := claimOfPeriods(o, r, "db-scan/", "a scan is late by up to its period"); ok {
		all = append(all, c)
	}
	if c, ok := claimOfPeriods(o, r, "zset-poll/", "ZSet polling is late by up to its interval"); ok {
		all = append(all, c)
	}
	if c, ok := claimOfLoss(r); ok {
		all = append(all, c)
	}
	return all, nil
}

// claimOfPeriods holds where half of the orders are late by half a period or more, and the latest by more
// than most of one. How much longer than a period is the time that it took to close what was found.
func claimOfPeriods(o options, r Report, prefix, claim string) (Claim, bool) {
	c := Claim{Claim: claim, Verdict: confirmed}
	var figures []string
	for _, wanted := range o.rows {
		row, ok := r.row(wanted.name)
		if !ok || !strings.HasPrefix(row.Name, prefix) {
			continue
		}
		period := wanted.period(r.Scale).Seconds() * 1000
		if row.Plain.LateMaxMS < 0.8*period {
			c.Verdict = refuted
		} else if row.Plain.LateMaxMS > 1.5*period {
			c.Verdict = inPart + ": later than that, while it closes one after the other"
		}
		figures = append(figures, fmt.Sprintf("every %s ms: p50 %s, max %s ms", ms(period), ms(row.Plain.LateP50MS), ms(row.Plain.LateMaxMS)))
	}
	c.Figure = strings.Join(figures, "; ")
	return c, len(figures) > 0
}

// claimOfLoss holds where all that expired after a kill in mid-run was never closed.
func claimOfLoss(r Report) (Claim, bool) {
	c := Claim{Claim: "the heap and the bare wheel lose all at a restart", Verdict: confirmed}
	var figures []string
	for _, name := range []string{"delay-queue", "wheel-only", "wheel-inline"} {
		row, ok := r.row(name)
		if !ok || row.Kill == nil {
			continue
		}
		if row.Kill.NeverClosed < row.Kill.AfterKill {
			c.Verdict = refuted
		}
		figures = append(figures, fmt.Sprintf("%s: %d of %d never closed, of which %d expired after the kill", name, row.Kill.NeverClosed, row.Kill.Orders, row.Kill.AfterKill))
	}
	c.Figure = strings.Join(figures, "; ")
	return c, len(figures) > 0
}
