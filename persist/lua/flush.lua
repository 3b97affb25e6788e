-- Applies the writes of one flush in their order, and once: see "Sessions" in
-- doc.go.
--
-- ARGV     session, number of the flush; then ?, where the flush before is asked
--          for, or for each write its code, how many ids it has, and
--            s  schedule: id, due ms, ...
--            x  cancel: id, ...
--            q  requeue: id, ...
--            d  discard: id, ...
--            c  claim: token, lease in ms, most attempts (0: no limit); id, ...
--            a  ack: id, token, ...
--            r  retry: id, token, due ms, flags, ... (u uncounted, a abandoned,
--               both, or -)
--            b  bury: id, token, reason, ...
--            n  renew: lease in ms; id, token, ...
-- Returns  TIME's seconds and microseconds, and the answer. It is one string of
--          numbers with a space between them: the ms of the clock that judged;
--          then for each id of
--            s              nothing
--            x              its CancelOutcome
--            c              its ClaimState, attempt, due ms (CLAIMED: of the first
--                           attempt; NOT_YET: of now), ms left
--            q, a, r and b  its SettleState, due ms
--            d and n        1, or 0 where it was refused
--          The answer to ? is the number and the answer that sessions had, or 0.
local session, number = ARGV[1], tonumber(ARGV[2])
local time, now = clock()

local saved = redis.call('HGET', SESSIONS, session)
if saved then
  local last, answer = string.match(saved, '^(%d+) (.*)$')
  last = tonumber(last) or 0
  if last == number then return { time[1], time[2], answer } end
  if last > number then
    return redis.error_reply('STALE flush ' .. ARGV[2] .. ' comes after ' .. digits(last))
  end
end

-- How many values stand before the ids, and for each id, itself included.
local ONCE = { s = 0, x = 0, q = 0, d = 0, c = 3, a = 0, r = 0, b = 0, n = 1 }
local EACH = { s = 2, x = 1, q = 1, d = 1, c = 1, a = 2, r = 4, b = 3, n = 2 }

-- Calls f for each write with its code, where its own values begin, and the
-- first and last place of an id.
local function each_write(f)
  local i = ARGV[3] == '?' and 4 or 3
  while i <= #ARGV do
    local code = ARGV[i]
    local first = i + 2 + ONCE[code]
    local after = first + tonumber(ARGV[i + 1]) * EACH[code]
    f(code, i + 2, first, after - EACH[code])
    i = after
  end
end

local ids, brings_work = {}, false
each_write(function(code, _, first, last)
  for i = first, last, EACH[code] do ids[#ids + 1] = ARGV[i] end
  brings_work = brings_work or code == 's'
end)
local by_id, tasks = fetch(ids)

local answer = { digits(now) }
if ARGV[3] == '?' then answer[2] = saved or '0' end
local function say(v) answer[#answer + 1] = v end
local function say_settled(state, due) say(state); say(digits(due)) end

local APPLY = {
  s = function(t, i) schedule(t, tonumber(ARGV[i + 1])) end,
  x = function(t) say(cancel(t)) end,
  q = function(t) say_settled(requeue(t, now)) end,
  d = function(t) say(discard(t) and 1 or 0) end,
  c = function(t, _, once)
    local state, attempt, due, left =
      claim(t, ARGV[once], now, tonumber(ARGV[once + 1]), tonumber(ARGV[once + 2]))
    say(state); say(digits(attempt)); say(digits(due)); say(digits(left))
  end,
  a = function(t, i) say_settled(ack(t, ARGV[i + 1])) end,
  r = function(t, i)
    local flags = ARGV[i + 3]
    say_settled(retry(t, ARGV[i + 1], tonumber(ARGV[i + 2]),
      string.find(flags, 'u', 1, true) ~= nil, string.find(flags, 'a', 1, true) ~= nil))
  end,
  b = function(t, i) say_settled(bury(t, ARGV[i + 1], now, ARGV[i + 2])) end,
  n = function(t, i, once) say(renew(t, ARGV[i + 1], now, tonumber(ARGV[once])) and 1 or 0) end,
}
each_write(function(code, once, first, last)
  for i = first, last, EACH[code] do APPLY[code](by_id[ARGV[i]], i, once) end
end)

-- In two steps: table.concat puts all it joins on the stack, and that of
-- miniredis' Lua is small.
local parts = {}
for i = 1, #answer, MANY do
  parts[#parts + 1] = table.concat(answer, ' ', i, math.min(i + MANY - 1, #answer))
end
local text = table.concat(parts, ' ')
if brings_work then store_new_work(tasks) else store(tasks) end
redis.call('HSET', SESSIONS, session, digits(number) .. ' ' .. text)
return { time[1], time[2], text }
