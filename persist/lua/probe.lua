-- Runs every command that the other scripts need, on an empty id, which no
-- task has, and leaves nothing behind. The error of the first that is unknown
-- or forbidden is the answer. HSET, the one that adds something, comes when
-- nothing after it can fail.
--
-- Returns  1
redis.call('TIME')
redis.call('ZMSCORE', DUE, '')
redis.call('ZMSCORE', RUNNING, '')
redis.call('HMGET', CLAIMS, '')
redis.call('HSCAN', CLAIMS, '0', 'COUNT', '1')
redis.call('ZMSCORE', DEAD, '')
redis.call('HMGET', REASONS, '')
redis.call('HSCAN', REASONS, '0', 'COUNT', '1')
redis.call('ZCARD', DEAD)
redis.call('HLEN', REASONS)
redis.call('ZCOUNT', DUE, '0', '0')
redis.call('ZRANGE', DUE, '0', '0', 'WITHSCORES')
redis.call('ZRANGEBYSCORE', RUNNING, '-inf', '0', 'LIMIT', '0', '1')
redis.call('ZADD', DUE, 'XX', '0', '')
redis.call('ZADD', RUNNING, 'XX', '0', '')
redis.call('ZADD', DEAD, 'XX', '0', '')
redis.call('ZREM', DUE, '')
redis.call('ZREM', RUNNING, '')
redis.call('ZREM', DEAD, '')
redis.call('HDEL', CLAIMS, '')
redis.call('HDEL', REASONS, '')
redis.call('HSET', CLAIMS, '', '')
redis.call('HDEL', CLAIMS, '')
return 1
