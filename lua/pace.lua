-- pace: leaky bucket for pacing: admits n takes up to `capacity` waiting, and says when each may proceed.
-- What proceeds is never closer than the rate allows, after a rest too. A key is one mark on the token clock: what
-- waits is mark - V, and a take proceeds once that has leaked at the rate in force. A denied take writes nothing,
-- except to bring back a mark that lies further ahead than its capacity: the clock was set back.
-- KEYS:
--   params      the params hash
--   total       the total's queue (the shadow's, when `shadow` is 1)
--   subject...  one for each take: the subject's queue, or `total` again for a take without a subject
-- ARGV:
--   nowUs       empty: Redis TIME; tests pass a time
--   chargeByUs  latest Redis time (µs) at which this call may charge; empty: any; 0: never, only learn the time
--   shadow      1: the keys are the shadow's
--   fallback    numbers for missing params: `rate capacity inFlightMax subjectRate subjectCapacity`
--   take...     one for each take: `<cost>`, `<cost> critical` or `<cost> sheddable`
-- RETURNS: [status, nowUs, inForce, then reason, remaining, delayMs or retryAfterMs of each take]; see docs/contract.md
-- TIME: once, unless nowUs is given
-- COMPLEXITY: O(n) in the takes
--- @include lib/number.lua
--- @include lib/now.lua
--- @include lib/params.lua
--- @include lib/effective.lua
--- @include lib/ttl.lua
--- @include lib/view.lua
local FIRST, LEADING = 4, 2
--- @include lib/opening.lua
--- @include lib/rule.lua
-- A block, an exemption and the most live subjects hold as in `subjects`; numbers of their own have no meaning here.
-- An exempt subject still waits in the total's queue, as far as that has room.
local overrides_key, index_key, shared_key = KEYS[LEADING + 1], KEYS[LEADING + 2], KEYS[LEADING + 3]
--- @include lib/rules.lua
local function slack_at(v)
  return 0.0000005 + (v > 0 and v or 0) * 4.4408920985006262e-16
end

-- Tokens that wait under a key.
local function open_queue(key, v, per_second, most, life)
  local q = { key = key, v = v, rate = per_second, most = most, life = life, level = 0, slack = slack_at(v) }
  local stored = call('GET', key)
  if not stored then
    q.fresh = true
    return q
  end
  local level, at = string.match(stored, '^u:(%d+%.?%d*[eE]?[%+%-]?%d*):(%d+)$')
  level = tonumber(level)
  if level then -- calls without params left it
    level = level - per_second * math.max(0, now - tonumber(at)) / 1000000
    q.ahead = tonumber(at) > now
  elseif managed then
    level = tonumber(stored)
    level = level and level - v
  end
  -- Further ahead than its room, no number, or without params a mark of the token clock: nothing is known, it is full.
  if not level or not (level <= most + q.slack) then level, q.ahead = most, true end
  q.level = math.max(0, level)
  return q
end

local opened, order = {}, {}
local function queue_of(key, ...)
  local q = opened[key]
  if not q then
    q = open_queue(key, ...)
    opened[key] = q
    order[#order + 1] = q
  end
  return q
end

-- How long until `tokens` have leaked; nil when nothing leaks.
local function leak_us(q, tokens)
  if tokens <= q.slack then return 0 end
  return q.rate > 0 and tokens / q.rate * 1000000 or nil
end

for i = 1, takes do
  local arg, key = ARGV[FIRST + i], KEYS[before_subjects + i]
  --- @include lib/asked.lua
  local rule = rich and mode > 0 and key ~= total_key and rule_of(i) or nil
  local kind, shared = rule and rule.kind, false
  local exempt = kind == 'exempt' and not probing
  local reason, ms, left = 0, 0, capacity
  if cost < 0 then
    reason, ms, left = 8, -1, 0
  elseif mode == 0 then
    reason = 1
  elseif kind == 'block' then
    reason, left = 9, 0
    ms = rule.ends == -1 and -1 or whole_ms(rule.ends * 1000 - now)
  elseif open then
    reason, left = 4, 0
    ms = open_until < 0 and -1 or whole_ms(open_until - now)
  else
    local total = queue_of(total_key, clock, rate, capacity, ttl)
    local own = subject_rate >= 0 and key ~= total_key and kind ~= 'exempt'
      and queue_of(key, subject_clock, subject_rate, subject_capacity, subject_ttl)
    if own and most and not rule and own.fresh and not own.came and not room_for(subject_ttl, cost > 0) then
      own = queue_of(shared_key, subject_clock, subject_rate, subject_capacity, subject_ttl)
      shared = true
    end
    left = capacity - total.level
    if cost > 0 then
      total.touched = true
      if own then own.touched = true end
    end
    if not exempt and cost > full or own and cost > subject_capacity then
      reason, ms = 7, -1
    else
      local us = 0
      local short = cost + reserve - left
      if not exempt and (short > total.slack or cost > 0 and rate <= 0) then
        reason = cost - left <= total.slack and rate > 0 and 6 or probing and 5 or 2
        us = rate > 0 and cost + reserve <= capacity + total.slack and leak_us(total, short)
      end
      short = own and cost + own.level - subject_capacity or 0
      if own and (short > own.slack or cost > 0 and subject_rate <= 0) then
        local more = subject_rate > 0 and leak_us(own, short)
        reason, us = 3, us and more and math.max(us, more)
      end
      if reason > 0 then ms = whole_ms(us) end
    end
    if reason == 0 and cost > 0 then
      local us = leak_us(total, total.level) or 0
      if own then us = math.max(us, leak_us(own, own.level)) end
      if us > 0 then ms = math.ceil(us / 1000) end
      total.level = total.level + (exempt and math.max(0, math.min(cost, capacity - total.level)) or cost)
      total.changed = true
      if own then own.level, own.changed = own.level + cost, true end
      if own and most and not rule and own.fresh and not shared and not own.came then
        own.came = true
        came(key, subject_ttl)
      end
      left = left - cost
    end
    if own then left = math.min(left, subject_capacity - own.level) end
  end
  if exempt and reason == 0 then reason = 10 end
  local at = 3 * i + 1
  reply[at], reply[at + 1] = reason + (shared and 32 or 0), math.max(0, math.floor(left + 0.0000005))
  reply[at + 2] = ms
end

for i = 1, #order do
  local q = order[i]
  if q.changed or q.ahead and q.touched then
    local mark = managed and string.format('%.17g', q.v + q.level) or string.format('u:%.17g:%.0f', q.level, now)
    call('SET', q.key, mark, 'PX', q.life)
  end
end
return reply
