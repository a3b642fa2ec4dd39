-- effective: what is in force at `now` (µs), and what the token clocks have paid: a pure function of params.
-- Twin of src/redis/effective.ts: same operations in the same order, held together by test/contract/effective.json.
local NEVER = 9007199254740992 -- 2^53 µs: the year 2255

-- When the glide to the safe values begins (µs): a hold and an open time beat a lapsed heartbeat.
local function glide_start(p)
  if p.pinnedUntil == -1 or p.frozenUntil == -1 then return NEVER end
  local start = math.max(p.validUntil, p.pinnedUntil, p.frozenUntil)
  if p.state == 'open' then
    if p.openUntil == -1 then return NEVER end
    start = math.max(start, p.openUntil)
  end
  return (start + p.lostAfterMs) * 1000
end

-- Open is over when its time is, or when it lies further ahead than it was ever set: the clock was set back.
local function is_open(p, now)
  if p.state ~= 'open' then return false end
  if p.openUntil == -1 then return true end
  local left = p.openUntil * 1000 - now
  return left > 0 and left <= p.openForMs * 1000
end

-- Tokens paid from `from` to `to`: nothing before `opens`, `base` until the glide, linearly to `safe` over
-- `over`, `safe` from then on.
local function paid(base, safe, from, to, opens, glide, over)
  local sum = 0
  local start = math.max(from, opens)
  local stop = math.min(to, glide)
  if stop > start then sum = base * (stop - start) end
  local finish = glide + over
  local left = math.max(from, glide)
  local right = math.min(to, finish)
  if right > left then
    local first = base + (safe - base) * ((left - glide) / over)
    local last = base + (safe - base) * ((right - glide) / over)
    sum = sum + (first + last) / 2 * (right - left)
  end
  local after = math.max(from, finish)
  if to > after then sum = sum + safe * (to - after) end
  return sum / 1000000
end

local function effective(p, now)
  local open = is_open(p, now)
  local probing = not open and (p.state == 'open' or p.state == 'half-open')
  local glide = glide_start(p)
  local over = p.lostOverMs * 1000
  local gliding = now >= glide
  local share = 0 -- how far the glide has come, 0 … 1
  if gliding then share = now >= glide + over and 1 or (now - glide) / over end

  -- The rate that was in force when the glide began; a trip acts on the total only, not on subjects.
  local stopped = p.state == 'open' or p.state == 'half-open'
  local base = stopped and p.probeRate or p.rate
  local rate = open and 0 or base + (p.safeRate - base) * share
  local capacity = p.capacity
  if probing then
    local narrow = math.min(capacity, math.max(1, p.probeRate))
    capacity = narrow + (capacity - narrow) * share
  end
  local cap = p.inFlightMax
  if cap > 0 and p.safeInFlight > 0 then
    cap = math.floor(cap + (p.safeInFlight - cap) * share + 0.5)
  end

  local scale, safe_scale = 1, 1
  if p.subjectFollow == 1 then
    scale = p.rate / p.policyRate
    safe_scale = p.safeRate / p.policyRate
  end
  local none = p.subjectRate < 0
  local subject_base = none and 0 or p.subjectRate * scale
  local subject_safe = none and 0 or p.subjectRate * safe_scale
  local subject_rate = subject_base + (subject_safe - subject_base) * share

  local opens = 0
  if open then
    opens = p.openUntil == -1 and NEVER or p.openUntil * 1000
  elseif p.state == 'open' and p.openUntil * 1000 <= now then
    opens = p.openUntil * 1000
  end
  local tokens, subject_tokens
  if now < p.changedAt then -- the clock was set back: the token clock runs back with it
    tokens = p.accrued - rate * (p.changedAt - now) / 1000000
    subject_tokens = p.subjectAccrued - subject_rate * (p.changedAt - now) / 1000000
  else
    tokens = p.accrued + paid(base, p.safeRate, p.changedAt, now, opens, glide, over)
    subject_tokens = p.subjectAccrued
      + paid(subject_base, subject_safe, p.changedAt, now, 0, glide, over)
  end

  local state = p.state
  if probing then state = gliding and 'recovering' or 'half-open' end
  return {
    state = state,
    gliding = gliding,
    rate = rate,
    capacity = capacity,
    inFlightMax = cap,
    subjectRate = none and -1 or subject_rate,
    subjectCapacity = p.subjectCapacity,
    tokens = tokens,
    subjectTokens = subject_tokens,
    -- Until when, and since when, one rate holds: what the packed copy needs.
    opens = opens,
    glide = glide,
  }
end
