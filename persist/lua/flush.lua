-- Applies the writes of one flush in their order, and once: see "Sessions" in
-- doc.go.
--
-- ARGV     session, number of the flush; then ?, where the flush before is asked
--          for, or for each write its code, how many ids it has, and
--            s  schedule: due ms, id, ...
--            x  cancel: id, ...
--            q  requeue: id, ...
--            d  discard: id, ...
--            c  claim: token, lease in ms, most attempts (0: no limit); id, ...
--            a  ack: id, token, ...
--            r  retry: id, token, due ms, flags, ... (u uncounted, a abandoned,
--               both, or -)
--            b  bury: id, token, reason, ...
--            n  renew: lease in ms; id, token, ...
-- Returns  TIME's seconds and microseconds, the number that sessions had (0: none),
--          and the answer. It is one string of
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

local saved, last = redis.call('HGET', SESSIONS, session), 0
if saved then
  local had, answer = string.match(saved, '^(%d+) (.*)$')
  last = tonumber(had) or 0
  if last == number then
    gate()
    redis.call('HSET', SESSIONS, session, saved) -- for WAIT: it counts from this connection's last write
    return { time[1], time[2], digits(last), answer }
  end
  if last > number then
    return redis.error_reply('STALE flush ' .. ARGV[2] .. ' comes after ' .. digits(last))
  end
end

-- How many values stand before the ids, how many for each id, and where among
-- these the id is.
local ONCE = { s = 0, x = 0, q = 0, d = 0, c = 3, a = 0, r = 0, b = 0, n = 1 }
local EACH = { s = 2, x = 1, q = 1, d = 1, c = 1, a = 2, r = 4, b = 3, n = 2 }
local ID_AT = { s = 1, x = 0, q = 0, d = 0, c = 0, a = 0, r = 0, b = 0, n = 0 }

-- The writes, in groups of those that follow each other and have the same code.
-- Each has the places in ARGV where the values of its ids begin, and for each
-- place, where the values in front of the ids do.
local groups, brings_work = {}, false
do
  local i, g = ARGV[3] == '?' and 4 or 3, nil
  while i <= #ARGV do
    local code, once = ARGV[i], i + 2
    if not g or g.code ~= code then
      g = { code = code, places = {}, once = {} }
      groups[#groups + 1] = g
      brings_work = brings_work or code == 's'
    end
    local first, size = once + ONCE[code], EACH[code]
    i = first + tonumber(ARGV[i + 1]) * size
    for place = first, i - 1, size do
      g.places[#g.places + 1] = place
      g.once[place] = once
    end
  end
end
if brings_work then gate_of_new_work() else gate() end

local answer = { digits(now) }
if ARGV[3] == '?' then answer[2] = saved or '0' end

-- The transitions, each with the answer that it gives, as a string.
local function settled(state, due) return state .. ' ' .. digits(due) end
local APPLY = {
  s = function(t, i) schedule(t, tonumber(ARGV[i])) end,
  x = function(t) return tostring(cancel(t)) end,
  q = function(t) return settled(requeue(t, now)) end,
  d = function(t) return discard(t) and '1' or '0' end,
  c = function(t, _, once)
    local state, attempt, due, left =
      claim(t, ARGV[once], now, tonumber(ARGV[once + 1]), tonumber(ARGV[once + 2]))
    return state .. ' ' .. digits(attempt) .. ' ' .. digits(due) .. ' ' .. digits(left)
  end,
  a = function(t, i) return settled(ack(t, ARGV[i + 1])) end,
  r = function(t, i)
    local flags = ARGV[i + 3]
    return settled(retry(t, ARGV[i + 1], tonumber(ARGV[i + 2]),
      string.find(flags, 'u', 1, true) ~= nil, string.find(flags, 'a', 1, true) ~= nil))
  end,
  b = function(t, i) return settled(bury(t, ARGV[i + 1], now, ARGV[i + 2])) end,
  n = function(t, i, once) return renew(t, ARGV[i + 1], now, tonumber(ARGV[once])) and '1' or '0' end,
}

-- Applies the writes of a group at some of its places by the transitions. answers
-- gets the answer of each at its place.
local function apply(g, places, answers)
  local ids, at = {}, ID_AT[g.code]
  for k, i in ipairs(places) do ids[k] = ARGV[i + at] end
  local by_id, tasks = fetch(ids)
  local f = APPLY[g.code]
  for k, i in ipairs(places) do answers[i] = f(by_id[ids[k]], i, g.once[i]) end
  store(tasks)
end

-- Most ids are plain, and fast.lua does for these what the transitions would. It
-- leaves the others to apply.
local FAST = { s = fast_schedule, x = fast_cancel, c = fast_claim, a = fast_ack }
for _, g in ipairs(groups) do
  local answers, fast = {}, FAST[g.code]
  local rest = fast and fast(g, answers, now) or g.places
  if #rest > 0 then apply(g, rest, answers) end
  for _, i in ipairs(g.places) do answer[#answer + 1] = answers[i] end
end

-- In two steps: table.concat puts all it joins on the stack, and that of
-- miniredis' Lua is small.
local parts = {}
for i = 1, #answer, MANY do
  parts[#parts + 1] = table.concat(answer, ' ', i, math.min(i + MANY - 1, #answer))
end
local text = table.concat(parts, ' ')
redis.call('HSET', SESSIONS, session, digits(number) .. ' ' .. text)
return { time[1], time[2], digits(last), text }
