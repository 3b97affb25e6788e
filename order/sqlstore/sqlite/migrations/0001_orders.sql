-- The tables of orders in SQLite. Instants are Unix milliseconds; money is in the smallest unit of
-- the currency. Each statement ends with a semicolon at the end of a line.

-- An order. unpaid becomes paid or closed, and neither changes again.
CREATE TABLE IF NOT EXISTS orders (
    order_no     TEXT    NOT NULL PRIMARY KEY,
    user_id      TEXT    NOT NULL,
    status       TEXT    NOT NULL CHECK (status IN ('unpaid', 'paid', 'closed')),
    expire_at    INTEGER,                -- NULL: never (cash on delivery)
    amount       INTEGER NOT NULL CHECK (amount >= 0),
    coupon_id    TEXT,                   -- in user_coupons; a foreign key would only hide why a coupon is refused
    payment_id   TEXT UNIQUE,            -- the payment that paid it: a payment pays one order
    created_at   INTEGER NOT NULL,
    paid_at      INTEGER,
    closed_at    INTEGER,
    close_reason TEXT,
    CHECK ((status = 'paid') = (payment_id IS NOT NULL)),
    CHECK ((status = 'paid') = (paid_at IS NOT NULL)),
    CHECK ((status = 'closed') = (closed_at IS NOT NULL))
) STRICT, WITHOUT ROWID;

-- The orders that a reconcile reads. Paid and closed ones leave the index, so it stays as small as
-- what is open.
CREATE INDEX IF NOT EXISTS orders_unpaid ON orders (order_no, expire_at)
    WHERE status = 'unpaid' AND expire_at IS NOT NULL;

-- The lines of an order: written with it, never changed.
CREATE TABLE IF NOT EXISTS order_items (
    order_no TEXT    NOT NULL REFERENCES orders (order_no),
    sku_id   TEXT    NOT NULL REFERENCES sku_stock (sku_id),
    quantity INTEGER NOT NULL CHECK (quantity > 0),
    PRIMARY KEY (order_no, sku_id)
) STRICT, WITHOUT ROWID;

-- The units of a sku: free, locked by unpaid orders, sold by paid ones. Their sum changes only by a
-- delivery of goods.
CREATE TABLE IF NOT EXISTS sku_stock (
    sku_id     TEXT    NOT NULL PRIMARY KEY,
    stock      INTEGER NOT NULL CHECK (stock >= 0),
    lock_stock INTEGER NOT NULL CHECK (lock_stock >= 0),
    sold       INTEGER NOT NULL CHECK (sold >= 0)
) STRICT, WITHOUT ROWID;

-- What each order did to the stock: lock, then release or sell. The key is what keeps any of them
-- from happening twice.
CREATE TABLE IF NOT EXISTS stock_ledger (
    order_no TEXT    NOT NULL REFERENCES orders (order_no),
    sku_id   TEXT    NOT NULL REFERENCES sku_stock (sku_id),
    op       TEXT    NOT NULL CHECK (op IN ('lock', 'release', 'sell')),
    quantity INTEGER NOT NULL CHECK (quantity > 0),
    at       INTEGER NOT NULL,
    PRIMARY KEY (order_no, sku_id, op)
) STRICT, WITHOUT ROWID;

-- The coupons of users. A frozen or used one names its order.
CREATE TABLE IF NOT EXISTS user_coupons (
    coupon_id TEXT    NOT NULL PRIMARY KEY,
    user_id   TEXT    NOT NULL,
    status    TEXT    NOT NULL CHECK (status IN ('unused', 'frozen', 'used', 'expired')),
    order_no  TEXT,
    expire_at INTEGER NOT NULL,
    CHECK ((status IN ('frozen', 'used')) = (order_no IS NOT NULL))
) STRICT, WITHOUT ROWID;

-- Money that has to go back: one row for each payment.
CREATE TABLE IF NOT EXISTS refunds (
    payment_id TEXT    NOT NULL PRIMARY KEY,
    order_no   TEXT    NOT NULL REFERENCES orders (order_no),
    amount     INTEGER NOT NULL CHECK (amount >= 0),
    reason     TEXT    NOT NULL,
    at         INTEGER NOT NULL          -- when the money arrived
) STRICT, WITHOUT ROWID;

-- One row for each close that changed something.
CREATE TABLE IF NOT EXISTS close_log (
    order_no TEXT    NOT NULL PRIMARY KEY REFERENCES orders (order_no),
    result   TEXT    NOT NULL,
    reason   TEXT    NOT NULL,
    at       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
