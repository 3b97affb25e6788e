-- Forgets dead tasks: dead -> gone.
--
-- ARGV     id, id, ...
-- Returns  for each 1, or 0 where it was not dead
local by_id, tasks = fetch(ARGV)
local reply = {}
for i, id in ipairs(ARGV) do
  reply[i] = discard(by_id[id]) and 1 or 0
end
store(tasks)
return reply
