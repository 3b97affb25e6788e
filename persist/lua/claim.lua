-- Claims ids: due by the clock of this server -> running under the token, or -> dead
-- where it had its last attempt.
--
-- ARGV     1 if an earlier copy of this call may have been applied, else 0; token,
--          lease in ms, most attempts (0: no limit), id, id, ...
-- Returns  TIME's seconds and microseconds; then for each id its ClaimState,
--          attempt, due ms (CLAIMED: of the first attempt; NOT_YET: of now) and
--          ms left
local resent, token, lease, most = ARGV[1] == '1', ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local ids = {}
for i = 5, #ARGV do ids[#ids + 1] = ARGV[i] end
local time, now = clock()
local by_id, tasks = fetch(ids)
local reply = { time[1], time[2] }
for _, id in ipairs(ids) do
  local state, attempt, due, left = claim(by_id[id], token, now, lease, most, resent)
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = state, digits(attempt), digits(due), digits(left)
end
store(tasks)
return reply
