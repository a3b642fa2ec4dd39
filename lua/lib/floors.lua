-- floors: settles the token clocks at a write, and sets the floors so that no write hands out tokens.
-- A floor counts as every bucket's mark, so that a bucket whose key is gone is no richer than one that is there.
local REBASE_AT = 17592186044416 -- 2^44 tokens: beyond it a double is coarser than 0.004 of a token

-- The params as they hold at `now`: clocks paid up; an open time that is over and a glide are made plain.
local function settled(before, now)
  if not before then
    return {
      validUntil = 0, fence = 0, accrued = 0, subjectAccrued = 0, floor = 0, subjectFloor = 0,
      changedAt = now, keptMs = 0, subjectKeptMs = 0,
    }, nil
  end
  local e = effective(before, now)
  local p = {}
  for field, value in pairs(before) do p[field] = value end
  p.accrued, p.subjectAccrued, p.changedAt = e.tokens, e.subjectTokens, now
  p.state = e.state
  if e.gliding then p.rate, p.inFlightMax = e.rate, e.inFlightMax end
  return p, e
end

-- Open times follow Redis's clock; a trip is a new generation, whoever made it.
local function normalise_open(p, e, changed, now)
  local now_ms = math.floor(now / 1000)
  if p.state ~= 'open' then
    p.openUntil, changed.openUntil = 0, nil
    return
  end
  local trip = not e or e.state ~= 'open'
  if trip and not changed.openUntil then p.openUntil = now_ms + p.openForMs end
  if p.openUntil ~= -1 then
    if changed.openUntil then
      p.openForMs = math.max(p.openForMs, p.openUntil - now_ms)
      changed.openForMs = nil
    elseif not trip then
      p.openUntil = math.min(p.openUntil, now_ms + p.openForMs)
    end
  end
  if trip and e and not changed.generation then p.generation = p.generation + 1 end
end

-- Shares of the capacity by name.
local REFLOOR = { empty = 0, full = 1 }

-- `refloor`: the share of their capacity that buckets hold at most after this write, or nil.
local function set_floors(before, p, e, refloor)
  if p.accrued > REBASE_AT then p.accrued, p.floor = 0, 0 end
  if p.subjectAccrued > REBASE_AT then p.subjectAccrued, p.subjectFloor = 0, 0 end
  local shorter, subject_shorter
  p.keptMs, shorter = kept_ms(p.keptMs, bucket_ttl_ms(p))
  p.subjectKeptMs, subject_shorter = kept_ms(p.subjectKeptMs, subject_ttl_ms(p))
  if not before then
    local share = refloor or 1
    p.floor = p.accrued - (p.state == 'closed' and share or 0) * p.capacity
    p.subjectFloor = p.subjectAccrued - share * p.subjectCapacity
    return
  end
  -- A clock that was set back: a floor never lies ahead of it.
  p.floor = math.min(p.floor, p.accrued)
  p.subjectFloor = math.min(p.subjectFloor, p.subjectAccrued)
  -- More room is not more tokens; leaving half-open is more room as well.
  local room = (p.state == 'half-open') and math.min(p.capacity, math.max(1, p.probeRate)) or p.capacity
  if room > e.capacity then p.floor = math.max(p.floor, p.accrued - e.capacity) end
  -- A glide widens it again without a write: what does not fit into half-open's room now is gone.
  if p.state == 'half-open' then p.floor = math.max(p.floor, p.accrued - room) end
  if p.subjectRate >= 0 then
    if before.subjectRate < 0 then
      -- Nothing has bound subjects so far, so they begin full.
      p.subjectFloor = p.subjectAccrued - p.subjectCapacity
    elseif p.subjectCapacity > before.subjectCapacity then
      p.subjectFloor = math.max(p.subjectFloor, p.subjectAccrued - before.subjectCapacity)
    end
  end
  local trip_or_reset = p.state == 'open' or e.state == 'open'
  if refloor and refloor < 1 then p.floor = math.max(p.floor, p.accrued - refloor * room) end
  if trip_or_reset or shorter or (p.rate == 0 and before.rate > 0) then
    p.floor = p.accrued
  end
  local stands = p.subjectFollow == 1 and p.rate == 0 and before.rate > 0
  if p.subjectRate >= 0 and refloor and refloor < 1 then
    p.subjectFloor = math.max(p.subjectFloor, p.subjectAccrued - refloor * p.subjectCapacity)
  end
  if p.subjectRate >= 0 and (stands
    or (before.subjectRate >= 0 and subject_shorter)) then
    p.subjectFloor = p.subjectAccrued
  end
end
