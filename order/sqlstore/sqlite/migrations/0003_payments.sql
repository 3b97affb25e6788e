-- The payments that were recorded, as orders.payment_id or in refunds. The key is what keeps one
-- from paying an order and being refunded for another.
CREATE TABLE IF NOT EXISTS payments (
    payment_id TEXT NOT NULL PRIMARY KEY,
    order_no   TEXT NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO payments (payment_id, order_no)
SELECT payment_id, order_no FROM orders WHERE payment_id IS NOT NULL
UNION
SELECT payment_id, order_no FROM refunds WHERE payment_id NOT IN (SELECT payment_id FROM orders WHERE payment_id IS NOT NULL);
