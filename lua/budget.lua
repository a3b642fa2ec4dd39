-- budget: what all autopilots may change together. Cuts are counted and never wait; raises wait until there is room.
-- KEYS:
--   budget      `<changes left> <doublings left> <when, Redis ms>`
-- ARGV:
--   nowUs       empty: Redis TIME; tests pass a time
--   changes     most changes a minute; empty: any number
--   doublings   most doublings an hour, of all raises together; empty: any number
--   raise       log2 of the factor of the raise that is asked for; 0: a cut
-- RETURNS: [1 granted | 0 wait, nowUs]
-- TIME: once, unless nowUs is given
-- COMPLEXITY: O(1)
--- @include lib/number.lua
--- @include lib/now.lua
local KEPT_MS = 7200000
local now = now_us(ARGV[1])
local changes, doublings, raise = finite(ARGV[2]), finite(ARGV[3]), within(ARGV[4], 0, 1000)
if not now or not raise then
  return redis.error_reply('FLYBALL_E_CALL_INVALID budget wants raise, 0 or more')
end
local now_ms = math.floor(now / 1000)
-- Half at once and half over the time, so that no minute and no hour sees more.
local most_changes = math.max(1, (changes or 0) / 2)
local most_doublings = (doublings or 0) / 2
-- MGET: a key of another type reads as none.
local left_c, left_d, at = string.match(redis.call('MGET', KEYS[1])[1] or '', '^(%S+) (%S+) (%d+)$')
left_c, left_d, at = finite(left_c), finite(left_d), count(at)
if not left_c or not left_d or not at then left_c, left_d, at = most_changes, most_doublings, now_ms end
local passed = math.max(0, now_ms - at)
left_c = math.min(most_changes, left_c + most_changes * passed / 60000)
left_d = math.min(most_doublings, left_d + most_doublings * passed / 3600000)
local granted = raise == 0 or ((not changes or left_c >= 1)
  and (not doublings or left_d >= math.min(raise, most_doublings)))
if granted then
  left_c = math.max(0, left_c - 1)
  left_d = left_d - raise
end
local text = string.format('%.6f %.6f %.0f', left_c, math.max(-1000, left_d), now_ms)
redis.call('SET', KEYS[1], text, 'PX', KEPT_MS)
return { granted and 1 or 0, string.format('%.0f', now) }
