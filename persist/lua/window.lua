-- Reads due tasks in the order of due time, then id by bytes, from a cursor on.
--
-- The place of the cursor is looked up by its value, never by a remembered
-- offset, so what is added or removed meanwhile moves nothing. Millions may be
-- due in the same ms as the cursor: among them its id is found by bisection.
--
-- ARGV     cursor's due ms, cursor's id, last due ms, limit
-- Returns  TIME's seconds and microseconds; 1 if there is more up to the last
--          due ms, else 0; then id, due ms of each
local after_ms, after_id, last_ms, limit = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

-- Whether a stands after b by bytes, as Redis orders members. Lua's own < on
-- strings follows the server's locale.
local function stands_after(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x > y end
  end
  return #a > #b
end

-- How many due tasks stand at the cursor or before it.
local function rank()
  if after_id == '' and after_ms == '0' then return 0 end -- before everything
  local low = redis.call('ZCOUNT', DUE, '-inf', '(' .. after_ms)
  local high = low + redis.call('ZCOUNT', DUE, after_ms, after_ms)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local at = digits(middle)
    if stands_after(redis.call('ZRANGE', DUE, at, at)[1], after_id) then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end

local time = clock()
local start = rank()
local found = redis.call('ZRANGE', DUE, digits(start), digits(start + limit), 'WITHSCORES')
local reply = { time[1], time[2], 0 }
for i = 1, #found, 2 do
  -- A score beyond year 9999, that only a hand can write, is due never: there is
  -- no cursor for it.
  if to_number(found[i + 1]) > last_ms then break end
  local due = to_ms(found[i + 1])
  if i > 2 * limit then
    reply[3] = 1
    break
  end
  reply[#reply + 1] = found[i]
  reply[#reply + 1] = digits(due)
end
return reply
