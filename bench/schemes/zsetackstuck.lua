-- Puts back what has been in process for too long, and answers how many that were.
-- KEYS[1] what is in process  KEYS[2] what waits
-- ARGV[1] taken until, Unix milliseconds  ARGV[2] now  ARGV[3] prefix of the status hashes
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], 0, ARGV[1])
for _, id in ipairs(ids) do
	redis.call('ZREM', KEYS[1], id)
	redis.call('ZADD', KEYS[2], ARGV[2], id)
	redis.call('HSET', ARGV[3] .. id, 'status', 'pending')
end
return #ids
