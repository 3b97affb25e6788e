-- Raises the epoch.
--
-- Returns  the new one
return redis.call('INCR', EPOCH)
