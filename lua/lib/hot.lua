-- hot: the view packed into one field, so that a take reads one string instead of forty fields.
-- Written by every script that writes params; valid from `from` to `untl`, outside it a take reads the fields.
local function pack_hot(v)
  return struct.pack(
    '<dddddddddddddddddddd',
    v.code, v.from, v.untl, v.since, v.accrued, v.rate, v.capacity, v.fullCapacity, v.floor,
    v.reserveDefault, v.reserveSheddable, v.ttlMs,
    v.subjectSince, v.subjectAccrued, v.subjectRate, v.subjectCapacity, v.subjectFloor, v.subjectTtlMs,
    v.openUntil, v.probeRate
  ) .. v.text
end
