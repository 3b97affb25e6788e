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
