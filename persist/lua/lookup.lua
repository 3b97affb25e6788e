-- Reads all that is known of ids.
--
-- ARGV     id, id, ...
-- Returns  for each its Status; its due ms, the end of its lease or when it was buried
--          in ms; first due ms (0: not known); attempt; flags (c, l, both or
--          none); due ms of its successor (0: none); reason
local STATUS_GONE, STATUS_DUE, STATUS_RUNNING, STATUS_DEAD = 0, 1, 2, 3

local by_id, tasks = fetch(ARGV)
local dead = {}
for _, t in ipairs(tasks) do
  if t.buried then dead[#dead + 1] = t.id end
end
local records = read_many('HMGET', REASONS, dead)
for i, id in ipairs(dead) do
  local t = by_id[id]
  t.attempt, t.first, t.reason = decode_burial(records[i])
end

local function status(t)
  if t.due then return STATUS_DUE, t.due end
  if t.lease then return STATUS_RUNNING, t.lease end
  if t.buried then return STATUS_DEAD, t.buried end
  fresh(t, nil) -- a record without its task says nothing
  return STATUS_GONE, 0
end

local reply = {}
for _, id in ipairs(ARGV) do
  local t = by_id[id]
  local state, at = status(t)
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = state, digits(at), digits(t.first or 0), digits(t.attempt)
  reply[n + 5] = (t.cancelled and 'c' or '') .. (t.lost and 'l' or '')
  reply[n + 6], reply[n + 7] = digits(t.succ or 0), t.reason or ''
end
return reply
