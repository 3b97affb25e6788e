-- Pages of a ZSet in the order of score, then id by bytes, from a cursor on.
--
-- The place of the cursor is looked up by its value, never by a remembered
-- offset, so what is added or removed meanwhile moves nothing. Millions may have
-- the same score as the cursor: among them its id is found by bisection.

-- Whether a stands after b by bytes, as Redis orders members. Lua's own < on
-- strings follows the server's locale.
local function stands_after(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x > y end
  end
  return #a > #b
end

-- How many members stand at the cursor or before it.
local function rank(key, after_ms, after_id)
  if after_id == '' and after_ms == '0' then return 0 end -- before everything
  local low = redis.call('ZCOUNT', key, '-inf', '(' .. after_ms)
  local high = low + redis.call('ZCOUNT', key, after_ms, after_ms)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local at = digits(middle)
    if stands_after(redis.call('ZRANGE', key, at, at)[1], after_id) then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end
