-- take: decides n takes in order, each against the total's bucket and its subject's, all or none of the two.
-- A denied take writes nothing, except to re-anchor a bucket that lies ahead of Redis's clock.
-- KEYS:
--   params      the params hash
--   bucket      the total's bucket (the shadow's, when `shadow` is 1)
--   subject...  one for each take: the subject's bucket, or `bucket` again for a take without a subject
-- ARGV:
--   nowUs       empty: Redis TIME; tests pass a time
--   chargeByUs  latest Redis time (µs) at which this call may charge; empty: any; 0: never, only learn the time
--   shadow      1: the keys are the shadow's; with 2 added the answers come packed
--   fallback    numbers for missing params: `rate capacity inFlightMax subjectRate subjectCapacity`
--   take...     one for each take, or one for all: `<cost>`, `<cost> critical` or `<cost> sheddable`
-- RETURNS: [status, nowUs, inForce, then reason, remaining, retryAfterMs of each take]; see docs/contract.md. Packed:
--   those three as little-endian doubles, all in one string, which costs Redis and its client less than numbers
-- TIME: once, unless nowUs is given
-- COMPLEXITY: O(n) in the takes; two reads, and two writes for an admitted take
-- A lone take is most of the traffic, so nothing is made for it that it does not need: functions and tables come
-- with the branch that uses them, and includes stand inside branches.
local call = redis.call
local takes = #KEYS - 2
local same = takes > 1 and #ARGV == 5 and ARGV[5]
if takes < 0 or not same and #ARGV ~= takes + 4 then
  return redis.error_reply('FLYBALL_E_CALL_INVALID one key and one argument for each take')
end
local shadow, packed = ARGV[3] == '1', false
if ARGV[3] == '2' or ARGV[3] == '3' then shadow, packed = ARGV[3] == '3', true end
local now, charge_by = ARGV[1], ARGV[2]
if now == '' then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
else
  --- @include lib/number.lua
  now = within(now, -LARGEST, LARGEST)
end
if charge_by ~= '' then
  charge_by = tonumber(charge_by)
  -- Of NaN and infinity alone the difference to itself is not 0.
  if charge_by and charge_by - charge_by ~= 0 then charge_by = nil end
end
if not now or not charge_by then
  return redis.error_reply('FLYBALL_E_CALL_INVALID nowUs and chargeByUs are µs, or empty')
end

-- What is in force: the packed view while one rate holds, else computed from the fields, else the caller's.
local params_key = KEYS[1]
local NONE = -1e300
--- @include lib/packed.lua
if not text then
  --- @include lib/params.lua
  local p = read_params(params_key)
  managed = p and true
  if p then
    --- @include lib/effective.lua
    --- @include lib/ttl.lua
    --- @include lib/view.lua
    --- @include lib/viewed.lua
  else
    --- @include lib/unmanaged.lua
  end
end

if charge_by ~= '' and now > charge_by then return { 1, now, text } end
if code >= 16 then return { 3, now, text } end
local mode = code % 4
if managed and mode ~= 0 and (mode == 1) ~= shadow then return { 2, now, text } end
local reply = { 0, now, text }
local state = (code - mode) / 4

-- Half of the finest cost, and what a double of the clock's size cannot tell apart: rounding never denies, and
-- what it grants stays owed.
local slack = 0.0000005 + (clock > 0 and clock or 0) * 4.4408920985006262e-16
local subject_slack = 0.0000005 + (subject_clock > 0 and subject_clock or 0) * 4.4408920985006262e-16
-- A floor ahead of a clock that was set back would deny for as long as the step: it is ignored.
if floor > clock + slack then floor = NONE end
if subject_floor > subject_clock + subject_slack then subject_floor = NONE end

-- Buckets as points on the token clock from which their tokens count: tokens = clock - base. `ahead` holds the keys
-- that even a denial writes, since they could not refill where they are. Of a batch the first `moved` of `stored`
-- become the keys that must be written, some of them more than once: what was read there has been used by then.
local total_key = KEYS[2]
local by_subject = subject_rate >= 0
local open, probing = state == 1, state == 2
local stored, bases, ahead, costs, reserves, total_moved, lone, lone_base
local moved = 0
if takes > 1 then
  -- More would not fit into one reply, and hold Redis for too long.
  if takes > 512 then return redis.error_reply('FLYBALL_E_CALL_INVALID at most 512 takes') end
  stored, bases = call('MGET', unpack(KEYS, 2)), {}
end
local mark = stored and stored[1] or not stored and mode > 0 and call('GET', total_key)
local total = clock - capacity
if total < floor then total = floor end
if mark then
  local anchor = managed and tonumber(mark)
  if not anchor or not (anchor <= clock + slack) then
    local v, per_second = clock, rate
    --- @include lib/anchor.lua
    if stranded then ahead = { [total_key] = true } end
  end
  if anchor > total then total = anchor end
end

local at = 3
for i = 1, takes do
  local arg, key = same or ARGV[4 + i], KEYS[2 + i]
  --- @include lib/asked.lua

  local subject
  if by_subject and key ~= total_key and mode > 0 then
    subject = bases and bases[key]
    if not subject then
      subject = subject_clock - subject_capacity
      if subject < subject_floor then subject = subject_floor end
      if stored then mark = stored[1 + i] else mark = call('GET', key) end
      if mark then
        local anchor = managed and tonumber(mark)
        if not anchor or not (anchor <= subject_clock + subject_slack) then
          local v, per_second = subject_clock, subject_rate
          --- @include lib/anchor.lua
          if stranded then
            ahead = ahead or {}
            ahead[key] = true
          end
        end
        if anchor > subject then subject = anchor end
      end
      if bases then bases[key] = subject end
    end
  end

  local reason, retry = 0, 0
  local left = clock - total
  if cost < 0 then
    reason, retry = 8, -1
  elseif mode == 0 then
    reason, left = 1, full
  elseif open or cost > full or cost + reserve - left > slack
    or subject and (cost > subject_capacity or cost - (subject_clock - subject) > subject_slack) then
    --- @include lib/denial.lua
  end

  local granted = reason == 0 and cost > 0
  if granted then
    total, left, total_moved = total + cost, left - cost, true
    if subject then subject = subject + cost end
  elseif ahead and cost > 0 and ahead[total_key] then
    total_moved = true
  end
  if subject and (granted or ahead and cost > 0 and ahead[key]) then
    if bases then
      moved = moved + 1
      bases[key], stored[moved] = subject, key
    else
      lone, lone_base = key, subject
    end
  end
  if subject and subject_clock - subject < left then left = subject_clock - subject end
  left = left + slack
  reply[at + 1], reply[at + 2], reply[at + 3] = reason, left >= 1 and left - left % 1 or 0, retry
  at = at + 3
end

-- A mark is a number that reads back to the same bits (Redis writes 17 digits, or as many as it takes); peeks and
-- denials have moved nothing.
if total_moved then
  if managed then
    call('SET', total_key, total, 'PX', ttl)
  else
    call('SET', total_key, string.format('u:%.17g:%.0f', total < 0 and -total or 0, now), 'PX', ttl)
  end
end
if lone then
  if not managed then
    lone_base = string.format('u:%.17g:%.0f', lone_base < 0 and -lone_base or 0, now)
  end
  call('SET', lone, lone_base, 'PX', subject_ttl)
elseif moved > 0 then
  -- Formatted once: a number would be formatted anew in each of the calls.
  local life = string.format('%.0f', subject_ttl)
  for i = 1, moved do
    local key = stored[i]
    local base = bases[key]
    if base then
      bases[key] = nil
      if managed then
        call('SET', key, base, 'PX', life)
      else
        call('SET', key, string.format('u:%.17g:%.0f', base < 0 and -base or 0, now), 'PX', life)
      end
    end
  end
end
if packed and takes > 0 then
  return { 0, now, text, struct.pack('<' .. string.rep('d', 3 * takes), unpack(reply, 4)) }
end
return reply
