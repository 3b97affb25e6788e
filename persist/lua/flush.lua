-- Applies the writes of one flush in their order, and once: see "Sessions" in
-- doc.go.
--
-- ARGV     session, number of the flush; then ?, where the flush before is asked
--          for, or for each write its code, how many ids it has, and
--            s  schedule: due ms, id, ...
--            e  ensure: due ms, id, ...
--            x  cancel: id, ...
--            q  requeue: id, ...
--            d  discard: id, ...
--            c  claim: lease in ms, most attempts (0: no limit); id, token, ...
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
--            d, e and n     1, or 0 where it was refused
--          The answer to ? is the number and the answer that sessions had, or 0.
local session, number = ARGV[1], tonumber(ARGV[2])
local time, now = clock()

local saved, last = redis.call('HGET', SESSIONS, session), '0'
if saved then
  last = string.match(saved, '^(%d+) ') or '0'
  if last == ARGV[2] then
    pass_gate(false)
    redis.call('HSET', SESSIONS, session, saved) -- for WAIT: it counts from this connection's last write
    return { time[1], time[2], last, string.sub(saved, #last + 2) }
  end
  if tonumber(last) > number then
    return redis.error_reply('STALE flush ' .. ARGV[2] .. ' comes after ' .. last)
  end
end

-- How many values stand before the ids, and how many for each id.
local ONCE = { s = 0, e = 0, x = 0, q = 0, d = 0, c = 2, a = 0, r = 0, b = 0, n = 1 }
local EACH = { s = 2, e = 2, x = 1, q = 1, d = 1, c = 2, a = 2, r = 4, b = 3, n = 2 }

-- The writes, in groups of those that follow each other and have the same code.
-- Each has the places in ARGV where the values of its ids begin, and for each
-- place, where the values in front of the ids do.
local groups, brings_work = {}, false
do
  local i, g, n = ARGV[3] == '?' and 4 or 3, nil, 0
  while i <= #ARGV do
    local code, once = ARGV[i], i + 2
    if not g or g.code ~= code then
      g, n = { code = code, places = {}, once = {} }, 0
      groups[#groups + 1] = g
      brings_work = brings_work or NEW_WORK[code]
    end
    local first, size = once + ONCE[code], EACH[code]
    i = first + tonumber(ARGV[i + 1]) * size
    for place = first, i - 1, size do
      n = n + 1
      g.places[n] = place
      g.once[place] = once
    end
  end
end
if brings_work and #groups > 1 then pass_gate(true) end

local answer = { digits(now) }
if ARGV[3] == '?' then answer[2] = saved or '0' end

-- Most ids are plain, and fast.lua does for these what the transitions would. The
-- functions of the transitions are made where one is not: to make them takes as
-- long as a small flush.
local FAST, apply = { s = fast_schedule, e = fast_ensure, x = fast_cancel, c = fast_claim, a = fast_ack }, nil
for _, g in ipairs(groups) do
  local answers, fast = {}, FAST[g.code]
  local rest = fast and fast(g, answers, now) or g.places
  if #rest > 0 then
    apply = apply or slow(now)
    apply(g, rest, answers)
  end
  if g.code ~= 's' then
    local n = #answer
    for k, i in ipairs(g.places) do answer[n + k] = answers[i] end
  end
end

-- In two steps: table.concat puts all it joins on the stack, and that of
-- miniredis' Lua is small.
local parts = {}
for i = 1, #answer, MANY do
  parts[#parts + 1] = table.concat(answer, ' ', i, math.min(i + MANY - 1, #answer))
end
local text = table.concat(parts, ' ')
pass_gate(brings_work)
redis.call('HSET', SESSIONS, session, ARGV[2] .. ' ' .. text)
return { time[1], time[2], last, text }
