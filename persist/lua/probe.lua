-- Runs every command that the other scripts need, on an empty id, which no
-- task has, and leaves nothing behind. The error of the first that is unknown
-- or forbidden is the answer. HSET, the one that adds something, comes when
-- nothing after it can fail. Then it forgets the sessions that have not been
-- used for long.
--
-- Last it stores the number of shards, unless one is stored.
--
-- ARGV     for how long, in ms; how many shards there are
-- Returns  how many shards there are by what is stored
local _, now = clock()
local shards = redis.call('GET', SHARDS)
if shards and shards ~= ARGV[2] then return shards end
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
redis.call('HGET', SESSIONS, '')
redis.call('HSCAN', SESSIONS, '0', 'COUNT', '1')
redis.call('HDEL', CLAIMS, '')
redis.call('HDEL', REASONS, '')
redis.call('HSET', CLAIMS, '', '')
redis.call('HDEL', CLAIMS, '')

-- Some hundreds at a time: a crash loop may have left many.
local unused, cursor = {}, '0'
for _ = 1, 10 do
  local scan = redis.call('HSCAN', SESSIONS, cursor, 'COUNT', '100')
  for i = 1, #scan[2], 2 do
    local used = string.match(scan[2][i + 1], '^%d+ (%d+)')
    if not used or tonumber(used) < now - tonumber(ARGV[1]) then unused[#unused + 1] = scan[2][i] end
  end
  cursor = scan[1]
  if cursor == '0' then break end
end
write_many('HDEL', SESSIONS, unused)
if not shards then
  shards = ARGV[2]
  redis.call('SET', SHARDS, shards)
end
return shards
