-- draw: takes tokens in blocks for a process that decides by itself for a moment, and takes back what it did not use.
-- Of each bucket at most half of what is left is given, above the reserve of default takes: who asks next finds some.
-- KEYS:
--   params      the params hash
--   bucket...   the total's, then those of subjects, each once
-- ARGV:
--   nowUs       empty: Redis TIME; tests pass a time
--   epoch       of the tokens that come back: those of another are not taken back
--   draw...     one for the total and one for each subject: `<want> <back>`, whole tokens
-- RETURNS: [status, nowUs, inForce, then tokens given, whole tokens left, for each]; status 0, or 1: nothing is drawn
--   in blocks now (no params, shadow, off, open, half-open, rules for subjects, another algorithm), nor taken back
-- TIME: once, unless nowUs is given
-- COMPLEXITY: O(n) in the buckets
--- @include lib/number.lua
--- @include lib/now.lua
--- @include lib/params.lua
--- @include lib/effective.lua
--- @include lib/ttl.lua
--- @include lib/view.lua
local call = redis.call
local draws = #KEYS - 1
if draws < 1 or draws > 512 or #ARGV ~= draws + 2 then
  return redis.error_reply('FLYBALL_E_CALL_INVALID one argument for each bucket, at most 512')
end
local now, epoch = now_us(ARGV[1]), count(ARGV[2])
if not now or not epoch then
  return redis.error_reply('FLYBALL_E_CALL_INVALID nowUs is µs, or empty; epoch is a count')
end
local wants, backs = {}, {}
for i = 1, draws do
  local want, back = string.match(ARGV[2 + i], '^(%d+) (%d+)$')
  wants[i], backs[i] = count(want), count(back)
  if not wants[i] or not backs[i] then
    return redis.error_reply('FLYBALL_E_CALL_INVALID a draw is `<want> <back>`: ' .. string.sub(ARGV[2 + i], 1, 40))
  end
end

local p = read_params(KEYS[1])
if not p then return { 1, now, '' } end
local v = view_of(p, now)
local reply = { 0, now, v.text }
-- Only what enforces, in order: mode recommend or auto, state closed or recovering, no rules.
local mode, state = v.code % 4, math.floor(v.code / 4)
if mode < 2 or state == STATES['open'] or state == STATES['half-open'] or state > 3
  or p.algorithm and p.algorithm ~= '' and p.algorithm ~= 'token-bucket' then
  reply[1] = 1
  return reply
end

for i = 1, draws do
  local key, total = KEYS[1 + i], i == 1
  local clock = total and v.tokens or v.subjectTokens
  local most = total and v.capacity or v.subjectCapacity
  local floor = total and v.floor or v.subjectFloor
  local life = total and v.ttlMs or v.subjectTtlMs
  local kept = total and v.reserveDefault or 0
  local slack = 0.0000005 + (clock > 0 and clock or 0) * 4.4408920985006262e-16
  local given, left = 0, 0
  if total or v.subjectRate >= 0 then
    local base = clock - most
    -- A floor ahead of a clock that was set back is ignored.
    if floor > base and floor <= clock + slack then base = floor end
    local mark = call('GET', key)
    local moved = false
    if mark then
      mark = tonumber(mark)
      -- What lies ahead, or was left without params, is brought to now: empty.
      if not mark or not (mark <= clock + slack) then
        mark, moved = clock, true
      elseif backs[i] > 0 and p.epoch == epoch then
        mark = mark - backs[i]
        moved = true
      end
      if mark > base then base = mark end
    end
    left = clock - base
    given = math.max(0, math.min(wants[i], math.floor((left - kept) / 2 + slack)))
    base, left = base + given, left - given
    if moved or given > 0 then call('SET', key, string.format('%.17g', base), 'PX', life) end
  end
  reply[2 + 2 * i], reply[3 + 2 * i] = given, math.max(0, math.floor(left + slack))
end
return reply
