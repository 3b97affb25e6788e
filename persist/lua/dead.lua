-- Reads dead tasks in the order of their burial, then id by bytes, from a cursor on.
--
-- ARGV     cursor's burial ms, cursor's id, limit
-- Returns  1 if there is more, else 0; the next cursor: burial ms, id; then of each
--          id, burial ms, first due ms (0: not known), attempt, reason
local after_ms, after_id, limit = ARGV[1], ARGV[2], tonumber(ARGV[3])

local start = rank(DEAD, after_ms, after_id)
local found = redis.call('ZRANGE', DEAD, digits(start), digits(start + limit), 'WITHSCORES')
local reply = { 0, after_ms, after_id }
local ids = {}
for i = 1, #found, 2 do
  if to_number(found[i + 1]) > MAX_MS then break end -- as in window: there is no cursor for it
  if i > 2 * limit then
    reply[1] = 1
    break
  end
  ids[#ids + 1] = found[i]
  reply[2], reply[3] = digits(to_ms(found[i + 1])), found[i]
end

local _, tasks = fetch(ids)
local records = read_many('HMGET', REASONS, ids)
for i, t in ipairs(tasks) do
  if t.buried then -- else it lives, and somebody put it here by hand
    local attempt, first, reason = decode_burial(records[i])
    local n = #reply
    reply[n + 1], reply[n + 2], reply[n + 3] = t.id, digits(t.buried), digits(first or 0)
    reply[n + 4], reply[n + 5] = digits(attempt), reason
  end
end
return reply
