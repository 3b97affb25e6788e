package main

import (
	"database/sql"
	"errors"
	"net/http"
)

const maxStock = 1_000_000_000_000

type stockView struct {
	SKU    string `json:"sku"`
	Stock  int64  `json:"stock"`  // free
	Locked int64  `json:"locked"` // by unpaid orders
	Sold   int64  `json:"sold"`   // to paid ones
}

func (a *api) getStock(_ http.ResponseWriter, r *http.Request) (reply, error) {
	v := stockView{SKU: r.PathValue("sku")}
	var f faults
	f.id("sku", v.SKU)
	if err := f.err(); err != nil {
		return reply{}, err // some databases would not look for it, but fail
	}
	err := a.shop.store.DB().QueryRowContext(r.Context(), a.dialect.Rebind(
		`SELECT stock, lock_stock, sold FROM sku_stock WHERE sku_id = ?`), v.SKU).Scan(&v.Stock, &v.Locked, &v.Sold)
	if errors.Is(err, sql.ErrNoRows) {
		return reply{}, faultf(http.StatusNotFound, "sku %q is unknown: add stock of it first", v.SKU)
	}
	return ok(v), err
}

// addStock takes a delivery in. It alone is not safe to repeat: after a 503 look first.
func (a *api) addStock(w http.ResponseWriter, r *http.Request) (reply, error) {
	body, err := readBody[struct {
		Add *int64 `json:"add"`
	}](w, r)
	if err != nil {
		return reply{}, err
	}
	var f faults
	f.id("sku", r.PathValue("sku"))
	n := f.number("add", body.Add, 1, maxStock)
	if err := f.err(); err != nil {
		return reply{}, err
	}
	if err := a.shop.store.AddStock(r.Context(), r.PathValue("sku"), n); err != nil {
		return reply{}, err
	}
	return a.getStock(w, r)
}

// addCoupon gives a user a coupon; one that stands already is a 409.
func (a *api) addCoupon(w http.ResponseWriter, r *http.Request) (reply, error) {
	body, err := readBody[struct {
		CouponID string `json:"coupon_id"`
		UserID   string `json:"user_id"`
		ExpireAt string `json:"expire_at"`
	}](w, r)
	if err != nil {
		return reply{}, err
	}
	var f faults
	f.id("coupon_id", body.CouponID)
	f.id("user_id", body.UserID)
	expireAt := f.instant("expire_at", body.ExpireAt)
	if err := f.err(); err != nil {
		return reply{}, err
	}
	if err := a.shop.store.AddCoupon(r.Context(), body.CouponID, body.UserID, expireAt); err != nil {
		return reply{}, err
	}
	return reply{http.StatusCreated, body}, nil
}
