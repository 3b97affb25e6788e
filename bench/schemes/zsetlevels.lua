-- Moves what is due soon from one ZSet to another, and answers how many that were.
-- KEYS[1] from  KEYS[2] to  ARGV[1] due until, Unix milliseconds  ARGV[2] how many at most
local found = redis.call('ZRANGEBYSCORE', KEYS[1], 0, ARGV[1], 'WITHSCORES', 'LIMIT', 0, ARGV[2])
for i = 1, #found, 2 do
	redis.call('ZADD', KEYS[2], found[i + 1], found[i])
	redis.call('ZREM', KEYS[1], found[i])
end
return #found / 2
