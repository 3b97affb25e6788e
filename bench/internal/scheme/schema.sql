DROP TABLE IF EXISTS orders, stock, coupons, local_messages;

CREATE TABLE orders (
    order_no  BIGINT PRIMARY KEY,
    user_id   BIGINT NOT NULL,
    status    TINYINT NOT NULL,   -- 0 unpaid, 1 paid, 2 closed
    expire_at BIGINT NOT NULL,    -- Unix milliseconds
    sku_id    INT NOT NULL,
    quantity  INT NOT NULL,
    coupon_id BIGINT NOT NULL,
    KEY (status, expire_at)
);

CREATE TABLE stock (
    sku_id     INT PRIMARY KEY,
    stock      INT NOT NULL,
    lock_stock INT NOT NULL
);

CREATE TABLE coupons (
    coupon_id BIGINT PRIMARY KEY,
    status    TINYINT NOT NULL    -- 0 unused, 1 frozen
);

-- The messages of the scheme that writes each to the database before it is sent.
CREATE TABLE local_messages (
    order_no   BIGINT PRIMARY KEY,
    due_ms     BIGINT NOT NULL,
    status     TINYINT NOT NULL,  -- 0 to be sent, 1 sent, 2 consumed
    written_ms BIGINT NOT NULL,
    KEY (status, written_ms)
);
