-- Takes back what runs with its lease over: running -> due now, lost; a
-- successor wins, then a cancel. Oldest lease first.
--
-- A record whose entry in running is gone (somebody removed it) has no lease
-- that could end. So each call also looks at a few records of claims, and goes
-- round them all in time.
--
-- ARGV     limit; cursor of that round, 0 at first
-- Returns  how many it took back; the next cursor; then id, due ms of each that
--          is due now
local limit, cursor = tonumber(ARGV[1]), ARGV[2]
local _, now = clock()
local ids = redis.call('ZRANGEBYSCORE', RUNNING, '-inf', digits(now), 'LIMIT', '0', ARGV[1])

if #ids < limit then
  local scan = redis.call('HSCAN', CLAIMS, cursor, 'COUNT', '100')
  cursor = scan[1]
  for i = 1, #scan[2], 2 do ids[#ids + 1] = scan[2][i] end
end

local _, tasks = fetch(ids)
local reply = { 0, cursor }
for _, t in ipairs(tasks) do
  if t.lease and t.lease <= now then
    if reply[1] == limit then break end
    reply[1] = reply[1] + 1
    local state, due = reap(t, now)
    if state == SCHEDULED then
      reply[#reply + 1] = t.id
      reply[#reply + 1] = digits(due)
    end
  end
end
store(tasks)
return reply
