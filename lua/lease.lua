-- lease: takes, renews or gives back the right to actuate one limiter.
-- The fencing token only grows: max(last + 1, Redis ms); the last one is kept in the params as well.
-- KEYS:
--   lease       who may actuate
--   params      the params hash
-- ARGV:
--   nowUs       empty: Redis TIME; tests pass a time
--   op          acquire | release
--   owner       who asks; unique to one start of a process
--   token       what was granted before; empty: nothing
--   leaseMs     how long the lease lives
-- RETURNS: ['held', owner, token, nowUs], ['other', owner, token, ttlMs, nowUs] or ['released', nowUs]
-- TIME: once, unless nowUs is given
-- COMPLEXITY: O(1)
--- @include lib/number.lua
--- @include lib/now.lua
local LONGEST_MS = 600000
local now = now_us(ARGV[1])
local op, owner, token, lease_ms = ARGV[2], ARGV[3], ARGV[4], within(ARGV[5], 1, LEASE_MAX_MS)
if not now or not lease_ms or (op ~= 'acquire' and op ~= 'release') or owner == '' then
  return redis.error_reply('FLYBALL_E_CALL_INVALID lease wants op, owner, leaseMs above 0')
end
local text = string.format('%.0f', now)
local life = string.format('%.0f', math.ceil(lease_ms))
-- MGET, since a key of another type then reads as none. Nor is it a lease if it names no owner or never ends.
local held = redis.call('MGET', KEYS[1])[1]
local other, others_token = string.match(held or '', '^(.*):(%d+)$')
local ttl = held and redis.call('PTTL', KEYS[1])
if not other or ttl == -1 then held = false end
local mine = held and token ~= '' and held == owner .. ':' .. token
if op == 'release' then
  if mine then redis.call('DEL', KEYS[1]) end
  if mine or not held then return { 'released', text } end
elseif mine then
  redis.call('PEXPIRE', KEYS[1], life)
  return { 'held', owner, token, text }
elseif not held then
  local last = count(redis.call('HGET', KEYS[2], 'fence')) or 0
  local granted = string.format('%.0f', math.max(last + 1, math.floor(now / 1000)))
  redis.call('SET', KEYS[1], owner .. ':' .. granted, 'PX', life)
  if redis.call('EXISTS', KEYS[2]) == 1 then redis.call('HSET', KEYS[2], 'fence', granted) end
  return { 'held', owner, granted, text }
end
-- No daemon asks for so long: the clock was set back since. It lapses unless its holder renews it.
if ttl > LONGEST_MS and op == 'acquire' then
  redis.call('PEXPIRE', KEYS[1], life)
  ttl = life
end
return { 'other', other, others_token, tostring(ttl), text }
