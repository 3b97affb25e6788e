-- The tables of orders in PostgreSQL. Instants are Unix milliseconds; money is in the smallest unit
-- of the currency. Ids compare by bytes: COLLATE "C". Each statement ends with a semicolon at the
-- end of a line.

-- An order. unpaid becomes paid or closed, and neither changes again.
CREATE TABLE orders (
    order_no     TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    user_id      TEXT COLLATE "C" NOT NULL,
    status       TEXT COLLATE "C" NOT NULL CHECK (status IN ('unpaid', 'paid', 'closed')),
    expire_at    BIGINT,                  -- NULL: never (cash on delivery)
    amount       BIGINT NOT NULL CHECK (amount >= 0),
    coupon_id    TEXT COLLATE "C",        -- in user_coupons; a foreign key would only hide why a coupon is refused
    payment_id   TEXT COLLATE "C" UNIQUE, -- the payment that paid it: a payment pays one order
    created_at   BIGINT NOT NULL,
    paid_at      BIGINT,
    closed_at    BIGINT,
    close_reason TEXT,
    CHECK ((status = 'paid') = (payment_id IS NOT NULL)),
    CHECK ((status = 'paid') = (paid_at IS NOT NULL)),
    CHECK ((status = 'closed') = (closed_at IS NOT NULL))
);

-- The orders that a reconcile reads. Paid and closed ones leave the index at the next vacuum, so it
-- stays as small as what is open.
CREATE INDEX orders_unpaid ON orders (order_no) INCLUDE (expire_at)
    WHERE status = 'unpaid' AND expire_at IS NOT NULL;

-- The units of a sku: free, locked by unpaid orders, sold by paid ones. Their sum changes only by a
-- delivery of goods.
CREATE TABLE sku_stock (
    sku_id     TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    stock      BIGINT NOT NULL CHECK (stock >= 0),
    lock_stock BIGINT NOT NULL CHECK (lock_stock >= 0),
    sold       BIGINT NOT NULL CHECK (sold >= 0)
);

-- The lines of an order: written with it, never changed.
CREATE TABLE order_items (
    order_no TEXT COLLATE "C" NOT NULL REFERENCES orders (order_no),
    sku_id   TEXT COLLATE "C" NOT NULL REFERENCES sku_stock (sku_id),
    quantity BIGINT NOT NULL CHECK (quantity > 0),
    PRIMARY KEY (order_no, sku_id)
);

-- What each order did to the stock: lock, then release or sell. The key is what keeps any of them
-- from happening twice.
CREATE TABLE stock_ledger (
    order_no TEXT COLLATE "C" NOT NULL REFERENCES orders (order_no),
    sku_id   TEXT COLLATE "C" NOT NULL REFERENCES sku_stock (sku_id),
    op       TEXT COLLATE "C" NOT NULL CHECK (op IN ('lock', 'release', 'sell')),
    quantity BIGINT NOT NULL CHECK (quantity > 0),
    at       BIGINT NOT NULL,
    PRIMARY KEY (order_no, sku_id, op)
);

-- The coupons of users. A frozen or used one names its order.
CREATE TABLE user_coupons (
    coupon_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    user_id   TEXT COLLATE "C" NOT NULL,
    status    TEXT COLLATE "C" NOT NULL CHECK (status IN ('unused', 'frozen', 'used', 'expired')),
    order_no  TEXT COLLATE "C",
    expire_at BIGINT NOT NULL,
    CHECK ((status IN ('frozen', 'used')) = (order_no IS NOT NULL))
);

-- Money that has to go back: one row for each payment.
CREATE TABLE refunds (
    payment_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    order_no   TEXT COLLATE "C" NOT NULL REFERENCES orders (order_no),
    amount     BIGINT NOT NULL CHECK (amount >= 0),
    reason     TEXT NOT NULL,
    at         BIGINT NOT NULL            -- when the money arrived
);

-- One row for each close that changed something.
CREATE TABLE close_log (
    order_no TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES orders (order_no),
    result   TEXT NOT NULL,
    reason   TEXT NOT NULL,
    at       BIGINT NOT NULL
);
