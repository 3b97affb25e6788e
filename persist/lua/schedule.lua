-- Schedules ids: gone, due, dead -> due; running: sets the successor.
--
-- ARGV     id, due ms, id, due ms, ...
-- Returns  how many
local ids = {}
for i = 1, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
local by_id, tasks = fetch(ids)
for i = 1, #ARGV, 2 do
  schedule(by_id[ARGV[i]], tonumber(ARGV[i + 1]))
end
store_new_work(tasks)
return #ids
