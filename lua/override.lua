-- override: what a person says of one subject, or takes back: it is stored or removed, with exactly one audit entry and
-- a new revision; or refused, and nothing is written. The subject's buckets take its new numbers from this moment on.
-- Overrides whose time is over are removed on the way; once none is left and no policy speaks of single subjects,
-- takes go by the plain script again.
-- KEYS:
--   params      the params hash
--   audit       the audit stream
--   overrides   hash: encoded subject by what a person said of it
--   bucket      the subject's bucket
--   shadow      the same of the shadow
--   standing    the subject's outcomes in a row
-- ARGV:
--   nowUs       empty: Redis TIME; tests pass a time
--   epoch       expected epoch
--   revision    expected revision
--   prev        hash of the audit entry before this one
--   hash        hash of this audit entry
--   body        this audit entry, canonical JSON
--   channel     where the change is noticed
--   limiter     name that the notice carries
--   subject     the subject, encoded
--   value       `<block | exempt | limit> <untilMs> <rate or -> <capacity or -> <revision>` and a line break before what
--     people read of it; empty: none any more
-- RETURNS: ['ok', nowUs, epoch, revision, streamId] or ['refused', reason, detail, nowUs, epoch, revision, head]
-- TIME: once, unless nowUs is given
-- COMPLEXITY: O(o) in the overrides, at most 1,000
--- @include lib/number.lua
--- @include lib/now.lua
--- @include lib/params.lua
--- @include lib/effective.lua
--- @include lib/ttl.lua
--- @include lib/view.lua
--- @include lib/hot.lua
--- @include lib/head.lua
--- @include lib/own.lua
--- @include lib/change.lua
--- @include lib/rule.lua
local MOST, LONGEST = 1000, 2048
local now = now_us(ARGV[1])
local epoch, revision = count(ARGV[2]), count(ARGV[3])
local prev, hash, body = ARGV[4], ARGV[5], ARGV[6]
local channel, limiter, field, value = ARGV[7], ARGV[8], ARGV[9], ARGV[10]
local p = read_params(KEYS[1])
local head = audit_head(KEYS[2])

local function integer(n)
  return string.format('%.0f', n)
end
local function refuse(reason, detail)
  local at = p or { epoch = 0, revision = 0 }
  return { 'refused', reason, detail, integer(now or 0), integer(at.epoch), integer(at.revision), head }
end

if not now or not epoch or not revision or not KEYS[6] or not value or field == '' or #field > 64 then
  return refuse('invalid', 'nowUs, epoch and revision are numbers, subject is encoded')
end
if not p then return refuse('invalid', 'the params are missing: create them') end
if epoch ~= p.epoch or revision ~= p.revision then
  return refuse('revision', 'in force is ' .. integer(p.epoch) .. '/' .. integer(p.revision))
end
if prev ~= head then return refuse('head', 'the newest audit entry is another one') end
local rule = value ~= '' and override_of(value, now) or nil
if value ~= '' then
  if #value > LONGEST then return refuse('invalid', 'an override is at most ' .. LONGEST .. ' bytes') end
  if not rule then return refuse('invalid', 'an override says block, exempt or limit, and ends later than now') end
  if rule.rate and not (rule.rate > 0 and rule.rate <= 1000000)
    or rule.capacity and not (rule.capacity > 0 and rule.capacity <= 1000000000) then
    return refuse('invalid', 'rate is 0 to 1000000, capacity 0 to 1000000000, both above 0')
  end
  local windowed = p.windowMs and p.windowMs > 0
  if rule.numbers and p.subjectRate < 0 and not (rule.rate and (rule.capacity or windowed)) then
    return refuse('invalid', 'the policy has no numbers for subjects: give rate and capacity')
  end
end

-- Those that are over go; the newest word on this subject counts alone.
-- Under another type there are none, and this write takes its place.
local kind = redis.call('TYPE', KEYS[3])['ok']
local foreign = kind ~= 'hash' and kind ~= 'none'
local flat = foreign and {} or redis.call('HGETALL', KEYS[3])
local over, left, found = {}, 0, nil
for i = 1, #flat, 2 do
  if flat[i] == field then found = flat[i + 1] end
  if not override_of(flat[i + 1], now) then
    over[#over + 1] = flat[i]
  elseif flat[i] ~= field then
    left = left + 1
  end
end
if rule and left >= MOST then return refuse('full', 'there are ' .. left .. ' overrides; ' .. MOST .. ' is the most') end

-- All that is read of other keys, before anything is written: one of another type reads as none, and fails nothing.
local standing = redis.call('MGET', KEYS[6])[1]
p.revision = p.revision + 1
p.subjectRules = (rule or left > 0 or p.subjectTerms and p.subjectTerms ~= '') and 1 or 0
local v = view_of(p, now)
-- What may fail comes first, since nothing is undone.
redis.call('PUBLISH', channel, limiter .. ' ' .. integer(p.epoch) .. ' ' .. integer(p.revision))
local id = append(KEYS[2], 'change', p.epoch, p.revision, hash, prev, body)
redis.call('HSET', KEYS[1], 'revision', integer(p.revision), 'subjectRules', integer(p.subjectRules), 'hot', pack_hot(v))
local s = subjects_of(v)
local before = override_of(found, now)
-- Without numbers of a person those of its tier count.
local steps = steps_of(p.subjectTerms or '')
local tier = steps[tier_of(steps, tonumber(standing or ''))]
local was, is = before and before.numbers and before or tier, rule and rule.numbers and rule or tier
if was ~= is then change_numbers(p, KEYS[4], KEYS[5], was, is, now, s) end
if foreign then redis.call('DEL', KEYS[3]) end
for i = 1, #over do redis.call('HDEL', KEYS[3], over[i]) end
if rule then redis.call('HSET', KEYS[3], field, value) else redis.call('HDEL', KEYS[3], field) end
return { 'ok', integer(now), integer(p.epoch), integer(p.revision), id }
