-- Cancels ids: due -> gone; running: no successor and no retry; dead stays.
--
-- ARGV     id, id, ...
-- Returns  for each its CancelOutcome
local by_id, tasks = fetch(ARGV)
local reply = {}
for i, id in ipairs(ARGV) do
  reply[i] = cancel(by_id[id])
end
store(tasks)
return reply
