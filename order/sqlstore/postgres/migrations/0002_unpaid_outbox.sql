-- How many unpaid orders each user has.
CREATE TABLE user_unpaid (
    user_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    unpaid  BIGINT NOT NULL CHECK (unpaid >= 0)
);

INSERT INTO user_unpaid (user_id, unpaid)
SELECT user_id, COUNT(*) FROM orders WHERE status = 'unpaid' GROUP BY user_id;

-- What a close has to tell other systems: one row for each message, written by the close.
CREATE TABLE outbox (
    order_no TEXT COLLATE "C" NOT NULL REFERENCES orders (order_no),
    kind     TEXT COLLATE "C" NOT NULL,
    reason   TEXT NOT NULL,
    at       BIGINT NOT NULL,
    sent_at  BIGINT,                      -- NULL: not sent yet
    PRIMARY KEY (order_no, kind)
);

-- What is sent leaves the index at the next vacuum.
CREATE INDEX outbox_unsent ON outbox (order_no) INCLUDE (at) WHERE sent_at IS NULL;
