-- In front of every script: the keys, times, and calls with many arguments.
--
-- KEYS[1] due      ZSet: id, score = due ms
-- KEYS[2] running  ZSet: id, score = end of the lease in ms
-- KEYS[3] claims   hash: id -> record (see state.lua)
-- KEYS[4] dead     ZSet: id, score = when it was buried in ms
-- KEYS[5] reasons  hash: id -> record (see state.lua)
-- KEYS[6] sessions hash: session -> number and answer of its last flush
-- KEYS[7] shards   string: how many shards there are
-- KEYS[8] epoch    string: a counter that only rises

local DUE, RUNNING, CLAIMS = KEYS[1], KEYS[2], KEYS[3]
local DEAD, REASONS, SESSIONS = KEYS[4], KEYS[5], KEYS[6]
local SHARDS, EPOCH = KEYS[7], KEYS[8]

-- The last millisecond of year 9999.
local MAX_MS = 253402300799999

-- Milliseconds are numbers inside and strings outside: Redis writes a Lua
-- number with %.14g, which loses digits above 10^14. A double holds every
-- millisecond up to MAX_MS exactly.
local function digits(ms)
  return string.format('%.0f', ms)
end

-- Reads a score as the server writes it: 4000000000000, or shorter, 4e+12. Not
-- every Lua reads the latter (that of miniredis does not), so it is spelled out,
-- digit by digit: a multiplication would round.
local function to_number(s)
  local n = tonumber(s)
  if n then return n end
  local sign, whole, part, exp = string.match(s, '^(%-?)(%d+)%.?(%d*)[eE]%+?(%d%d?)$')
  if whole and #part <= tonumber(exp) then
    n = tonumber(sign .. whole .. part .. string.rep('0', tonumber(exp) - #part))
  end
  if n then return n end
  return string.sub(s, 1, 1) == '-' and -math.huge or math.huge -- an infinity, or beyond any time
end

-- Reads a score or a time as ms. Ours are whole and in range; what somebody wrote
-- by hand is rounded up, so that nothing fires early, and brought into range.
local function to_ms(s)
  return math.max(0, math.min(math.ceil(to_number(s)), MAX_MS))
end

-- The store's clock: TIME as it is, seconds and microseconds, and floored to ms.
local function clock()
  local t = redis.call('TIME')
  return t, tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end

-- unpack fails at about 8000 values (LUAI_MAXCSTACK), so many arguments go in
-- several calls. MANY is even: pairs stay together.
local MANY = 2000

-- Calls a write command with all args, in as few calls as may be.
local function write_many(command, key, args)
  for i = 1, #args, MANY do
    redis.call(command, key, unpack(args, i, math.min(i + MANY - 1, #args)))
  end
end

-- Calls a read command that answers one value per arg; returns them in order.
local function read_many(command, key, args)
  local values = {}
  for i = 1, #args, MANY do
    local part = redis.call(command, key, unpack(args, i, math.min(i + MANY - 1, #args)))
    for j = 1, #part do
      values[i + j - 1] = part[j]
    end
  end
  return values
end
