-- Takes back what runs with its lease over: running -> due now, lost; a
-- successor wins, then a cancel. Oldest lease first.
--
-- A record whose entry in running is gone (somebody removed it) has no lease
-- that could end, and a reason whose entry in dead is gone would stay for ever. So
-- each call also looks at a few records, first of claims, then of reasons, and goes
-- round them all in time.
--
-- ARGV     limit; cursor of that round, 0 at first; among the reasons it begins with r
-- Returns  how many it took back; the next cursor; then id, due ms of each that
--          is due now
local limit, cursor = tonumber(ARGV[1]), ARGV[2]
local _, now = clock()
local ids = redis.call('ZRANGEBYSCORE', RUNNING, '-inf', digits(now), 'LIMIT', '0', ARGV[1])

local reasons = {}
if #ids < limit then
  local among_reasons = string.sub(cursor, 1, 1) == 'r'
  local scan
  if among_reasons then
    scan = redis.call('HSCAN', REASONS, string.sub(cursor, 2), 'COUNT', '100')
    cursor = scan[1] == '0' and '0' or 'r' .. scan[1]
  else
    scan = redis.call('HSCAN', CLAIMS, cursor, 'COUNT', '100')
    cursor = scan[1] == '0' and 'r0' or scan[1]
  end
  for i = 1, #scan[2], 2 do
    ids[#ids + 1] = scan[2][i]
    if among_reasons then reasons[#reasons + 1] = scan[2][i] end
  end
end

local by_id, tasks = fetch(ids)
for _, id in ipairs(reasons) do by_id[id].has_reason = true end
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
gate()
store(tasks)
return reply
