-- view: what a take needs of the params at `now`, as plain numbers, and the text of what is in force.
-- `managed epoch revision generation mode state gliding rate capacity inFlightMax subjectRate subjectCapacity`
local function in_force_text(p, e)
  return string.format(
    '1 %.0f %.0f %.0f %s %s %d %.17g %.17g %.17g %.17g %.17g',
    p.epoch, p.revision, p.generation, p.mode, e.state, e.gliding and 1 or 0,
    e.rate, e.capacity, e.inFlightMax, e.subjectRate, e.subjectCapacity
  )
end

-- `from` … `untl`: while one rate holds, tokens = accrued + rate × (now − since) needs nothing else.
local function view_of(p, now)
  local e = effective(p, now)
  local untl = e.glide
  if e.state == 'open' then untl = math.min(untl, e.opens) end
  local since = p.changedAt
  if e.state ~= 'open' then since = math.max(since, e.opens) end
  local half_open = e.state == 'half-open'
  return {
    code = MODES[p.mode] + 4 * STATES[e.state] + 16 * (p.subjectRules or 0),
    from = since,
    untl = e.gliding and 0 or untl,
    since = since,
    accrued = p.accrued,
    rate = e.rate,
    capacity = e.capacity,
    fullCapacity = p.capacity,
    floor = p.floor,
    reserveDefault = half_open and 0 or p.reserveDefault * e.capacity,
    reserveSheddable = half_open and 0 or p.reserveSheddable * e.capacity,
    ttlMs = p.keptMs,
    subjectSince = p.changedAt,
    subjectAccrued = p.subjectAccrued,
    subjectRate = e.subjectRate,
    -- A glide leads from one rate to another: since the last change it was never below the lower of them.
    subjectLowest = p.subjectFollow == 1 and math.min(e.subjectRate, p.subjectRate * p.rate / p.policyRate)
      or e.subjectRate,
    subjectCapacity = e.subjectCapacity,
    subjectFloor = p.subjectFloor,
    subjectTtlMs = p.subjectKeptMs,
    openUntil = p.openUntil * 1000,
    probeRate = p.probeRate,
    tokens = e.tokens,
    subjectTokens = e.subjectTokens,
    text = in_force_text(p, e),
  }
end
