-- take: decides n takes in order, each against the total's bucket and its subject's, all or none of the two.
-- A denied take writes nothing, except to re-anchor a bucket that lies ahead of Redis's clock.
-- KEYS:
--   params      the params hash
--   bucket      the total's bucket (the shadow's, when `shadow` is 1)
--   subject...  one for each take: the subject's bucket, or `bucket` again for a take without a subject
-- ARGV:
--   nowUs       empty: Redis TIME; tests pass a time
--   chargeByUs  latest Redis time (µs) at which this call may charge; empty: any; 0: never, only learn the time
--   shadow      1: the keys are the shadow's
--   fallback    numbers for missing params: `rate capacity inFlightMax subjectRate subjectCapacity`
--   take...     one for each take: `<cost>`, `<cost> critical` or `<cost> sheddable`
-- RETURNS: [status, nowUs, inForce, then reason, remaining, retryAfterMs of each take]; see docs/contract.md
-- TIME: once, unless nowUs is given
-- COMPLEXITY: O(n) in the takes; two reads, and two writes for an admitted take
local call = redis.call
local takes = #ARGV - 4
if takes < 0 or #KEYS ~= takes + 2 then
  return redis.error_reply('FLYBALL_E_CALL_INVALID one key and one argument for each take')
end
local now = ARGV[1]
if now == '' then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
else
  now = tonumber(now)
end
local charge_by = ARGV[2]
if charge_by ~= '' then charge_by = tonumber(charge_by) end
if not now or not charge_by then
  return redis.error_reply('FLYBALL_E_CALL_INVALID nowUs and chargeByUs are µs, or empty')
end

-- Half of the finest cost, and what a double of the clock's size cannot tell apart: rounding never denies, and
-- what it grants stays owed.
local function slack_at(v)
  return 0.0000005 + math.max(0, v) * 4.4408920985006262e-16
end
local NONE = -1e300
local LONGEST_MS = 315360000000 -- ten years: a retry time beyond it is none

-- What is in force: the packed view while one rate holds, else computed from the fields, else the caller's.
local hot = call('HGET', KEYS[1], 'hot')
local code, from, untl, since, accrued, rate, capacity, full, floor, reserve_default, reserve_sheddable
local ttl, subject_since, subject_accrued, subject_rate, subject_capacity, subject_floor, subject_ttl
local open_until, probe_rate, text, clock, subject_clock
local managed = hot and true
local unmanaged_base
if managed then
  code, from, untl, since, accrued, rate, capacity, full, floor, reserve_default, reserve_sheddable,
    ttl, subject_since, subject_accrued, subject_rate, subject_capacity, subject_floor, subject_ttl,
    open_until, probe_rate = struct.unpack('<dddddddddddddddddddd', hot)
  if now >= from and now < untl then
    text = string.sub(hot, 161)
    clock = accrued + rate * (now - since) / 1000000
    subject_clock = subject_accrued + subject_rate * (now - subject_since) / 1000000
  else
    --- @include lib/params.lua
    --- @include lib/effective.lua
    --- @include lib/ttl.lua
    --- @include lib/view.lua
    local v = view_of(read_params(KEYS[1]), now)
    code, rate, capacity, full, text = v.code, v.rate, v.capacity, v.fullCapacity, v.text
    clock, subject_clock, ttl, subject_ttl = v.tokens, v.subjectTokens, v.ttlMs, v.subjectTtlMs
    reserve_default, reserve_sheddable = v.reserveDefault, v.reserveSheddable
    subject_rate, subject_capacity = v.subjectRate, v.subjectCapacity
    open_until, probe_rate = v.openUntil, v.probeRate
    -- A floor ahead of a clock that was set back would deny for as long as the step: it is ignored.
    floor = v.floor > clock + slack_at(clock) and NONE or v.floor
    subject_floor = v.subjectFloor > subject_clock + slack_at(subject_clock) and NONE or v.subjectFloor
  end
else
  --- @include lib/unmanaged.lua
end

if charge_by ~= '' and now > charge_by then return { 1, now, text } end
local mode, state = code % 4, (code - code % 4) / 4
if managed and mode ~= 0 and (mode == 1) ~= (ARGV[3] == '1') then return { 2, now, text } end
local reply = { 0, now, text }

-- Costs repeat: each distinct argument is read once a call. -1: not a cost.
local costs, reserves = { ['1'] = 1 }, { ['1'] = reserve_default }
local function read_take(arg)
  local cost, priority = string.match(arg, '^(%d+%.?%d*) ?(%l*)$')
  costs[arg] = -1
  if priority == '' then
    reserves[arg] = reserve_default
  elseif priority == 'critical' then
    reserves[arg] = 0
  elseif priority == 'sheddable' then
    reserves[arg] = reserve_sheddable
  else
    return
  end
  if #arg - #priority ~= #cost + (priority == '' and 0 or 1) then return end
  if #cost <= 16 and (string.find(cost, '^[1-9]%d*$') or cost == '0'
    or (string.find(cost, '^%d+%.%d%d?%d?%d?%d?%d?$') and tonumber(cost) > 0
      and not string.find(cost, '^0%d'))) then
    costs[arg] = tonumber(cost)
  end
end

if mode == 0 then
  local whole = math.floor(full)
  for i = 1, takes do
    local arg = ARGV[4 + i]
    if not costs[arg] then read_take(arg) end
    local n = #reply
    reply[n + 1], reply[n + 2], reply[n + 3] = costs[arg] < 0 and 8 or 1, whole, 0
  end
  return reply
end

-- A bucket as the point on the token clock from which its tokens count: tokens = clock - base.
local total_key = KEYS[2]
local stored = call('MGET', unpack(KEYS, 2))
local bases, moved, ahead = {}, {}, nil
local function strand(key) -- to be written even by a denial: it would stay where it is for ever
  ahead = ahead or {}
  ahead[key] = true
end
local function read_base(key, mark, v, cap, lowest)
  local base = math.max(lowest, v - cap)
  if mark then
    local m
    if managed then
      m = tonumber(mark)
      if m and m > v + slack_at(v) then -- ahead of Redis's clock, or of another epoch's
        m = v
        strand(key)
      elseif not m or m ~= m then -- left by a call that met no params
        local tokens = tonumber(string.match(mark, '^u:(%d+%.?%d*):'))
        m = tokens and v - tokens or v
        strand(key)
      end
    else
      local stranded
      m, stranded = unmanaged_base(mark, key == KEYS[2] and rate or subject_rate)
      if stranded then strand(key) end
    end
    if m > base then base = m end
  end
  bases[key] = base
  return base
end

local total = read_base(total_key, stored[1], clock, capacity, floor)
local by_subject = subject_rate >= 0
local slack, subject_slack = slack_at(clock), slack_at(subject_clock)
local open, probing = state == 1, state == 2
for i = 1, takes do
  local arg, key = ARGV[4 + i], KEYS[2 + i]
  local cost = costs[arg]
  if not cost then
    read_take(arg)
    cost = costs[arg]
  end
  local reason, retry = 0, 0
  local left = clock - total
  local subject
  if by_subject and key ~= total_key then
    subject = bases[key] or read_base(key, stored[1 + i], subject_clock, subject_capacity, subject_floor)
  end
  if cost < 0 then
    reason, retry = 8, -1
  elseif cost > full or (subject and cost > subject_capacity) then
    reason, retry = 7, -1
  else
    if open then
      reason = 4
      if open_until < 0 then
        retry = -1
      else
        retry = (open_until - now) / 1000
        if cost > left then retry = retry + (cost - left) / probe_rate * 1000 end
      end
    else
      local short = cost + reserves[arg] - left
      if cost - left > slack then
        reason = probing and 5 or 2
      elseif short > slack then
        reason = 6
      end
      if reason > 0 then
        if rate > 0 and left + short <= capacity + slack then
          retry = (short - slack / 2) / rate * 1000
        else
          retry = -1
        end
      end
    end
    if subject then
      local short = cost - (subject_clock - subject)
      if short > subject_slack then
        if reason ~= 4 then reason = 3 end
        if subject_rate > 0 and retry >= 0 then
          retry = math.max(retry, (short - subject_slack / 2) / subject_rate * 1000)
        else
          retry = -1
        end
      end
    end
  end
  if ahead and cost > 0 then
    if ahead[total_key] then moved[total_key] = true end
    if subject and ahead[key] then moved[key] = true end
  end
  if reason == 0 and cost > 0 then
    total = total + cost
    left = left - cost
    moved[total_key] = true
    if subject then
      subject = subject + cost
      bases[key], moved[key] = subject, true
    end
  end
  if subject then left = math.min(left, subject_clock - subject) end
  if retry > LONGEST_MS then
    retry = -1
  elseif reason > 0 and retry >= 0 then
    retry = math.max(1, math.ceil(retry))
  end
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3] = reason, left > 0 and math.floor(left + slack) or 0, retry
end

-- A mark is a number that reads back to the same bits (%.17g); peeks and denials leave `moved` empty.
bases[total_key] = total
for key in pairs(moved) do
  local base = bases[key]
  local life = key == total_key and ttl or subject_ttl
  if managed then
    call('SET', key, string.format('%.17g', base), 'PX', life)
  else
    call('SET', key, string.format('u:%.17g:%.0f', base < 0 and -base or 0, now), 'PX', life)
  end
end
return reply
