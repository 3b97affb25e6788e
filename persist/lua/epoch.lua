-- Raises the epoch.
--
-- Returns  the new one
pass_gate(false) -- it needs no memory to speak of
return redis.call('INCR', EPOCH)
