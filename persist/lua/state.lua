-- The state of a batch: read once, changed in memory by the transitions, and
-- the differences written once. Ids that stand twice in a batch share one
-- state, so they behave as if asked one after the other.
--
-- A task t:
--   t.due        due ms; nil: not due
--   t.lease      end of the lease in ms; nil: not running. Never both.
--   t.token      of the current claim; '' where it is not running
--   t.attempt    claims so far
--   t.cancelled  running: cancelled meanwhile
--   t.lost       the handler of an earlier claim may still be at work
--   t.first      due ms of the first attempt; nil: not known yet
--   t.succ       running: due ms of its successor; nil: none
--   t.buried     ms when it was buried; nil: not dead. Never with due or lease
--   t.burial     the record for reasons, where it was buried just now
--
-- A record in claims is 'token attempt flags first succ', '-' for what is not
-- there; flags are c (cancelled) and l (lost). It stands there while the id is
-- running or being retried, never for a task that is due for the first time.
--
-- A record in reasons is 'attempt first reason'. The reason comes last and may
-- have any bytes, also spaces or none at all. It stands there while the id is
-- dead. No transition depends on it, so only reads look at it: a burial writes
-- it, and what leaves dead removes it unseen.

local function fresh(t, due)
  t.due, t.lease, t.token, t.attempt = due, nil, '', 0
  t.cancelled, t.lost, t.first, t.succ = false, false, nil, nil
  t.buried, t.burial = nil, nil
end

-- No attempt of ours comes near; a record written by hand may.
local MAX_ATTEMPT = 1000000000

local function decode(t, record)
  local token, attempt, flags, first, succ =
    string.match(record, '^(%S+) (%d+) (%S+) (%S+) (%S+)$')
  if not token then return end -- not ours: as if it were not there
  t.token = token ~= '-' and token or ''
  t.attempt = math.min(tonumber(attempt) or MAX_ATTEMPT, MAX_ATTEMPT)
  t.cancelled = string.find(flags, 'c', 1, true) ~= nil
  t.lost = string.find(flags, 'l', 1, true) ~= nil
  t.first = first ~= '-' and to_ms(first) or nil
  t.succ = succ ~= '-' and to_ms(succ) or nil
end

-- The record of t, or false where it needs none.
local function encode(t)
  if not t.lease and not (t.due and (t.attempt > 0 or t.lost)) then return false end
  local flags = (t.cancelled and 'c' or '') .. (t.lost and 'l' or '')
  return table.concat({
    t.token ~= '' and t.token or '-',
    digits(t.attempt),
    flags ~= '' and flags or '-',
    t.first and digits(t.first) or '-',
    t.succ and digits(t.succ) or '-',
  }, ' ')
end

-- Ends t for good: dead since now. What is left of its life goes into the record.
local function entomb(t, now, reason)
  local record = table.concat({ digits(t.attempt), t.first and digits(t.first) or '-', reason }, ' ')
  fresh(t, nil)
  t.buried, t.burial = now, record
end

-- Reads a record of reasons: attempt, first due or nil, reason. One that is not
-- ours is a reason that somebody wrote by hand.
local function decode_burial(record)
  if not record then return 0, nil, '' end
  local attempt, first, at = string.match(record, '^(%d+) (%S+) ()')
  if not attempt or not (first == '-' or string.match(first, '^%d+$')) then return 0, nil, record end
  return math.min(tonumber(attempt) or MAX_ATTEMPT, MAX_ATTEMPT),
    first ~= '-' and to_ms(first) or nil,
    string.sub(record, at)
end

-- Makes sense of what our scripts never leave behind but a hand may: nothing is
-- lost and nothing gets stuck.
local function heal(t)
  if t.due and t.lease then
    -- Scheduled by hand while it is running: that is a successor.
    t.succ, t.due = t.due, nil
  elseif not t.due and not t.lease and not t.buried and t.token ~= '' then
    -- Its entry in running is gone: a lease that is over, for reap to find.
    t.lease = 0
  end
  if not t.lease then
    t.token, t.cancelled, t.succ = '', false, nil
  end
  if t.due or t.lease then
    t.buried = nil -- it lives
  elseif t.buried then
    local buried = t.buried
    fresh(t, nil) -- what claims has of it is a leftover
    t.buried = buried
  end
end

-- Reads when the ids were buried, false where they are not. Mostly nothing is
-- dead, and then this costs one look instead of one for each id.
local function read_buried(names)
  -- Nobody reads reasons before it is written, so that it is a hash is seen here: a
  -- script must not fail between two writes.
  redis.call('HLEN', REASONS)
  if redis.call('ZCARD', DEAD) == 0 then return {} end
  return read_many('ZMSCORE', DEAD, names)
end

-- Reads the tasks of all ids. Returns id -> task, and the tasks each once.
local function fetch(ids)
  local by_id, tasks, names = {}, {}, {}
  for _, id in ipairs(ids) do
    if not by_id[id] then
      local t = { id = id }
      by_id[id] = t
      tasks[#tasks + 1] = t
      names[#names + 1] = id
    end
  end
  local due = read_many('ZMSCORE', DUE, names)
  local lease = read_many('ZMSCORE', RUNNING, names)
  local record = read_many('HMGET', CLAIMS, names)
  local buried = read_buried(names)
  for i, t in ipairs(tasks) do
    fresh(t, due[i] and to_ms(due[i]) or nil)
    t.lease = lease[i] and to_ms(lease[i]) or nil
    t.buried = buried[i] and to_ms(buried[i]) or nil
    if record[i] then decode(t, record[i]) end
    t.was_due, t.was_lease = due[i] and to_number(due[i]), lease[i] and to_number(lease[i])
    t.was_record, t.was_buried = record[i], buried[i] and to_number(buried[i])
    heal(t)
  end
  return by_id, tasks
end

-- Collects what differs: members to remove, and pairs to set.
local function differences(tasks)
  local d = {
    zrem_due = {}, zrem_running = {}, zrem_dead = {}, hdel_claims = {}, hdel_reasons = {},
    zadd_due = {}, zadd_running = {}, zadd_dead = {}, hset_claims = {}, hset_reasons = {},
  }
  local function add(list, v) list[#list + 1] = v end
  local function add_pair(list, a, b) list[#list + 1] = a; list[#list + 1] = b end
  for _, t in ipairs(tasks) do
    local record = encode(t)
    if t.due and t.due ~= t.was_due then add_pair(d.zadd_due, digits(t.due), t.id) end
    if t.was_due and not t.due then add(d.zrem_due, t.id) end
    if t.lease and t.lease ~= t.was_lease then add_pair(d.zadd_running, digits(t.lease), t.id) end
    if t.was_lease and not t.lease then add(d.zrem_running, t.id) end
    if record and record ~= t.was_record then add_pair(d.hset_claims, t.id, record) end
    if t.was_record and not record then add(d.hdel_claims, t.id) end
    if t.buried and t.buried ~= t.was_buried then add_pair(d.zadd_dead, digits(t.buried), t.id) end
    if t.was_buried and not t.buried then add(d.zrem_dead, t.id) end
    if t.burial then add_pair(d.hset_reasons, t.id, t.burial) end
    if (t.was_buried or t.has_reason) and not t.buried then add(d.hdel_reasons, t.id) end
  end
  return d
end

local function remove(d)
  write_many('ZREM', DUE, d.zrem_due)
  write_many('ZREM', RUNNING, d.zrem_running)
  write_many('HDEL', CLAIMS, d.hdel_claims)
  write_many('ZREM', DEAD, d.zrem_dead)
  write_many('HDEL', REASONS, d.hdel_reasons)
end

local function insert(d)
  write_many('ZADD', DUE, d.zadd_due)
  write_many('ZADD', RUNNING, d.zadd_running)
  write_many('HSET', CLAIMS, d.hset_claims)
  write_many('ZADD', DEAD, d.zadd_dead)
  write_many('HSET', REASONS, d.hset_reasons)
end

-- Writes the differences. A gate must have been passed before.
local function store(tasks)
  local d = differences(tasks)
  remove(d)
  insert(d)
end

-- The gates. A Redis that is out of memory refuses the first write of a script
-- if it may need memory, and none after the first. So each script begins with a
-- write that does nothing, since no id is empty.
--
-- Of scripts that bring work in, it is one that may need memory: they are
-- refused as a whole.
local function gate_of_new_work() redis.call('ZADD', DUE, 'XX', '0', '') end

-- Of scripts that move work on its way out, it is one that needs none: they have
-- to pass, or it never gets better.
local function gate() redis.call('HDEL', CLAIMS, '') end
