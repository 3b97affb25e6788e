-- The tables of a mall as many have them: numbers for states, DATETIMEs of whole seconds, the stock
-- of a sku in one row. Instants are UTC: in local time the hour that comes twice in autumn would
-- close orders an hour early or late, where there is such an hour.

CREATE TABLE pms_sku_stock (
    sku_code   VARCHAR(64) NOT NULL PRIMARY KEY,
    stock      INT         NOT NULL CHECK (stock >= 0),      -- on hand, also what is locked
    lock_stock INT         NOT NULL CHECK (lock_stock >= 0)  -- of these, held by orders to be paid
);

CREATE TABLE oms_order (
    order_sn     VARCHAR(64) NOT NULL PRIMARY KEY,
    member_id    BIGINT      NOT NULL,
    status       INT         NOT NULL, -- 0 to be paid, 1 to be shipped, 2 shipped, 3 completed, 4 closed
    pay_amount   BIGINT      NOT NULL, -- in cents
    create_time  DATETIME    NOT NULL,
    expire_time  DATETIME,             -- rounded up to the second; NULL: never (cash on delivery)
    payment_time DATETIME,
    close_time   DATETIME
);

-- For the reconcile: the orders to be paid, by number.
CREATE INDEX oms_order_unpaid ON oms_order (status, order_sn, expire_time);

CREATE TABLE oms_order_item (
    order_sn         VARCHAR(64) NOT NULL,
    sku_code         VARCHAR(64) NOT NULL,
    product_quantity INT         NOT NULL CHECK (product_quantity > 0),
    PRIMARY KEY (order_sn, sku_code)
);
