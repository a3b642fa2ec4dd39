-- announce: a daemon says that it lives, and hears who else does. Who is long silent is forgotten.
-- KEYS:
--   daemons     the registry: owner → `<when it last spoke, Redis ms> <what it says of itself, JSON>`
-- ARGV:
--   nowUs       empty: Redis TIME; tests pass a time
--   owner       who speaks; unique to one start of a process
--   record      JSON; empty: it leaves
--   livesMs     who is silent for longer does not live
-- RETURNS: [nowUs, owner...] of all that live
-- TIME: once, unless nowUs is given
-- COMPLEXITY: O(daemons)
--- @include lib/number.lua
--- @include lib/now.lua
local FORGET_MS = 60000
local KEPT_MS = 86400000
local now = now_us(ARGV[1])
local owner, record, lives_ms = ARGV[2], ARGV[3], within(ARGV[4], 1, LEASE_MAX_MS)
if not now or not lives_ms or owner == '' then
  return redis.error_reply('FLYBALL_E_CALL_INVALID announce wants owner, record, livesMs above 0')
end
local now_ms = math.floor(now / 1000)
local function spoke_at(at, text)
  return string.format('%.0f', at) .. ' ' .. text
end
-- A key of another type is of nobody's: with it no daemon would hear of another.
local kind = redis.call('TYPE', KEYS[1])['ok']
if kind ~= 'hash' and kind ~= 'none' then redis.call('DEL', KEYS[1]) end
if record == '' then
  redis.call('HDEL', KEYS[1], owner)
else
  redis.call('HSET', KEYS[1], owner, spoke_at(now_ms, record))
  redis.call('PEXPIRE', KEYS[1], KEPT_MS)
end
local reply = { string.format('%.0f', now) }
local flat = redis.call('HGETALL', KEYS[1])
for i = 1, #flat, 2 do
  local at, text = string.match(flat[i + 1], '^(%d+) (.*)$')
  at = count(at)
  if not at or now_ms - at > math.max(FORGET_MS, lives_ms) then
    redis.call('HDEL', KEYS[1], flat[i])
  else
    -- The clock was set back since: its silence is counted from now on.
    if at > now_ms then
      redis.call('HSET', KEYS[1], flat[i], spoke_at(now_ms, text))
    end
    if now_ms - at <= lives_ms then reply[#reply + 1] = flat[i] end
  end
end
return reply
