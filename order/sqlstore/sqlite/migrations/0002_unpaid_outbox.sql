-- How many unpaid orders each user has.
CREATE TABLE IF NOT EXISTS user_unpaid (
    user_id TEXT    NOT NULL PRIMARY KEY,
    unpaid  INTEGER NOT NULL CHECK (unpaid >= 0)
) STRICT, WITHOUT ROWID;

INSERT INTO user_unpaid (user_id, unpaid)
SELECT user_id, COUNT(*) FROM orders
WHERE status = 'unpaid' AND user_id NOT IN (SELECT user_id FROM user_unpaid)
GROUP BY user_id;

-- What a close has to tell other systems: one row for each message, written by the close.
CREATE TABLE IF NOT EXISTS outbox (
    order_no TEXT    NOT NULL REFERENCES orders (order_no),
    kind     TEXT    NOT NULL,
    reason   TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    sent_at  INTEGER,                    -- NULL: not sent yet
    PRIMARY KEY (order_no, kind)
) STRICT, WITHOUT ROWID;

-- What is sent leaves the index.
CREATE INDEX IF NOT EXISTS outbox_unsent ON outbox (order_no, at) WHERE sent_at IS NULL;
