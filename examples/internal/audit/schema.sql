CREATE TABLE IF NOT EXISTS audit_stock (
    sku_id  TEXT    NOT NULL PRIMARY KEY,
    initial INTEGER NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS audit_calls (
    call      TEXT    NOT NULL PRIMARY KEY,
    order_no  TEXT    NOT NULL,
    source    TEXT    NOT NULL, -- wheel, sweep or recovery
    attempt   INTEGER NOT NULL,
    entry_us  INTEGER NOT NULL, -- Unix microseconds
    commit_us INTEGER,          -- after the handler returned, so after its commit; NULL: it never did
    error     TEXT              -- what it returned; NULL: nothing
) STRICT;

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
