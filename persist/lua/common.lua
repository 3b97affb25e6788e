-- In front of every script, but for lone.lua: the keys, times, and calls with many arguments.
--
-- KEYS[1] due      ZSet: id, score = due ms
-- KEYS[2] running  ZSet: id, score = end of the lease in ms
-- KEYS[3] claims   hash: id -> record (see state.lua)
-- KEYS[4] dead     ZSet: id, score = when it was buried in ms
-- KEYS[5] reasons  hash: id -> record (see state.lua)
-- KEYS[6] sessions hash: session -> number and answer of its last flush
-- KEYS[7] shards   string: how many shards there are
-- KEYS[8] epoch    string: a counter that only rises
-- KEYS[9] reconcile string, with a TTL: whose turn it is (see turn.lua)

local DUE, RUNNING, CLAIMS = KEYS[1], KEYS[2], KEYS[3]
local DEAD, REASONS, SESSIONS = KEYS[4], KEYS[5], KEYS[6]
local SHARDS, EPOCH, RECONCILE = KEYS[7], KEYS[8], KEYS[9]

-- The last millisecond of year 9999.
local MAX_MS = 253402300799999

-- Milliseconds are numbers inside and strings outside: Redis writes a Lua
-- number with %.14g, which loses digits above 10^14. A double holds every
-- millisecond up to MAX_MS exactly.
local function digits(ms)
  return string.format('%.0f', ms)
end

-- The store's clock: TIME as it is, seconds and microseconds, and floored to ms.
local function clock()
  local t = redis.call('TIME')
  return t, tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end

-- unpack fails at about 8000 values (LUAI_MAXCSTACK), so many arguments go in
-- several calls. MANY is even: pairs stay together.
local MANY = 2000

-- A Redis that is out of memory refuses the first write of a script if it may need
-- memory, and none after the first. So who is about to write passes a gate, which
-- is a write that does nothing, since no id is empty. Scripts that bring new work
-- in pass one that may need memory: they are refused as a whole. Those that move
-- work on its way out pass one that needs none: or it never gets better.
local passed = false -- a gate, or something was written

local function pass_gate(new_work)
  if passed then return end
  passed = true
  if new_work then
    redis.call('ZADD', DUE, 'XX', '0', '')
  else
    redis.call('HDEL', CLAIMS, '')
  end
end

-- Calls a write command with all args, in as few calls as may be. Returns the sum of
-- what it answers.
local function write_many(command, key, args)
  local sum = 0
  if #args > 0 then passed = true end
  for i = 1, #args, MANY do
    sum = sum + redis.call(command, key, unpack(args, i, math.min(i + MANY - 1, #args)))
  end
  return sum
end

-- Calls a read command that answers one value per arg; returns them in order.
local function read_many(command, key, args)
  if #args <= MANY then return #args > 0 and redis.call(command, key, unpack(args)) or {} end
  local values = {}
  for i = 1, #args, MANY do
    local part = redis.call(command, key, unpack(args, i, math.min(i + MANY - 1, #args)))
    for j = 1, #part do
      values[i + j - 1] = part[j]
    end
  end
  return values
end
