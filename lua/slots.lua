-- slots: holds or returns places under the in-flight cap, one by one: exact for caps smaller than the fleet.
-- A slot is held for 5 s and renewed each second by its process; a dead holder's returns by time. An id is known to its
-- holder only, so nobody returns another's. What processes hold as shares counts too. A denied call writes nothing.
-- KEYS:
--   params    the params hash
--   slots     sorted set: id by the time (µs) until which it is held
--   shares    hash of the shares: `:sum` of those that may be in use, and when that was
-- ARGV:
--   nowUs     empty: Redis TIME; tests pass a time
--   fallback  numbers for missing params: `rate capacity inFlightMax subjectRate subjectCapacity`
--   op        hold: take each id, or renew it; release: return it, once or many times
--   id...     unique to one request of one process
-- RETURNS: [nowUs, cap, held, then 1 or 0 for each id: held (hold), was held (release)]; a cap of 0 is no cap
-- TIME: once, unless nowUs is given
-- COMPLEXITY: O(i log s) in the ids and the slots
--- @include lib/number.lua
--- @include lib/now.lua
--- @include lib/params.lua
--- @include lib/effective.lua
local call = redis.call
local now = now_us(ARGV[1])
local LEASE_US = 5000000
local op = ARGV[3]
if not now or not KEYS[3] or (op ~= 'hold' and op ~= 'release') then
  return redis.error_reply('FLYBALL_E_CALL_INVALID slots wants three keys, and op hold or release')
end
local function text(n)
  return string.format('%.0f', n)
end
local p = read_params(KEYS[1])
local cap
if p then
  cap = effective(p, now).inFlightMax
else
  cap = within(string.match(ARGV[2], '^%S+ %S+ (%S+) %S+ %S+$'), 0, LARGEST)
  if not cap then return redis.error_reply('FLYBALL_E_CALL_INVALID fallback is five numbers') end
end
cap = math.floor(cap)

local reply = { text(now), text(cap), 0 }
local until_us = text(now + LEASE_US)
if op == 'hold' then
  -- The clock was set back: what lies ahead is held for one lease from now, as if just renewed.
  local ahead = call('ZRANGEBYSCORE', KEYS[2], '(' .. until_us, '+inf', 'LIMIT', 0, 1000)
  for i = 1, #ahead do call('ZADD', KEYS[2], until_us, ahead[i]) end
end
local held = call('ZCOUNT', KEYS[2], '(' .. text(now), '+inf')
-- Shares lapse 3 s after they were last asked for.
local shares, at = string.match(op == 'hold' and call('HGET', KEYS[3], ':sum') or '', '^(%d+) (%d+)$')
local room = cap - (shares and now - tonumber(at) < 3000000 and tonumber(shares) or 0)
local wrote = false
for i = 4, #ARGV do
  local id, done = ARGV[i], 0
  if op == 'release' then
    local score = tonumber(call('ZSCORE', KEYS[2], id) or '')
    if score then call('ZREM', KEYS[2], id) end
    if score and score > now then done, held = 1, held - 1 end
  elseif cap == 0 then
    done = 1
  else
    local score = tonumber(call('ZSCORE', KEYS[2], id) or '')
    local mine = score and score > now
    if mine or held < room then
      if not wrote then call('ZREMRANGEBYSCORE', KEYS[2], '-inf', text(now)) end
      call('ZADD', KEYS[2], until_us, id)
      done, wrote = 1, true
      if not mine then held = held + 1 end
    end
  end
  reply[i] = done
end
if wrote then call('PEXPIRE', KEYS[2], 2 * LEASE_US / 1000) end
reply[3] = held
return reply
