-- What the transitions do to plain ids, many at once and without making a task of
-- each: those that are due for the first time and nothing else, that run and
-- nothing has happened to them since, or that are nowhere. Each function takes a
-- group of writes (see flush.lua), sets the answers of the plain ones, and returns
-- the places of the others. An id that stands twice is plain twice, or the
-- answers do not depend on the order.

-- Where among the values of an id the id is.
local ID_AT = { s = 1, e = 1, x = 0, q = 0, d = 0, c = 0, a = 0, r = 0, b = 0, n = 0 }

-- The writes that bring new work in: see pass_gate.
local NEW_WORK = { s = true, e = true }

-- The ids of a group of writes at these of its places.
local function ids_at(g, places)
  local ids, at = {}, ID_AT[g.code]
  for k, i in ipairs(places) do ids[k] = ARGV[i + at] end
  return ids
end

-- From how many ids on it is worth to look first whether a key is there at all.
local FEW = 4

-- Reads many members of a ZSet, or fields of a hash; nil where none is there.
local function read_if_any(size, command, key, ids)
  if #ids >= FEW and redis.call(size, key) == 0 then return nil end
  return redis.call(command, key, unpack(ids)) -- MaxBatch of them, at most
end

-- Reads what is known of the ids of a group.
local function look(g, with_due)
  local ids = ids_at(g, g.places)
  local s = { ids = ids }
  if with_due then s.due = read_if_any('ZCARD', 'ZMSCORE', DUE, ids) end
  s.lease = read_if_any('ZCARD', 'ZMSCORE', RUNNING, ids)
  s.record = read_if_any('HLEN', 'HMGET', CLAIMS, ids)
  redis.call('HLEN', REASONS) -- see read_buried
  if redis.call('ZCARD', DEAD) > 0 then s.buried = redis.call('ZMSCORE', DEAD, unpack(ids)) end
  return s
end

-- Whether nothing but due has the k-th id.
local function only_due(s, k)
  return not (s.lease and s.lease[k]) and not (s.record and s.record[k]) and not (s.buried and s.buried[k])
end

-- gone, due -> due.
local function fast_schedule(g)
  local s = look(g, false)
  local rest, add, n = {}, {}, 0
  for k, i in ipairs(g.places) do
    if only_due(s, k) then
      add[n + 1], add[n + 2] = ARGV[i], s.ids[k]
      n = n + 2
    else
      rest[#rest + 1] = i
    end
  end
  write_many('ZADD', DUE, add)
  return rest
end

-- gone -> due; due stays as it is.
local function fast_ensure(g, answers)
  local s = look(g, true)
  local rest, add, seen = {}, {}, {}
  for k, i in ipairs(g.places) do
    local id = s.ids[k]
    if not only_due(s, k) then
      rest[#rest + 1] = i
    elseif s.due and s.due[k] or seen[id] then
      answers[i] = '0'
    else
      seen[id] = true
      local n = #add
      add[n + 1], add[n + 2] = ARGV[i], id
      answers[i] = '1'
    end
  end
  write_many('ZADD', DUE, add)
  return rest
end

-- due -> gone; gone stays gone.
local function fast_cancel(g, answers)
  local s = look(g, true)
  local rest, remove, seen = {}, {}, {}
  for k, i in ipairs(g.places) do
    local id = s.ids[k]
    if not only_due(s, k) then
      rest[#rest + 1] = i
    elseif s.due and s.due[k] and not seen[id] then
      seen[id] = true
      remove[#remove + 1] = id
      answers[i] = '1' -- CANCELLED
    else
      answers[i] = '0' -- NOT_FOUND
    end
  end
  write_many('ZREM', DUE, remove)
  return rest
end

-- due -> running, for the first time.
local function fast_claim(g, answers, now)
  local s = look(g, true)
  local rest, remove, add, set, taken = {}, {}, {}, {}, {}
  local once, lease
  for k, i in ipairs(g.places) do
    if g.once[i] ~= once then
      once = g.once[i]
      lease = digits(now + tonumber(ARGV[once]))
    end
    local id, token, score = s.ids[k], ARGV[i + 1], s.due and s.due[k]
    -- As we write it: a whole number, in digits.
    local due = score and string.find(score, '^%d+$') and tonumber(score)
    if not only_due(s, k) or score and not (due and due <= MAX_MS) then
      rest[#rest + 1] = i
    elseif not score then
      answers[i] = '0 0 0 0' -- GONE
    elseif due > now then
      answers[i] = '2 0 ' .. score .. ' ' .. digits(due - now) -- NOT_YET
    else
      if not taken[id] then
        taken[id] = token
        remove[#remove + 1] = id
        local n = #set
        set[n + 1], set[n + 2] = id, token .. ' 1 - ' .. score .. ' -'
      end
      if taken[id] == token then -- also where it is made anew
        local n = #add
        add[n + 1], add[n + 2] = lease, id
        answers[i] = '1 1 ' .. score .. ' 0' -- CLAIMED
      else
        answers[i] = '3 0 0 0' -- BUSY
      end
    end
  end
  write_many('ZREM', DUE, remove)
  write_many('ZADD', RUNNING, add)
  write_many('HSET', CLAIMS, set)
  return rest
end

-- running -> gone, where neither a successor nor a cancel came.
local function fast_ack(g, answers)
  local s = look(g, true)
  local rest, remove, seen = {}, {}, {}
  for k, i in ipairs(g.places) do
    local id, record = s.ids[k], s.record and s.record[k]
    local token = record and s.lease and s.lease[k] and string.match(record, '^(%S+) %d+ [-l] %S+ %-$')
    if token ~= ARGV[i + 1] or token == '-' or s.due and s.due[k] or s.buried and s.buried[k] then
      rest[#rest + 1] = i
    elseif seen[id] then
      answers[i] = '0 0' -- REFUSED: it is gone
    else
      seen[id] = true
      remove[#remove + 1] = id
      answers[i] = '1 0' -- SETTLED
    end
  end
  write_many('ZREM', RUNNING, remove)
  write_many('HDEL', CLAIMS, remove)
  return rest
end
