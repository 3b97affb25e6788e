-- Renews leases: each ends at the given time from now, or later if it did so before.
--
-- ARGV     lease in ms; then id, token, id, token, ...
-- Returns  for each 1, or 0 where the token is not that of its current claim
local lease = tonumber(ARGV[1])
local ids = {}
for i = 2, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
local _, now = clock()
local by_id, tasks = fetch(ids)
local reply = {}
for i = 2, #ARGV, 2 do
  reply[#reply + 1] = renew(by_id[ARGV[i]], ARGV[i + 1], now, lease) and 1 or 0
end
store(tasks)
return reply
