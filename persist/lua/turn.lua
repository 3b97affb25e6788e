-- Whose turn it is to reconcile with the order database. There is one turn for all
-- instances. Who has it works; after that it rests, which keeps the others off
-- until the next round is due, but for one that has a reason to hurry.
--
-- The value is 'owner works ms' or 'owner rests ms': when it is over. Then it is as if
-- there were none; a TTL removes it.
--
-- ARGV     owner; take, force (also where another rests), or rest; for how long, in ms
-- Returns  0 REFUSED, 1 TAKEN, 2 KEPT: it was the owner's already; and where it
--          was refused, how long in ms until it is over
local REFUSED, TAKEN, KEPT = 0, 1, 2
local owner, how, ms = ARGV[1], ARGV[2], ARGV[3]

local _, now = clock()
local who, state, over = string.match(redis.call('GET', RECONCILE) or '', '^(%S+) (%a+) (%d+)$')
if who and tonumber(over) <= now then who = nil end

local function set(to)
  pass_gate(false) -- it needs no memory to speak of
  redis.call('SET', RECONCILE, owner .. ' ' .. to .. ' ' .. digits(now + tonumber(ms)), 'PX', ms)
end

if who == owner and state == 'works' then
  set(how == 'rest' and 'rests' or 'works')
  return { KEPT, 0 }
end
if how ~= 'rest' and (not who or how == 'force' and state == 'rests') then
  set('works')
  return { TAKEN, 0 }
end
return { REFUSED, who and tonumber(over) - now or 0 }
