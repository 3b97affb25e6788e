-- The tables of orders in MySQL and MariaDB. Instants are Unix milliseconds; money is in the smallest
-- unit of the currency. Each statement ends with a semicolon at the end of a line, and does nothing
-- when it is repeated: MySQL commits each by itself.
--
-- Ids are VARBINARY, so that they compare by bytes. A text column would not do, not even with the
-- collation utf8mb4_bin, which takes 'a' and 'a ' for one: MySQL and MariaDB have no collation of the
-- same name that does not. (A client shows the column as text when asked to: mysql
-- --skip-binary-as-hex.)

-- An order. unpaid becomes paid or closed, and neither changes again.
--
-- orders_unpaid is what a reconcile reads. MySQL has no partial indexes, so it has the paid and closed
-- ones too, some 60 bytes each. They lie behind each other by status: a page of unpaid orders
-- reads these alone, however many others there are.
CREATE TABLE IF NOT EXISTS orders (
    order_no     VARBINARY(256) NOT NULL PRIMARY KEY,
    user_id      VARBINARY(256) NOT NULL,
    status       VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL CHECK (status IN ('unpaid', 'paid', 'closed')),
    expire_at    BIGINT,                -- NULL: never (cash on delivery)
    amount       BIGINT NOT NULL CHECK (amount >= 0),
    coupon_id    VARBINARY(256),        -- in user_coupons; a foreign key would only hide why a coupon is refused
    payment_id   VARBINARY(256) UNIQUE, -- the payment that paid it: a payment pays one order
    created_at   BIGINT NOT NULL,
    paid_at      BIGINT,
    closed_at    BIGINT,
    close_reason VARCHAR(255),
    INDEX orders_unpaid (status, order_no, expire_at),
    CHECK ((status = 'paid') = (payment_id IS NOT NULL)),
    CHECK ((status = 'paid') = (paid_at IS NOT NULL)),
    CHECK ((status = 'closed') = (closed_at IS NOT NULL))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

-- The units of a sku: free, locked by unpaid orders, sold by paid ones. Their sum changes only by a
-- delivery of goods.
CREATE TABLE IF NOT EXISTS sku_stock (
    sku_id     VARBINARY(256) NOT NULL PRIMARY KEY,
    stock      BIGINT NOT NULL CHECK (stock >= 0),
    lock_stock BIGINT NOT NULL CHECK (lock_stock >= 0),
    sold       BIGINT NOT NULL CHECK (sold >= 0)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

-- The lines of an order: written with it, never changed.
CREATE TABLE IF NOT EXISTS order_items (
    order_no VARBINARY(256) NOT NULL,
    sku_id   VARBINARY(256) NOT NULL,
    quantity BIGINT NOT NULL CHECK (quantity > 0),
    PRIMARY KEY (order_no, sku_id),
    FOREIGN KEY (order_no) REFERENCES orders (order_no),
    FOREIGN KEY (sku_id) REFERENCES sku_stock (sku_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

-- What each order did to the stock: lock, then release or sell. The key is what keeps any of them
-- from happening twice.
CREATE TABLE IF NOT EXISTS stock_ledger (
    order_no VARBINARY(256) NOT NULL,
    sku_id   VARBINARY(256) NOT NULL,
    op       VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL CHECK (op IN ('lock', 'release', 'sell')),
    quantity BIGINT NOT NULL CHECK (quantity > 0),
    at       BIGINT NOT NULL,
    PRIMARY KEY (order_no, sku_id, op),
    FOREIGN KEY (order_no) REFERENCES orders (order_no),
    FOREIGN KEY (sku_id) REFERENCES sku_stock (sku_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

-- The coupons of users. A frozen or used one names its order.
CREATE TABLE IF NOT EXISTS user_coupons (
    coupon_id VARBINARY(256) NOT NULL PRIMARY KEY,
    user_id   VARBINARY(256) NOT NULL,
    status    VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL CHECK (status IN ('unused', 'frozen', 'used', 'expired')),
    order_no  VARBINARY(256),
    expire_at BIGINT NOT NULL,
    CHECK ((status IN ('frozen', 'used')) = (order_no IS NOT NULL))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

-- Money that has to go back: one row for each payment.
CREATE TABLE IF NOT EXISTS refunds (
    payment_id VARBINARY(256) NOT NULL PRIMARY KEY,
    order_no   VARBINARY(256) NOT NULL,
    amount     BIGINT NOT NULL CHECK (amount >= 0),
    reason     VARCHAR(255) NOT NULL,
    at         BIGINT NOT NULL,         -- when the money arrived
    FOREIGN KEY (order_no) REFERENCES orders (order_no)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

-- One row for each close that changed something.
CREATE TABLE IF NOT EXISTS close_log (
    order_no VARBINARY(256) NOT NULL PRIMARY KEY,
    result   VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    reason   VARCHAR(255) NOT NULL,
    at       BIGINT NOT NULL,
    FOREIGN KEY (order_no) REFERENCES orders (order_no)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;
