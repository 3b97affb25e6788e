-- Brings dead tasks back: dead -> due now, afresh. It frees more memory than it
-- needs, so a Redis that is out of memory lets it pass.
--
-- ARGV     1 if an earlier copy of this call may have been applied, else 0;
--          then id, id, ...
-- Returns  for each its SettleState and due ms
local resent = ARGV[1] == '1'
local ids = {}
for i = 2, #ARGV do ids[#ids + 1] = ARGV[i] end
local _, now = clock()
local by_id, tasks = fetch(ids)
local reply = {}
for _, id in ipairs(ids) do
  local state, due = requeue(by_id[id], now, resent)
  reply[#reply + 1] = state
  reply[#reply + 1] = digits(due)
end
store(tasks)
return reply
