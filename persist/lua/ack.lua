-- Acknowledges claims: running -> gone; a successor -> due.
--
-- ARGV     1 if an earlier copy of this call may have been applied, else 0;
--          then id, token, id, token, ...
-- Returns  for each its SettleState and due ms
local resent = ARGV[1] == '1'
local ids = {}
for i = 2, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
local by_id, tasks = fetch(ids)
local reply = {}
for i = 2, #ARGV, 2 do
  local state, due = ack(by_id[ARGV[i]], ARGV[i + 1], resent)
  reply[#reply + 1] = state
  reply[#reply + 1] = digits(due)
end
store(tasks)
return reply
