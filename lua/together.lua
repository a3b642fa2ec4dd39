-- together: decides takes of several limiters at once, all or none: every limiter is asked first, then all are charged.
-- A limiter in shadow denies nobody: it is charged if it would have admitted and the others do. Token buckets only.
-- Of what is known of single subjects it heeds blocks alone.
-- KEYS:
--   keys...     of each limiter: params, the total's bucket; then for each set of takes, of each limiter: the
--               subject's bucket, or the total's again for a take without a subject
-- ARGV:
--   nowUs       empty: Redis TIME; tests pass a time
--   chargeByUs  latest Redis time (µs) at which this call may charge; empty: any; 0: never, only learn the time
--   limiters    how many limiters a set has, 1 to 16
--   terms...    of each limiter: `1` if its keys are the shadow's, `2` if they are since a rollout has not reached the
--               take, which denies nobody but the blocked, else `0`, and numbers for missing params; then
--               for each set of takes, of each limiter: `<cost>`, `<cost> critical` or `<cost> sheddable`
-- RETURNS: [status, nowUs, inForce of each limiter, then reason, remaining, retryAfterMs of each take]
-- TIME: once, unless nowUs is given
-- COMPLEXITY: O(n) in the takes; at most two reads and two writes for each
--- @include lib/number.lua
--- @include lib/params.lua
--- @include lib/effective.lua
--- @include lib/ttl.lua
--- @include lib/view.lua
--- @include lib/now.lua
--- @include lib/rule.lua
local call = redis.call
local size = within(ARGV[3], 1, 16)
local sets = size and (#ARGV - 3) / size - 2
if not size or size % 1 ~= 0 or sets < 0 or sets % 1 ~= 0 or sets * size > 512 or #KEYS ~= size * (sets + 2) then
  return redis.error_reply('FLYBALL_E_CALL_INVALID two keys and two terms a limiter, then one of each a take')
end
local now, charge_by = now_us(ARGV[1]), ARGV[2]
if charge_by ~= '' then charge_by = within(charge_by, -LARGEST, LARGEST) end
if not now or not charge_by then
  return redis.error_reply('FLYBALL_E_CALL_INVALID nowUs and chargeByUs are µs, or empty')
end
local NONE = -1e300

-- What lies in each bucket, read at once where many takes come together.
local marks
if sets > 1 then
  local buckets = {}
  for i = 1, size do buckets[i] = KEYS[2 * i] end
  for i = 2 * size + 1, #KEYS do buckets[i - size] = KEYS[i] end
  local read = call('MGET', unpack(buckets))
  marks = {}
  for i = 1, #buckets do marks[buckets[i]] = read[i] end
end

local function slack_at(v)
  return 0.0000005 + (v > 0 and v or 0) * 4.4408920985006262e-16
end

-- What is in force for one limiter, as `take` reads it. Its own terms stand where a take has its own.
local function limiter_of(params, bucket, ARGV)
  local params_key = params
  --- @include lib/packed.lua
  if not text then
    local p = read_params(params)
    managed = p and true
    if p then
      --- @include lib/viewed.lua
    else
      --- @include lib/unmanaged.lua
    end
  end
  local slack, subject_slack = slack_at(clock), slack_at(subject_clock)
  -- A floor ahead of a clock that was set back is ignored.
  if floor > clock + slack then floor = NONE end
  if subject_floor > subject_clock + subject_slack then subject_floor = NONE end
  -- What a person said of single subjects stands beside the params.
  local overrides = code >= 16 and string.sub(params, 1, -7) .. 'o'
  code = code % 16
  local mode = code % 4
  local state = (code - mode) / 4
  return {
    managed = managed, mode = mode, open = state == 1, probing = state == 2, text = text,
    rate = rate, capacity = capacity, full = full, floor = floor, clock = clock, slack = slack, ttl = ttl,
    subject_rate = subject_rate, subject_capacity = subject_capacity, subject_floor = subject_floor,
    subject_clock = subject_clock, subject_slack = subject_slack, subject_ttl = subject_ttl,
    reserve_default = reserve_default, reserve_sheddable = reserve_sheddable,
    open_until = open_until, probe_rate = probe_rate, unmanaged_base = unmanaged_base,
    bucket = bucket, overrides = overrides, bases = {}, ahead = {}, moved = {}, costs = {}, reserves = {},
  }
end

-- From where a bucket's tokens count, read once a call.
local function base_of(l, key, v, per_second, room, floor, slack)
  local base = l.bases[key]
  if base then return base end
  base = v - room
  if floor > base then base = floor end
  local mark
  if marks then mark = marks[key] else mark = call('GET', key) end
  if mark then
    local managed, unmanaged_base = l.managed, l.unmanaged_base
    local anchor = managed and tonumber(mark)
    if not anchor or not (anchor <= v + slack) then
      --- @include lib/anchor.lua
      if stranded then l.ahead[key] = true end
    end
    if anchor > base then base = anchor end
  end
  l.bases[key] = base
  return base
end

-- What one limiter alone would answer, charging nothing: cost, reason, retry, left, the subject's key if it counts.
local function check(l, arg, key)
  local costs, reserves = l.costs, l.reserves
  local reserve_default, reserve_sheddable = l.reserve_default, l.reserve_sheddable
  local cost = costs[arg]
  if not cost then
    --- @include lib/cost.lua
  end
  local reserve, reason, retry = reserves[arg], 0, 0
  local rate, capacity, full, slack = l.rate, l.capacity, l.full, l.slack
  local open, probing, open_until, probe_rate = l.open, l.probing, l.open_until, l.probe_rate
  local subject_rate, subject_capacity = l.subject_rate, l.subject_capacity
  local subject_clock, subject_slack = l.subject_clock, l.subject_slack
  local left, subject = capacity, false
  if l.mode > 0 then
    left = l.clock - base_of(l, l.bucket, l.clock, rate, capacity, l.floor, slack)
    subject = subject_rate >= 0 and key ~= l.bucket
      and base_of(l, key, subject_clock, subject_rate, subject_capacity, l.subject_floor, subject_slack)
  end
  local blocked = l.overrides and key ~= l.bucket
    and override_of(call('HGET', l.overrides, string.sub(key, #l.bucket + 2)), now)
  if cost < 0 then
    reason, retry = 8, -1
  elseif l.mode == 0 then
    reason, left = 1, full
  elseif blocked and blocked.kind == 'block' then
    reason, left = 9, 0
    retry = blocked.ends == -1 and -1 or math.max(1, math.ceil((blocked.ends * 1000 - now) / 1000))
  elseif open or cost > full or cost + reserve - left > slack
    or subject and (cost > subject_capacity or cost - (subject_clock - subject) > subject_slack) then
    --- @include lib/denial.lua
  end
  return cost, reason, retry, left, subject and key
end

local limiters, texts, fits = {}, {}, true
for i = 1, size do
  local terms = { '', '', ARGV[2 + 2 * i], ARGV[3 + 2 * i] }
  local l = limiter_of(KEYS[2 * i - 1], KEYS[2 * i], terms)
  -- Numbers for missing params that cannot be read: an error reply instead of a limiter.
  if l.err then return l end
  if l.managed and l.mode ~= 0 and (l.mode == 1) ~= (terms[3] == '1') then fits = false end
  l.apart = terms[3] == '2'
  limiters[i], texts[i] = l, l.text
end
local reply = { 0, now, unpack(texts) }
if charge_by ~= '' and now > charge_by then
  reply[1] = 1
  return reply
end
if not fits then
  reply[1] = 2
  return reply
end

local cost_of, reason_of, retry_of, left_of, key_of = {}, {}, {}, {}, {}
local filled = #reply
for set = 1, sets do
  local all = true
  for i = 1, size do
    local l, at = limiters[i], size * (set + 1) + i
    local cost, reason, retry, left, key = check(l, ARGV[3 + at], KEYS[at])
    cost_of[i], reason_of[i], retry_of[i], left_of[i], key_of[i] = cost, reason, retry, left, key
    -- A person's word on one subject waits for no rollout.
    if reason > 1 and l.mode ~= 1 and (not l.apart or reason == 9) or reason == 8 then all = false end
  end
  for i = 1, size do
    local l, cost, left, key = limiters[i], cost_of[i], left_of[i], key_of[i]
    if all and reason_of[i] == 0 and cost > 0 then
      l.bases[l.bucket] = l.bases[l.bucket] + cost
      l.moved[l.bucket] = true
      left = left - cost
      if key then
        l.bases[key] = l.bases[key] + cost
        l.moved[key] = true
      end
    elseif cost > 0 and l.mode > 0 then
      -- What lies ahead of Redis's clock could not refill there: even a denial brings it back.
      if l.ahead[l.bucket] then l.moved[l.bucket] = true end
      if key and l.ahead[key] then l.moved[key] = true end
    end
    if key then left = math.min(left, l.subject_clock - l.bases[key]) end
    left = left + l.slack
    reply[filled + 1] = reason_of[i]
    reply[filled + 2] = left >= 1 and left - left % 1 or 0
    reply[filled + 3] = retry_of[i]
    filled = filled + 3
  end
end

for i = 1, size do
  local l = limiters[i]
  for key in pairs(l.moved) do
    local base = l.bases[key]
    local life = string.format('%.0f', key == l.bucket and l.ttl or l.subject_ttl)
    if l.managed then
      call('SET', key, string.format('%.17g', base), 'PX', life)
    else
      call('SET', key, string.format('u:%.17g:%.0f', base < 0 and -base or 0, now), 'PX', life)
    end
  end
end
return reply
