-- packed: the view of a take as actuate packed it, while one rate holds; then `text` is set. Of the params at `params_key`.
local hot = call('HGET', params_key, 'hot')
local managed = hot and #hot > 160
local code, from, untl, since, accrued, rate, capacity, full, floor, reserve_default, reserve_sheddable
local ttl, subject_since, subject_accrued, subject_rate, subject_capacity, subject_floor, subject_ttl
local open_until, probe_rate, text, clock, subject_clock, unmanaged_base
if managed then
  code, from, untl, since, accrued, rate, capacity, full, floor, reserve_default, reserve_sheddable,
    ttl, subject_since, subject_accrued, subject_rate, subject_capacity, subject_floor, subject_ttl,
    open_until, probe_rate = struct.unpack('<dddddddddddddddddddd', hot)
  if now >= from and now < untl then
    text = string.sub(hot, 161)
    clock = accrued + rate * (now - since) / 1000000
    -- Where the policy gives subjects no rate (-1) their clock stands still.
    subject_clock = subject_accrued
    if subject_rate > 0 then subject_clock = subject_clock + subject_rate * (now - subject_since) / 1000000 end
  end
end
