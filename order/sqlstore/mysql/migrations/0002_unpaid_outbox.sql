-- How many unpaid orders each user has.
CREATE TABLE IF NOT EXISTS user_unpaid (
    user_id VARBINARY(256) NOT NULL PRIMARY KEY,
    unpaid  BIGINT NOT NULL CHECK (unpaid >= 0)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

INSERT INTO user_unpaid (user_id, unpaid)
SELECT user_id, COUNT(*) FROM orders
WHERE status = 'unpaid' AND user_id NOT IN (SELECT user_id FROM user_unpaid)
GROUP BY user_id;

-- What a close has to tell other systems: one row for each message, written by the close.
-- outbox_unsent has what is sent too, behind what is not.
CREATE TABLE IF NOT EXISTS outbox (
    order_no VARBINARY(256) NOT NULL,
    kind     VARBINARY(64) NOT NULL,
    reason   VARCHAR(255) NOT NULL,
    at       BIGINT NOT NULL,
    sent_at  BIGINT,                    -- NULL: not sent yet
    PRIMARY KEY (order_no, kind),
    INDEX outbox_unsent (sent_at, order_no, at),
    FOREIGN KEY (order_no) REFERENCES orders (order_no)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;
