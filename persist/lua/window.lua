-- Reads due tasks in the order of due time, then id by bytes, from a cursor on.
--
-- ARGV     cursor's due ms, cursor's id, last due ms, limit
-- Returns  TIME's seconds and microseconds; 1 if there is more up to the last
--          due ms, else 0; then id and score of each, in one table that is
--          passed on as Redis gave it
local after_ms, after_id, last_ms, limit = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

local time = clock()
local start = rank(DUE, after_ms, after_id)
local found = redis.call('ZRANGE', DUE, digits(start), digits(start + limit), 'WITHSCORES')
local n, more = #found, 0
-- A score beyond year 9999, that only a hand can write, is due never: there is
-- no cursor for it.
while n > 0 and to_number(found[n]) > last_ms do
  found[n], found[n - 1] = nil, nil
  n = n - 2
end
if n > 2 * limit then
  more = 1
  found[n], found[n - 1] = nil, nil
end
return { time[1], time[2], more, found }
