-- Claims ids: due by the clock of this server -> running under the token.
--
-- ARGV     token, lease in ms, id, id, ...
-- Returns  TIME's seconds and microseconds; then for each id its ClaimState,
--          attempt, due ms (CLAIMED: of the first attempt; NOT_YET: of now) and
--          ms left
local token, lease = ARGV[1], tonumber(ARGV[2])
local ids = {}
for i = 3, #ARGV do ids[#ids + 1] = ARGV[i] end
local time, now = clock()
local by_id, tasks = fetch(ids)
local reply = { time[1], time[2] }
for _, id in ipairs(ids) do
  local state, attempt, due, left = claim(by_id[id], token, now, lease)
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = state, digits(attempt), digits(due), digits(left)
end
store(tasks)
return reply
