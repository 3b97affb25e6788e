CREATE TABLE IF NOT EXISTS audit_stock (
    sku_id  TEXT    NOT NULL PRIMARY KEY,
    initial INTEGER NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS audit_calls (
    call      TEXT    NOT NULL PRIMARY KEY,
    pid       INTEGER NOT NULL,
    order_no  TEXT    NOT NULL,
    source    TEXT    NOT NULL, -- wheel, sweep, recovery or reconcile
    attempt   INTEGER NOT NULL,
    claim     TEXT    NOT NULL, -- claimed or unclaimed
    now_us    INTEGER NOT NULL, -- the store's clock as the task has it, Unix microseconds
    entry_us  INTEGER NOT NULL, -- Unix microseconds
    commit_us INTEGER,          -- after the handler returned, so after its commit; NULL: it never did
    error     TEXT              -- what it returned; NULL: nothing
) STRICT;

CREATE TABLE IF NOT EXISTS audit_expiries (
    order_no  TEXT NOT NULL,
    expire_at INTEGER           -- that the order had before it was moved; NULL: none
) STRICT;

CREATE TRIGGER IF NOT EXISTS audit_expiry
AFTER UPDATE OF expire_at ON orders
BEGIN
    INSERT INTO audit_expiries (order_no, expire_at) VALUES (OLD.order_no, OLD.expire_at);
END;

CREATE TABLE IF NOT EXISTS audit_unfreezes (
    coupon_id TEXT NOT NULL
) STRICT;

-- Giving back what is not frozen changes no figure, and is what a second close would do: it counts. Only
-- an unused coupon that runs out is another matter.
CREATE TRIGGER IF NOT EXISTS audit_unfreeze
AFTER UPDATE OF status ON user_coupons
WHEN NEW.status IN ('unused', 'expired') AND NOT (OLD.status = 'unused' AND NEW.status = 'expired')
BEGIN
    INSERT INTO audit_unfreezes (coupon_id) VALUES (NEW.coupon_id);
END;
