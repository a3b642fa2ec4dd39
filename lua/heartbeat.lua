-- heartbeat: the lease holder says that it lives: what is in force stays valid for another lease.
-- No revision and no audit entry. Refused once the limits glide, or the clock was set back: then actuate.
-- KEYS:
--   params      the params hash
--   lease       who may actuate
--   state       the law's checkpoint
-- ARGV:
--   nowUs       empty: Redis TIME; tests pass a time
--   owner       of the lease
--   token       fencing token of the lease
--   leaseMs     how long the word holds
--   checkpoint  the law's state; empty: none
-- RETURNS: ['ok', nowUs, validUntil, epoch, revision] or ['refused', 'lease' | 'gliding' | 'clock' | 'missing', nowUs]
-- TIME: once, unless nowUs is given
-- COMPLEXITY: O(1)
--- @include lib/number.lua
--- @include lib/now.lua
--- @include lib/params.lua
--- @include lib/effective.lua
--- @include lib/ttl.lua
--- @include lib/view.lua
--- @include lib/hot.lua
--- @include lib/fence.lua
local now = now_us(ARGV[1])
local lease_ms = within(ARGV[4], 1, LEASE_MAX_MS)
if not now or not lease_ms then
  return redis.error_reply('FLYBALL_E_CALL_INVALID nowUs and leaseMs are numbers, leaseMs 1 or more')
end
local text = string.format('%.0f', now)
local p = read_params(KEYS[1])
if not p then return { 'refused', 'missing', text } end
if not holds_lease(KEYS[2], ARGV[2], ARGV[3], p.fence) then return { 'refused', 'lease', text } end
if now >= glide_start(p) then return { 'refused', 'gliding', text } end
if now < p.changedAt then return { 'refused', 'clock', text } end
p.validUntil = math.floor(now / 1000) + lease_ms
redis.call('HSET', KEYS[1], 'validUntil', string.format('%.0f', p.validUntil), 'hot', pack_hot(view_of(p, now)))
redis.call('PEXPIRE', KEYS[2], string.format('%.0f', lease_ms))
if ARGV[5] ~= '' then redis.call('SET', KEYS[3], ARGV[5], 'PX', '3600000') end
return {
  'ok', text, string.format('%.0f', p.validUntil),
  string.format('%.0f', p.epoch), string.format('%.0f', p.revision),
}
