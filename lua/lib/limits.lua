-- limits: what no writer may do: break a hold, leave the bounds, move a limiter whose mode forbids it.
local HELD = { rate = true, capacity = true, inFlightMax = true }

local function holds(p, now)
  return p.frozenUntil == -1 or p.frozenUntil * 1000 > now
    or p.pinnedUntil == -1 or p.pinnedUntil * 1000 > now
end

local function named(field, value, allowed)
  return field .. ' is ' .. exact(value) .. '; allowed is ' .. allowed
end

-- A policy under a hold may only lower what is held, to its new maximum.
local function policy_keeps(before, p)
  return (p.rate == before.rate or (before.rate > p.maxRate and p.rate == p.maxRate))
    and (p.inFlightMax == before.inFlightMax or before.inFlightMax == 0 or p.maxInFlight == 0
      or (before.inFlightMax > p.maxInFlight and p.inFlightMax == p.maxInFlight))
end

local SCHEDULE = 'the schedule'

-- `mends`: writes were lost, and what had been in force comes back, a person's word among it.
local function breaks_hold(before, p, cause, now, mends)
  if not before or cause == 'person' or mends or not holds(before, now) then return nil end
  local who = before.heldBy ~= '' and before.heldBy or 'a person'
  if cause == 'law' or cause == 'schedule' then return 'held by ' .. who end
  if cause == 'breaker' and before.holdBreaker == 1 then return 'the breaker is held by ' .. who end
  if cause == 'policy' then
    if not policy_keeps(before, p) then return 'rate and cap are held by ' .. who end
    -- What a policy's schedule froze, the policy may let go.
    if who == SCHEDULE and before.pinnedUntil == p.pinnedUntil then return nil end
  else
    for field in pairs(HELD) do
      if p[field] ~= before[field] then return field .. ' is held by ' .. who end
    end
  end
  for _, field in ipairs({ 'frozenUntil', 'pinnedUntil', 'holdBreaker', 'heldBy' }) do
    if p[field] ~= before[field] then return 'only a person ends the hold of ' .. who end
  end
end

-- In off, shadow and recommend nothing moves by itself; the breaker may only end a trip that a person made.
local function breaks_mode(before, p, e, cause)
  if not before or p.mode == 'auto' then return nil end
  if cause == 'law' or cause == 'schedule' then return 'in mode ' .. p.mode .. ' the law changes nothing' end
  if cause == 'breaker' and e.state == 'closed' then
    return 'in mode ' .. p.mode .. ' the breaker trips nothing'
  end
end

local function breaks_shape(p)
  if not (p.capacity > 0) then return named('capacity', p.capacity, 'above 0') end
  if not (p.policyRate > 0) then return named('policyRate', p.policyRate, 'above 0') end
  if not (p.probeRate > 0) then return named('probeRate', p.probeRate, 'above 0') end
  if not (p.safeRate > 0) then return named('safeRate', p.safeRate, 'above 0') end
  if p.minRate > p.maxRate then return named('minRate', p.minRate, 'at most maxRate') end
  if p.minCapacity > p.maxCapacity then return named('minCapacity', p.minCapacity, 'at most maxCapacity') end
  if p.minInFlight > p.maxInFlight then return named('minInFlight', p.minInFlight, 'at most maxInFlight') end
  if p.subjectRate >= 0 and not (p.subjectCapacity > 0) then
    return named('subjectCapacity', p.subjectCapacity, 'above 0')
  end
  if p.inFlightMax % 1 ~= 0 or p.safeInFlight % 1 ~= 0 then
    return named('inFlightMax', p.inFlightMax, 'a whole number')
  end
  if p.reserveDefault > 1 or p.reserveSheddable > 1 then
    return named('reserveSheddable', p.reserveSheddable, '0 to 1')
  end
end

-- A person reaches from 0 to the maximum; the law from the minimum, except in slow start and after a glide.
local function breaks_bounds(before, p, cause)
  local person = cause == 'person'
  local moved = not before or p.rate ~= before.rate or p.maxRate ~= before.maxRate
  if moved and p.rate > math.max(p.maxRate, cause == 'settle' and p.safeRate or 0) then
    return named('rate', p.rate, '0 to ' .. exact(p.maxRate))
  end
  if before and p.rate ~= before.rate and p.state == 'closed' and p.rate < p.minRate
    and (cause == 'law' or cause == 'schedule' or cause == 'breaker') then
    return named('rate', p.rate, exact(p.minRate) .. ' to ' .. exact(p.maxRate))
  end
  if not before or p.capacity ~= before.capacity then
    if p.capacity > p.maxCapacity or (not person and p.capacity < p.minCapacity) then
      return named('capacity', p.capacity, exact(p.minCapacity) .. ' to ' .. exact(p.maxCapacity))
    end
  end
  if not before or p.inFlightMax ~= before.inFlightMax then
    local most = math.max(p.maxInFlight, cause == 'settle' and p.safeInFlight or 0)
    if p.inFlightMax > most or (cause == 'law' and p.state == 'closed' and p.inFlightMax < p.minInFlight) then
      return named('inFlightMax', p.inFlightMax, exact(p.minInFlight) .. ' to ' .. exact(p.maxInFlight))
    end
  end
end

-- The reason and detail of a refusal, or nil.
local function forbidden(before, p, e, changed, cause, now, mends)
  local fault = breaks_shape(p)
  if fault then return 'invalid', fault end
  fault = breaks_hold(before, p, cause, now, mends)
  if fault then return 'held', fault end
  fault = breaks_mode(before, p, e, cause)
  if fault then return 'mode', fault end
  fault = breaks_bounds(before, p, cause)
  if fault then return 'bounds', fault end
end
