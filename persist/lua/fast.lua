-- What the transitions do to plain ids, many at once and without making a task of
-- each: those that are due for the first time and nothing else, that run and
-- nothing has happened to them since, or that are nowhere. Each function takes a
-- group of writes (see flush.lua), puts the answers of the plain ones behind the
-- first n answers, and returns which others there are: numbers of ids within the
-- group. An id that stands twice is plain twice, or the answers do not depend on the
-- order.

-- The ids of a group.
local function ids_of(g)
  local ids, k = {}, 0
  for i = g.first, g.last, g.size do
    k = k + 1
    ids[k] = ARGV[i]
  end
  return ids
end

-- Whether a write brings new work in: see pass_gate.
local function brings_work(code) return code == 's' or code == 'l' or code == 'e' end

-- From how many ids on it is worth to look first whether a key is there at all.
local FEW = 4

-- Reads many members of a ZSet, or fields of a hash; none are there where it is empty.
local function read_if_any(size, command, key, ids)
  if #ids >= FEW and redis.call(size, key) == 0 then return {} end
  return redis.call(command, key, unpack(ids)) -- MaxBatch of them, at most
end

-- Reads who of ids is dead. Mostly nobody is.
local function read_buried_if_any(ids)
  redis.call('HLEN', REASONS) -- see read_buried
  return redis.call('ZCARD', DEAD) > 0 and redis.call('ZMSCORE', DEAD, unpack(ids)) or {}
end

-- Reads who of ids is running, has a record, and is dead.
local function look(ids)
  return read_if_any('ZCARD', 'ZMSCORE', RUNNING, ids),
    read_if_any('HLEN', 'HMGET', CLAIMS, ids),
    read_buried_if_any(ids)
end

-- gone, due -> due.
local function fast_schedule(g)
  local ids = ids_of(g)
  local lease, record, buried = look(ids)
  local rest, add, n = {}, {}, 0
  for k, id in ipairs(ids) do
    if lease[k] or record[k] or buried[k] then
      rest[#rest + 1] = k
    else
      add[n + 1], add[n + 2] = ARGV[g.first + (k - 1) * g.size + 1], id
      n = n + 2
    end
  end
  write_many('ZADD', DUE, add)
  return rest
end

-- As fast_schedule, while there is room for all, whichever of them are new. Else each is
-- looked at: see apply.lua.
local function fast_schedule_within(g, answers, n)
  local count, rest = (g.last - g.first) / g.size + 1, {}
  if redis.call('ZCARD', DUE) + count > tonumber(ARGV[g.once]) then
    for k = 1, count do rest[k] = k end
    return rest
  end
  for k = 1, count do answers[n + k] = '1' end
  return fast_schedule(g)
end

-- gone -> due; due stays as it is.
local function fast_ensure(g, answers, n)
  local ids = ids_of(g)
  local lease, record, buried = look(ids)
  local due = read_if_any('ZCARD', 'ZMSCORE', DUE, ids)
  local rest, add, seen = {}, {}, {}
  for k, id in ipairs(ids) do
    if lease[k] or record[k] or buried[k] then
      rest[#rest + 1] = k
    elseif due[k] or seen[id] then
      answers[n + k] = '0'
    else
      seen[id] = true
      local m = #add
      add[m + 1], add[m + 2] = ARGV[g.first + (k - 1) * g.size + 1], id
      answers[n + k] = '1'
    end
  end
  write_many('ZADD', DUE, add)
  return rest
end

-- due -> gone; gone stays gone.
local function fast_cancel(g, answers, n)
  local ids = ids_of(g)
  local lease, record, buried = look(ids)
  local due = read_if_any('ZCARD', 'ZMSCORE', DUE, ids)
  local rest, remove, seen = {}, {}, {}
  for k, id in ipairs(ids) do
    if lease[k] or record[k] or buried[k] then
      rest[#rest + 1] = k
    elseif due[k] and not seen[id] then
      seen[id] = true
      remove[#remove + 1] = id
      answers[n + k] = '1' -- CANCELLED
    else
      answers[n + k] = '0' -- NOT_FOUND
    end
  end
  write_many('ZREM', DUE, remove)
  return rest
end

-- The ids at places.
local function named(ids, places)
  local names = {}
  for j, k in ipairs(places) do names[j] = ids[k] end
  return names
end

-- Takes those out of places that run already, whose record a hand has removed: they are for
-- the rest. leases are of places; mine is the one that does not count. Returns their ids.
local function leave_running(ids, places, leases, mine, rest, answers, n)
  local ran, kept = {}, 0
  for j = 1, #places do
    local k = places[j]
    places[j] = nil
    if leases[j] and leases[j] ~= mine then
      ran[#ran + 1], rest[#rest + 1], answers[n + k] = ids[k], k, nil
    else
      kept = kept + 1
      places[kept] = k
    end
  end
  return ran
end

-- due -> running, for the first time. Many are due at the same time: of each time
-- it is looked at once. What runs has a record, unless a hand has removed it. So running is
-- not read for what can be claimed: that it was not there is seen when it is added. An id
-- that stands twice is the same claim twice.
local function fast_claim(g, answers, n, now)
  local ids = ids_of(g)
  redis.call('ZCARD', RUNNING) -- that it is a ZSet is seen here: see read_buried
  local record, buried = read_if_any('HLEN', 'HMGET', CLAIMS, ids), read_buried_if_any(ids)
  local due = read_if_any('ZCARD', 'ZMSCORE', DUE, ids)
  local rest, idle, take, add, set, m = {}, {}, {}, {}, {}, 0
  local lease, front = digits(now + tonumber(ARGV[g.once])), ARGV[g.once + 2] .. ' 1 - '
  local answer_of, record_of = {}, {} -- by score; CLAIMED where it has a record
  for k, id in ipairs(ids) do
    local score = due[k]
    local answer = score and answer_of[score]
    if score and answer == nil then
      -- As we write it: a whole number, in digits.
      local at = string.find(score, '^%d+$') and tonumber(score)
      if not (at and at <= MAX_MS) then
        answer = false
      elseif at > now then
        answer = '2:0:' .. score .. ':' .. digits(at - now) -- NOT_YET
      else
        answer, record_of[score] = score, front .. score .. ' -' -- CLAIMED
      end
      answer_of[score] = answer
    end
    local new = score and record_of[score]
    if record[k] or buried[k] or answer == false and score then
      rest[#rest + 1] = k
    elseif new then
      answers[n + k] = answer
      m = m + 1
      take[m], add[2 * m - 1], add[2 * m] = k, lease, id
      set[2 * m - 1], set[2 * m] = id, new
    else
      answers[n + k] = answer or '0:0:0:0' -- GONE
      idle[#idle + 1] = k
    end
  end
  if #idle > 0 then
    local leases = read_if_any('ZCARD', 'ZMSCORE', RUNNING, named(ids, idle))
    leave_running(ids, idle, leases, '', rest, answers, n)
  end
  if m > 0 then
    pass_gate(false)
    local added = redis.call('ZADD', RUNNING, 'NX', unpack(add))
    if added < write_many('HSET', CLAIMS, set) then
      local leases = redis.call('ZMSCORE', RUNNING, unpack(named(ids, take)))
      write_many('HDEL', CLAIMS, leave_running(ids, take, leases, lease, rest, answers, n))
    end
    write_many('ZREM', DUE, named(ids, take))
  end
  return rest
end

-- Some id stands twice among the settled: by the second time it is gone.
local function refuse_repeated(ids, answers, n)
  local seen = {}
  for k, id in ipairs(ids) do
    if answers[n + k] then
      if seen[id] then answers[n + k] = '0 0' end -- REFUSED
      seen[id] = true
    end
  end
end

-- running -> gone, where neither a successor nor a cancel came. Whether its lease is
-- there makes no difference: a record with a token and without one is a lease that is
-- over, and it is the token's as long as nobody has taken it back.
local function fast_ack(g, answers, n)
  local ids = ids_of(g)
  local record, buried = read_if_any('HLEN', 'HMGET', CLAIMS, ids), read_buried_if_any(ids)
  local due = read_if_any('ZCARD', 'ZMSCORE', DUE, ids)
  local rest, remove, m = {}, {}, 0
  local token_of = {} -- by record: those of one claim that were due together are equal
  for k, id in ipairs(ids) do
    local r = record[k]
    local token = r and token_of[r]
    if r and not token then
      token = string.match(r, '^(%S+) %d+ [-l] %S+ %-$') or '-'
      token_of[r] = token
    end
    if not token or token == '-' or token ~= ARGV[g.first + (k - 1) * g.size + 1] or due[k] or buried[k] then
      rest[#rest + 1] = k
    else
      m = m + 1
      remove[m] = id
      answers[n + k] = '1 0' -- SETTLED
    end
  end
  write_many('ZREM', RUNNING, remove)
  if write_many('HDEL', CLAIMS, remove) < m then refuse_repeated(ids, answers, n) end
  return rest
end
