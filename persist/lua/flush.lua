-- Applies the writes of one flush in their order, and once: see "Sessions" in
-- doc.go.
--
-- ARGV     session, number of the flush; then ?, where the flush before is asked
--          for, or for each write its code, how many ids it has, how many values
--          stand in front of these, how many each of them has with itself, and
--            s  schedule: id, due ms, ...
--            l  schedule within a limit: how many may be due; id, due ms, ...
--            e  ensure: id, due ms, ...
--            x  cancel: id, ...
--            q  requeue: id, ...
--            d  discard: id, ...
--            c  claim: lease in ms, most attempts (0: no limit), token; id, ...
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
--                           attempt; NOT_YET: of now) and ms left, as one word
--                           with a colon between them; or the due ms alone, where
--                           it is CLAIMED for the first time
--            q, a, r and b  its SettleState, due ms
--            l, d, e and n  1, or 0 where it was refused
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

-- The writes, in groups: where in ARGV the first and the last of its ids stand, how
-- many values each of them has, and where the values in front of the ids begin.
local groups, new_work = {}, false
do
  local i = ARGV[3] == '?' and 4 or 3
  while i <= #ARGV do
    local once, size = i + 4, tonumber(ARGV[i + 3])
    local first = once + tonumber(ARGV[i + 2])
    local past = first + tonumber(ARGV[i + 1]) * size
    groups[#groups + 1] = { code = ARGV[i], first = first, last = past - size, size = size, once = once }
    new_work = new_work or brings_work(ARGV[i])
    i = past
  end
end
if new_work and #groups > 1 then pass_gate(true) end

local answers, n = { digits(now) }, 1
if ARGV[3] == '?' then
  answers[2], n = saved or '0', 2
end

-- Most ids are plain, and fast.lua does for these what the transitions would. The
-- functions of the transitions are made where one is not: to make them takes as
-- long as a small flush.
local apply = nil
for _, g in ipairs(groups) do
  local rest
  if g.code == 's' then
    rest = fast_schedule(g)
  elseif g.code == 'l' then
    rest = fast_schedule_within(g, answers, n)
  elseif g.code == 'e' then
    rest = fast_ensure(g, answers, n)
  elseif g.code == 'x' then
    rest = fast_cancel(g, answers, n)
  elseif g.code == 'c' then
    rest = fast_claim(g, answers, n, now)
  elseif g.code == 'a' then
    rest = fast_ack(g, answers, n)
  else
    rest = {}
    for k = 1, (g.last - g.first) / g.size + 1 do rest[k] = k end
  end
  if #rest > 0 then
    apply = apply or slow(now)
    apply(g, rest, answers, n)
  end
  if g.code ~= 's' then n = n + (g.last - g.first) / g.size + 1 end
end

-- In two steps: table.concat puts all it joins on the stack, and that of
-- miniredis' Lua is small.
local parts = {}
for i = 1, n, MANY do
  parts[#parts + 1] = table.concat(answers, ' ', i, math.min(i + MANY - 1, n))
end
local text = table.concat(parts, ' ')
pass_gate(new_work)
redis.call('HSET', SESSIONS, session, ARGV[2] .. ' ' .. text)
return { time[1], time[2], last, text }
