-- Takes what is due into process, and answers with it.
-- KEYS[1] what waits  KEYS[2] what is in process
-- ARGV[1] now, Unix milliseconds  ARGV[2] how many at most  ARGV[3] prefix of the status hashes
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], 0, ARGV[1], 'LIMIT', 0, ARGV[2])
for _, id in ipairs(ids) do
	redis.call('ZREM', KEYS[1], id)
	redis.call('ZADD', KEYS[2], ARGV[1], id)
	redis.call('HSET', ARGV[3] .. id, 'status', 'processing')
end
return ids
