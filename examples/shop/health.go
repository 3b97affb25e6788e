package main

import (
	"net/http"

	"github.com/orderwheel/orderwheel"
)

// health is for a readiness probe and the alarm, not for one that kills: an engine whose Redis is
// away gets no better by a restart. A scan that failed is a warning: every instance scans, so one order
// that cannot be closed would take all of them out of service, and payments with them.
func (a *api) health(http.ResponseWriter, *http.Request) (reply, error) {
	v := struct {
		OK       bool     `json:"ok"`
		Problems []string `json:"problems,omitempty"`
		Warnings []string `json:"warnings,omitempty"`
	}{}
	if a.shop.engine != nil {
		h := a.shop.engine.Health()
		v.Problems, v.Warnings = h.Problems, h.Warnings
	}
	if p := a.scan.stats().Problem; p != "" {
		v.Warnings = append(v.Warnings, "the last scan failed: "+p)
	}
	v.OK = len(v.Problems) == 0
	if !v.OK {
		return reply{http.StatusServiceUnavailable, v}, nil
	}
	return ok(v), nil
}

// stats gives the numbers to watch: see docs/moving.md.
func (a *api) stats(http.ResponseWriter, *http.Request) (reply, error) {
	v := struct {
		Trigger       trigger
		EnginePercent share
		Engine        *orderwheel.Stats `json:",omitempty"`
		Scan          scanStats
	}{Trigger: a.trigger, EnginePercent: a.shop.share, Scan: a.scan.stats()}
	if a.shop.engine != nil {
		s := a.shop.engine.Stats()
		v.Engine = &s
	}
	return ok(v), nil
}
