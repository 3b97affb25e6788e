-- Removes what is due and answers with it.
-- KEYS[1] the ZSet  ARGV[1] now, Unix milliseconds  ARGV[2] how many at most
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], 0, ARGV[1], 'LIMIT', 0, ARGV[2])
if #ids > 0 then
	redis.call('ZREM', KEYS[1], unpack(ids))
end
return ids
