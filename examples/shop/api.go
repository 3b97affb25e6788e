package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/orderwheel/orderwheel/order/sqlstore"
)

// requestWithin bounds a request, so that it is answered while Redis or the database is away. It is
// less than the server's write timeout.
const requestWithin = 5 * time.Second

// api answers requests.
type api struct {
	shop    *shop
	scan    *scan
	trigger trigger
	dialect sqlstore.Dialect
	log     *slog.Logger
}

// reply is what a request is answered with, as JSON.
type reply struct {
	status int
	body   any
}

func ok(body any) reply { return reply{http.StatusOK, body} }

type endpoint func(http.ResponseWriter, *http.Request) (reply, error)

// handler routes requests. Every answer is JSON, also that to an unknown path or a wrong method.
func (a *api) handler() http.Handler {
	routes := map[string]map[string]endpoint{
		"/orders":              {"POST": a.createOrder},
		"/orders/{no}":         {"GET": a.getOrder},
		"/orders/{no}/pay":     {"POST": a.payOrder},
		"/orders/{no}/extend":  {"POST": a.extendOrder},
		"/orders/{no}/abandon": {"POST": a.abandonOrder},
		"/stock/{sku}":         {"GET": a.getStock, "POST": a.addStock},
		"/coupons":             {"POST": a.addCoupon},
		"/healthz":             {"GET": a.health},
		"/stats":               {"GET": a.stats},
	}
	mux := http.NewServeMux()
	for path, methods := range routes {
		var allowed []string
		for method, serve := range methods {
			mux.Handle(method+" "+path, a.answer(serve))
			allowed = append(allowed, method)
		}
		slices.Sort(allowed)
		allow := strings.Join(allowed, ", ")
		mux.Handle(path, a.answer(func(w http.ResponseWriter, r *http.Request) (reply, error) {
			w.Header().Set("Allow", allow)
			return reply{}, faultf(http.StatusMethodNotAllowed, "the method is %s: use %s", r.Method, allow)
		}))
	}
	mux.Handle("/", a.answer(func(_ http.ResponseWriter, r *http.Request) (reply, error) {
		return reply{}, faultf(http.StatusNotFound, "the path %s is unknown: see the README", r.URL.Path)
	}))
	return mux
}

// answer turns an endpoint into a handler. After a 503 the request may be sent again.
func (a *api) answer(serve endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, stop := context.WithTimeout(r.Context(), requestWithin)
		defer stop()
		rep, err := serve(w, r.WithContext(ctx))
		if err != nil {
			status, text := statusOf(err)
			if status >= http.StatusInternalServerError {
				a.log.Error("request_failed", slog.String("path", r.URL.Path), slog.Int("status", status), slog.Any("error", err))
			}
			if status == http.StatusServiceUnavailable {
				w.Header().Set("Retry-After", "1")
			}
			rep = reply{status, map[string]string{"error": text}}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(rep.status)
		out := json.NewEncoder(w)
		out.SetEscapeHTML(false)
		_ = out.Encode(rep.body) // the sender has hung up
	})
}
