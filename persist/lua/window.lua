-- Reads due tasks in the order of due time, then id by bytes, from a cursor on.
--
-- ARGV     cursor's due ms, cursor's id, last due ms, limit
-- Returns  TIME's seconds and microseconds; 1 if there is more up to the last
--          due ms, else 0; then id, due ms of each
local after_ms, after_id, last_ms, limit = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

local time = clock()
local start = rank(DUE, after_ms, after_id)
local found = redis.call('ZRANGE', DUE, digits(start), digits(start + limit), 'WITHSCORES')
local reply = { time[1], time[2], 0 }
for i = 1, #found, 2 do
  -- A score beyond year 9999, that only a hand can write, is due never: there is
  -- no cursor for it.
  if to_number(found[i + 1]) > last_ms then break end
  local due = to_ms(found[i + 1])
  if i > 2 * limit then
    reply[3] = 1
    break
  end
  reply[#reply + 1] = found[i]
  reply[#reply + 1] = digits(due)
end
return reply
