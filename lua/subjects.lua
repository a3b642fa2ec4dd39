-- subjects: decides n takes as `take` does, by what is known of single subjects too: a person's override, the tier
-- that its outcomes have reached, one bucket shared by all who come past the most live ones. A blocked one is denied;
-- an exempt one has no bucket of its own, and is denied neither by it nor by the total, from which it takes what is
-- there: only an open breaker and the probes of a half-open one bind it. Under `fair` a subject above its max-min share
-- is refused while the total refuses others. A denied take writes nothing, except to bring back a bucket that lies
-- ahead of Redis's clock, to put the index of live subjects in order, and to say that the total refuses.
-- KEYS:
--   params      the params hash
--   bucket      the total's bucket (the shadow's, when `shadow` is 5)
--   owed        sorted set of who owes what the total's bucket lacks, under `fair`
--   overrides   hash: encoded subject by what a person said of it
--   index       sorted set of live subjects, by when they are gone
--   shared      the bucket of all who come past the most live subjects
--   subject...  one for each take: the subject's bucket, or `bucket` again for a take without a subject; then one for
--     each take: what stands of the subject (its outcomes in a row), or `bucket` again
-- ARGV:
--   nowUs       empty: Redis TIME; tests pass a time
--   chargeByUs  latest Redis time (µs) at which this call may charge; empty: any; 0: never, only learn the time
--   shadow      4, or 5: the keys are the shadow's
--   fallback    numbers for missing params: `rate capacity inFlightMax subjectRate subjectCapacity`
--   take...     one for each take: `<cost>`, `<cost> critical` or `<cost> sheddable`
-- RETURNS: [status, nowUs, inForce, then reason, remaining, retryAfterMs of each take]; status 3: `take` decides, since
--   nothing is known of single subjects; reason 9: blocked; 10: admitted, since it is exempt; 11: above its fair
--   share; 32 is added where the shared bucket stood in
-- TIME: once, unless nowUs is given
-- COMPLEXITY: O(n) in the takes; up to 26 steps more for each subject that comes past the most, and under `fair`
--   O(log of who owes) for each, and for each debt that is paid off
--- @include lib/number.lua
--- @include lib/now.lua
--- @include lib/params.lua
--- @include lib/effective.lua
--- @include lib/ttl.lua
--- @include lib/view.lua
local FIRST, LEADING = 4, 3
--- @include lib/opening.lua
local overrides_key, index_key, shared_key = KEYS[4], KEYS[5], KEYS[6]
--- @include lib/own.lua
--- @include lib/rule.lua
--- @include lib/rules.lua
local function slack_at(v)
  return 0.0000005 + (v > 0 and v or 0) * 4.4408920985006262e-16
end
local slack = slack_at(clock)
if floor > clock + slack then floor = NONE end
local s = {
  clock = subject_clock, slack = slack_at(subject_clock), rate = subject_rate, capacity = subject_capacity,
  floor = subject_floor, ttl = subject_ttl, since = subject_since,
  lowest = subject_lowest,
}
if s.floor > s.clock + s.slack then s.floor = NONE end

local total, total_ahead, total_moved = clock - capacity, false, false
if total < floor then total = floor end
local mark = mode > 0 and call('GET', total_key)
if mark then
  local anchor = tonumber(mark)
  if not anchor or not (anchor <= clock + slack) then
    local v, per_second = clock, rate
    --- @include lib/anchor.lua
    total_ahead = stranded
  end
  if anchor > total then total = anchor end
end

--- @include lib/fair.lua

-- A subject's bucket: tokens = clock - base, on the policy's token clock, or on one that stands at 0 if the subject has
-- numbers of its own.
local buckets, order = {}, {}
local function bucket_of(key, rule)
  local q = buckets[key]
  if q then return q end
  local stored = call('GET', key)
  local tokens, stranded = held(stored, rule, now, s)
  q = { key = key, rule = rule, clock = 0, base = -tokens, rate = s.rate, capacity = room_of(rule, s), slack = s.slack }
  if rule then
    q.rate, q.slack = rule.rate or s.rate, slack_at(0)
  else
    -- A plain mark stands as it is: to count it back and forth would cost it bits.
    local plain = tonumber(stored or '')
    q.clock, q.base = s.clock, plain and not stranded and math.max(plain, s.clock - s.capacity, s.floor)
      or s.clock - tokens
  end
  q.ahead, q.fresh = stranded, not stored and not rule
  buckets[key] = q
  order[#order + 1] = q
  return q
end

for i = 1, takes do
  local arg, key = ARGV[FIRST + i], KEYS[before_subjects + i]
  --- @include lib/asked.lua
  local rule = mode > 0 and key ~= total_key and whole(rule_of(i) or nil, s) or nil
  local kind = rule and rule.kind
  local exempt = kind == 'exempt' and not probing
  local q, shared
  if mode > 0 and key ~= total_key and kind ~= 'block' and kind ~= 'exempt' and (rule or s.rate >= 0) then
    q = bucket_of(key, rule)
    if most and q.fresh and not q.came and not room_for(s.ttl, cost > 0) then
      q, shared = bucket_of(shared_key), true
    end
  end

  local reason, retry, left = 0, 0, clock - total
  local subject, subject_clock = q and q.base, q and q.clock
  local subject_rate, subject_capacity, subject_slack = q and q.rate, q and q.capacity, q and q.slack
  if cost < 0 then
    reason, retry = 8, -1
  elseif mode == 0 then
    reason, left = 1, full
  elseif kind == 'block' then
    reason, left = 9, 0
    retry = rule.ends == -1 and -1 or whole_ms(rule.ends * 1000 - now)
  elseif open or not exempt and (cost > full or cost + reserve - left > slack)
    or q and (cost > subject_capacity or cost - (subject_clock - subject) > subject_slack) then
    --- @include lib/denial.lua
  end

  local ower = pressing and key ~= total_key and kind ~= 'exempt' and owing_with(key, shared)
  local short = ower and reason == 0 and owed_by(ower) + cost - left or 0
  if short > slack then
    -- Who is alone is above nobody's share.
    reason, retry = in_company(ower) and 11 or 2, whole_ms(fair_wait(short))
  end
  if fair and cost > 0 and (reason == 2 or reason == 6 or reason == 11) then press(capacity - left) end

  if reason == 0 and cost > 0 then
    -- Nobody owes what an exempt subject took beyond what was there.
    if exempt then total = math.max(total, math.min(total + cost, clock)) else total = total + cost end
    if pressing then owe(ower or '!', left - (clock - total)) end
    left, total_moved = clock - total, true
    if q then
      q.base, q.moved = q.base + cost, true
      if most and q.fresh and not shared and not q.came then
        q.came = true
        came(key, s.ttl)
      end
    end
  elseif cost > 0 and mode > 0 then
    if total_ahead then total_moved = true end
    if q and q.ahead then q.moved = true end
  end
  if ower then left = math.min(left, (left - owed_by(ower) + 1) / 2) end
  if q and reason ~= 1 and q.clock - q.base < left then left = q.clock - q.base end
  left = left + slack
  if exempt and reason == 0 then reason = 10 end
  local at = 3 * i + 1
  reply[at], reply[at + 1], reply[at + 2] = reason + (shared and 32 or 0), left >= 1 and left - left % 1 or 0, retry
end

if fair then keep_fair() end
if total_moved then call('SET', total_key, string.format('%.17g', total), 'PX', ttl) end
for i = 1, #order do
  local q = order[i]
  if q.moved and q.rule then
    call('SET', q.key, own_text(-q.base, q.rule, now, s), 'PX', own_life(q.rule, now, s))
  elseif q.moved then
    call('SET', q.key, string.format('%.17g', q.base), 'PX', s.ttl)
  end
end
return reply
