-- A flush of one schedule, or of one cancel, of an id that is gone or due for the first
-- time, as a caller sends it who is alone. It does what flush.lua would, and stands in front
-- of all the functions, since making them would take as long as the whole of this. What
-- is not so plain, and a number that is not higher, changes nothing here and goes on there.
-- What is not dead has nothing to do with reasons, so that is not looked at.
--
-- KEYS     as in common.lua
-- ARGV     session, number; s, 1, 0, 2, id, due ms; or x, 1, 0, 1, id
-- Returns  as flush.lua
if ARGV[3] == 's' and #ARGV == 8 or ARGV[3] == 'x' and #ARGV == 7 then
  local id, saved, last = ARGV[7], redis.call('HGET', KEYS[6], ARGV[1]), '0'
  if saved then last = string.match(saved, '^(%d+) ') or '0' end
  if tonumber(last) < tonumber(ARGV[2])
    and not redis.call('HGET', KEYS[3], id)
    and not redis.call('ZMSCORE', KEYS[2], id)[1]
    and not redis.call('ZMSCORE', KEYS[4], id)[1]
  then
    local time = redis.call('TIME')
    local text = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
    if ARGV[3] == 's' then
      redis.call('ZADD', KEYS[1], ARGV[8], id)
    else
      text = text .. ' ' .. redis.call('ZREM', KEYS[1], id) -- 1, CANCELLED, or 0, NOT_FOUND
    end
    redis.call('HSET', KEYS[6], ARGV[1], ARGV[2] .. ' ' .. text)
    return { time[1], time[2], last, text }
  end
end
