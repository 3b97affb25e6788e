-- The transitions of one task, the table of doc.go line by line. They change
-- the state in memory only, and return the codes of types.go.

local NOT_FOUND, CANCELLED, RUNNING_NOW = 0, 1, 2          -- CancelOutcome
local GONE, CLAIMED, NOT_YET, BUSY, BURIED = 0, 1, 2, 3, 4 -- ClaimState
local REFUSED, SETTLED, SCHEDULED = 0, 1, 2                -- SettleState

-- gone, due, dead -> due; running: sets the successor. The last one wins.
local function schedule(t, due)
  if t.lease then
    t.succ, t.cancelled = due, false
  else
    fresh(t, due)
  end
end

-- gone -> due, afresh; what stands anywhere stays as it is. Returns whether it was
-- gone.
local function ensure(t, due)
  if t.due or t.lease or t.buried then return false end
  fresh(t, due)
  return true
end

-- due -> gone; running: no successor and no retry. What is dead stays dead.
local function cancel(t)
  if t.lease then
    t.succ, t.cancelled = nil, true
    return RUNNING_NOW
  end
  if not t.due then return NOT_FOUND end
  local lost = t.lost
  fresh(t, nil)
  return lost and RUNNING_NOW or CANCELLED
end

-- due -> running; due -> dead where that would be one attempt more than most (0:
-- no limit). The same token again is the same claim, made anew since it got no
-- answer. Returns the state, attempt, due ms (the first, or where it stands) and
-- ms left.
local function claim(t, token, now, lease, most)
  if t.lease then
    if t.token ~= token then return BUSY, 0, 0, 0 end
    t.lease = now + lease
    return CLAIMED, t.attempt, t.first or now, 0
  end
  if not t.due then return GONE, 0, 0, 0 end
  if t.due > now then return NOT_YET, 0, t.due, t.due - now end
  if most > 0 and t.attempt >= most then
    entomb(t, now, 'attempt ' .. digits(t.attempt + 1) .. ' of at most ' .. digits(most))
    return BURIED, 0, 0, 0
  end
  t.first = t.first or t.due
  t.due, t.lease, t.token, t.attempt = nil, now + lease, token, t.attempt + 1
  return CLAIMED, t.attempt, t.first, 0
end

local function held(t, token)
  return t.lease and t.token ~= '' and t.token == token
end

-- running -> due by its successor, else -> gone if it was cancelled. Returns
-- nil where neither is so and the op decides.
local function outranked(t)
  if t.succ then
    fresh(t, t.succ)
    return SCHEDULED, t.due
  end
  if t.cancelled then
    fresh(t, nil)
    return SETTLED, 0
  end
end

-- running -> gone; a successor -> due.
local function ack(t, token)
  if not held(t, token) then return REFUSED, 0 end
  local state, due = outranked(t)
  if state then return state, due end
  fresh(t, nil)
  return SETTLED, 0
end

-- running -> due at the given time; a successor wins, then a cancel.
local function retry(t, token, due, uncounted, abandoned)
  if not held(t, token) then return REFUSED, 0 end
  local state, at = outranked(t)
  if state then return state, at end
  t.due, t.lease, t.token = due, nil, ''
  if uncounted then t.attempt = math.max(0, t.attempt - 1) end
  if abandoned then t.lost = true end
  if t.attempt == 0 and not t.lost then fresh(t, due) end -- as if it had never run
  return SCHEDULED, due
end

-- running -> dead; a successor wins, then a cancel.
local function bury(t, token, now, reason)
  if not held(t, token) then return REFUSED, 0 end
  local state, due = outranked(t)
  if state then return state, due end
  entomb(t, now, reason)
  return SETTLED, 0
end

-- running: a longer lease, never a shorter one. Returns whether it is the
-- token's.
local function renew(t, token, now, lease)
  if not held(t, token) then return false end
  t.lease = math.max(t.lease, now + lease)
  return true
end

-- dead -> due now, afresh.
local function requeue(t, now)
  if not t.buried then return REFUSED, 0 end
  fresh(t, now)
  return SCHEDULED, now
end

-- dead -> gone. Returns whether it was.
local function discard(t)
  if not t.buried then return false end
  fresh(t, nil)
  return true
end

-- running, lease over -> due now and lost; a successor wins, then a cancel.
local function reap(t, now)
  local state, due = outranked(t)
  if state then return state, due end
  t.due, t.lease, t.token, t.lost = now, nil, '', true
  return SCHEDULED, now
end
