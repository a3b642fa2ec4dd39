-- outcome: counts how something ended for one subject, once: so many in a row raise its tier, one of the others brings
-- it back. The tier's numbers hold from this moment on; a later take reads them in its own call.
-- KEYS:
--   params      the params hash
--   standing    the subject's outcomes in a row
--   seen        says that this outcome was counted
--   overrides   hash: encoded subject by what a person said of it
--   bucket      the subject's bucket
--   shadow      the same of the shadow
-- ARGV:
--   nowUs       empty: Redis TIME; tests pass a time
--   name        what the outcome is called
--   subject     the subject, encoded
-- RETURNS: [status, inARow, tier, rate, capacity]; status 1 counted, 0 counted before, 2 no tier knows the name,
--   3 no tiers; tier 0: the policy's numbers; a rate of -1: none
-- TIME: once, unless nowUs is given
-- COMPLEXITY: O(1)
--- @include lib/number.lua
--- @include lib/now.lua
--- @include lib/params.lua
--- @include lib/effective.lua
--- @include lib/ttl.lua
--- @include lib/view.lua
--- @include lib/own.lua
--- @include lib/change.lua
--- @include lib/rule.lua
local SEEN_MS = 86400000
local now, name, field = now_us(ARGV[1]), ARGV[2], ARGV[3]
if not now or not KEYS[6] or not field or not string.find(name, '^[%w._%-]+$') or #name > 64 then
  return redis.error_reply('FLYBALL_E_CALL_INVALID outcome wants six keys, a name of 1 to 64 of A-Z, a-z, 0-9, ., _, -, and a subject')
end
local p = read_params(KEYS[1])
local terms = p and p.subjectTerms or ''
local steps = steps_of(terms)
local keep = within(string.match(terms, 'keep=(%d+)'), 1, LEASE_MAX_MS)
if not steps[1] or not keep then return { 3, 0, 0, '-1', '0' } end
local before = tonumber(redis.call('GET', KEYS[2]) or '') or 0
local s = subjects_of(view_of(p, now))

local function answer(status, streak)
  local tier = tier_of(steps, streak)
  local rule = whole(steps[tier], s)
  return { status, streak, tier, exact(rule and rule.rate or s.rate), exact(room_of(rule, s)) }
end

local good = name == string.match(terms, 'on=(%S+)')
local bad = string.find(',' .. (string.match(terms, 'reset=(%S+)') or '') .. ',', ',' .. name .. ',', 1, true)
if not good and not bad then return answer(2, before) end
if not redis.call('SET', KEYS[3], '1', 'PX', SEEN_MS, 'NX') then return answer(0, before) end
-- Beyond the highest step there is nothing to count for.
local after = good and math.min(before + 1, steps[#steps].times) or 0
local was, is = steps[tier_of(steps, before)], steps[tier_of(steps, after)]
if was ~= is then
  local override = override_of(redis.call('HGET', KEYS[4], field), now)
  -- A person's numbers rule before and after it.
  if not (override and override.numbers) then change_numbers(p, KEYS[5], KEYS[6], was, is, now, s) end
end
if after > 0 then
  redis.call('SET', KEYS[2], string.format('%.0f', after), 'PX', keep)
else
  redis.call('DEL', KEYS[2])
end
return answer(1, after)
