-- What the transitions do to plain ids, many at once and without making a task of
-- each: those that are due for the first time and nothing else, that run and
-- nothing has happened to them since, or that are nowhere. Each function takes a
-- group of writes (see flush.lua), sets the answers of the plain ones, and returns
-- the places of the others. An id that stands twice is plain twice, or the
-- answers do not depend on the order.

-- Reads many members of a ZSet or fields of a hash; nil where the key is empty.
local function read_if_any(size, command, key, args)
  if redis.call(size, key) == 0 then return nil end
  return read_many(command, key, args)
end

-- Reads what is known of the ids at these places.
local function look(places, at, with_due)
  local ids = {}
  for k, i in ipairs(places) do ids[k] = ARGV[i + at] end
  local s = { ids = ids }
  if with_due then s.due = read_if_any('ZCARD', 'ZMSCORE', DUE, ids) end
  s.lease = read_if_any('ZCARD', 'ZMSCORE', RUNNING, ids)
  s.record = read_if_any('HLEN', 'HMGET', CLAIMS, ids)
  redis.call('HLEN', REASONS) -- see read_buried
  s.buried = read_if_any('ZCARD', 'ZMSCORE', DEAD, ids)
  return s
end

-- Whether nothing but due has the k-th id.
local function only_due(s, k)
  return not (s.lease and s.lease[k]) and not (s.record and s.record[k]) and not (s.buried and s.buried[k])
end

-- A due time as a score has it, where that is what we write: a whole number in
-- range. nil: it is not.
local function plain_ms(score)
  local n = tonumber(score)
  if n and n >= 0 and n <= MAX_MS and n % 1 == 0 then return n end
end

-- gone, due -> due.
local function fast_schedule(g)
  local s = look(g.places, 1, false)
  local rest, add = {}, {}
  for k, i in ipairs(g.places) do
    if only_due(s, k) then
      add[#add + 1] = ARGV[i]
      add[#add + 1] = ARGV[i + 1]
    else
      rest[#rest + 1] = i
    end
  end
  write_many('ZADD', DUE, add)
  return rest
end

-- due -> gone; gone stays gone.
local function fast_cancel(g, answers)
  local s = look(g.places, 0, true)
  local rest, remove, seen = {}, {}, {}
  for k, i in ipairs(g.places) do
    local id = s.ids[k]
    if not only_due(s, k) then
      rest[#rest + 1] = i
    elseif s.due and s.due[k] and not seen[id] then
      seen[id] = true
      remove[#remove + 1] = id
      answers[i] = '1'
    else
      answers[i] = '0'
    end
  end
  write_many('ZREM', DUE, remove)
  return rest
end

-- due -> running, for the first time.
local function fast_claim(g, answers, now)
  local s = look(g.places, 0, true)
  local rest, remove, add, set, taken = {}, {}, {}, {}, {}
  for k, i in ipairs(g.places) do
    local id, score = s.ids[k], s.due and s.due[k]
    local due = score and plain_ms(score)
    if not only_due(s, k) or score and not due then
      rest[#rest + 1] = i
    elseif not score then
      answers[i] = '0 0 0 0' -- GONE
    elseif due > now then
      answers[i] = '2 0 ' .. digits(due) .. ' ' .. digits(due - now) -- NOT_YET
    else
      local token, first = ARGV[g.once[i]], digits(due)
      if not taken[id] then
        taken[id] = token
        remove[#remove + 1] = id
        set[#set + 1] = id
        set[#set + 1] = token .. ' 1 - ' .. first .. ' -'
      end
      if taken[id] == token then -- also made anew
        add[#add + 1] = digits(now + tonumber(ARGV[g.once[i] + 1]))
        add[#add + 1] = id
        answers[i] = '1 1 ' .. first .. ' 0' -- CLAIMED
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
  local s = look(g.places, 0, true)
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
