-- Counts the tasks, each place in O(1).
--
-- Returns  how many are due, running, dead
return { redis.call('ZCARD', DUE), redis.call('ZCARD', RUNNING), redis.call('ZCARD', DEAD) }
