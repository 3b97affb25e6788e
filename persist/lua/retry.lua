-- Puts claimed tasks back: running -> due; a successor wins, then a cancel.
--
-- ARGV     1 if an earlier copy of this call may have been applied, else 0;
--          then id, token, due ms, flags, id, ...
--          flags: u uncounted, a abandoned, both, or -
-- Returns  for each its SettleState and due ms
local resent = ARGV[1] == '1'
local ids = {}
for i = 2, #ARGV, 4 do ids[#ids + 1] = ARGV[i] end
local by_id, tasks = fetch(ids)
local reply = {}
for i = 2, #ARGV, 4 do
  local flags = ARGV[i + 3]
  local state, due = retry(by_id[ARGV[i]], ARGV[i + 1], tonumber(ARGV[i + 2]),
    string.find(flags, 'u', 1, true) ~= nil, string.find(flags, 'a', 1, true) ~= nil, resent)
  reply[#reply + 1] = state
  reply[#reply + 1] = digits(due)
end
store(tasks)
return reply
