-- Buries claimed tasks: running -> dead now; a successor wins, then a cancel.
--
-- ARGV     1 if an earlier copy of this call may have been applied, else 0;
--          then id, token, reason, id, ...
-- Returns  for each its SettleState and due ms
local resent = ARGV[1] == '1'
local ids = {}
for i = 2, #ARGV, 3 do ids[#ids + 1] = ARGV[i] end
local _, now = clock()
local by_id, tasks = fetch(ids)
local reply = {}
for i = 2, #ARGV, 3 do
  local state, due = bury(by_id[ARGV[i]], ARGV[i + 1], now, ARGV[i + 2], resent)
  reply[#reply + 1] = state
  reply[#reply + 1] = digits(due)
end
store(tasks)
return reply
