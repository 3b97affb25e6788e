local pending = 0 -- of code l: how many are due

-- Schedule within a limit. What is due or running is known, and may move. What is gone or dead is new.
local function schedule_within(t, due, most)
  if not t.due and not t.lease then
    if pending >= most then return '0' end
    pending = pending + 1
  end
  schedule(t, due)
  return '1'
end

-- The transitions of the writes in a flush, each with the answer that it gives, as
-- a string. Of an id, i is the place in ARGV where its values begin, and once that
-- of those in front of the ids.
local function settled(state, due) return state .. ' ' .. digits(due) end
local APPLY = {
  s = function(t, i) schedule(t, tonumber(ARGV[i + 1])) end,
  l = function(t, i, once) return schedule_within(t, tonumber(ARGV[i + 1]), tonumber(ARGV[once])) end,
  e = function(t, i) return ensure(t, tonumber(ARGV[i + 1])) and '1' or '0' end,
  x = function(t) return tostring(cancel(t)) end,
  q = function(t) return settled(requeue(t, now)) end,
  d = function(t) return discard(t) and '1' or '0' end,
  c = function(t, i, once)
    local state, attempt, due, left =
      claim(t, ARGV[once + 2], now, tonumber(ARGV[once]), tonumber(ARGV[once + 1]))
    return state .. ':' .. digits(attempt) .. ':' .. digits(due) .. ':' .. digits(left)
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

-- Applies a group of writes (see flush.lua) to those of its ids that rest names. Their
-- answers stand behind the first n.
return function(g, rest, answers, n)
  local ids = {}
  for j, k in ipairs(rest) do ids[j] = ARGV[g.first + (k - 1) * g.size] end
  local by_id, tasks = fetch(ids)
  local f = APPLY[g.code]
  if g.code == 'l' then pending = redis.call('ZCARD', DUE) end
  for j, k in ipairs(rest) do
    local answer = f(by_id[ids[j]], g.first + (k - 1) * g.size, g.once)
    if answer then answers[n + k] = answer end
  end
  pass_gate(brings_work(g.code))
  store(tasks)
end
