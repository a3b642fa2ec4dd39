-- inflight: asks for this process's part of the in-flight cap, once a second and at a new revision.
-- Max-min fair by need, in whole requests; what nobody needs is spread evenly, so one process alone has it all.
-- A share is granted only from what others do not hold, so that shares never pass the cap; a dead process's
-- lapses after 3 s. A cap smaller than the fleet is kept place by place (slots), until it was large enough for 10 s.
-- Shares and places count against one cap, so that a fleet changes from one to the other without passing it.
-- KEYS:
--   params      the params hash
--   shares      hash: process → `need share reports atUs`; `:places`: when places were last needed (µs); `:sum`: of
--     the shares, and when that was
--   slots       sorted set: id by the time (µs) until which its place is held
-- ARGV:
--   nowUs       empty: Redis TIME; tests pass a time
--   process     unique to one start of a process
--   need        most requests in flight at once that this process would use now
--   reports     1: it reports completions; 2: and takes place by place, `need` being what else is under way here;
--     0: it does not, and is bound by the rate only
--   fallback    numbers for missing params: `rate capacity inFlightMax subjectRate subjectCapacity`
--   exact       1: places are wanted however large the cap; 0: where it is smaller than the fleet; -: never
--   bound       most that may be under way here under a share until this answer is heard; missing: 0
-- RETURNS: [nowUs, inForce, share, fair, processes, reporting, places]; a share of -1 is no cap; `fair` is what it gets
--   once all others have asked again; `places` 1: take place by place
-- TIME: once, unless nowUs is given
-- COMPLEXITY: O(p log p) in the live processes
--- @include lib/number.lua
--- @include lib/now.lua
--- @include lib/params.lua
--- @include lib/effective.lua
--- @include lib/ttl.lua
--- @include lib/view.lua
local now = now_us(ARGV[1])
local process, need, by_place = ARGV[2], within(ARGV[3], 0, 1000000000), ARGV[4] == '2'
local reports, exact, never = by_place or ARGV[4] == '1', ARGV[6] == '1', ARGV[6] == '-'
local bound = within(ARGV[7] or '0', 0, 1000000000)
local named = process and process ~= '' and #process <= 256 and not string.find(process, '^:')
if not now or not named or not need or not bound or not KEYS[3] or not ARGV[6] then
  return redis.error_reply('FLYBALL_E_CALL_INVALID inflight wants three keys, a process that does not begin with :, '
    .. 'need and bound of 0 or more, and exact')
end
need, bound = math.ceil(need), math.ceil(bound)
local LAPSE_US, STICK_US = 3000000, 10000000

local cap, text
local p = read_params(KEYS[1])
if p then
  local v = view_of(p, now)
  text = v.text
  cap = effective(p, now).inFlightMax
else
  local rate, capacity, max, subject_rate, subject_capacity =
    string.match(ARGV[5], '^(%S+) (%S+) (%S+) (%S+) (%S+)$')
  cap = within(max, 0, LARGEST)
  if not (cap and within(rate, 0, LARGEST) and within(capacity, 0, LARGEST)
    and within(subject_rate, -1, LARGEST) and within(subject_capacity, 0, LARGEST)) then
    return redis.error_reply('FLYBALL_E_CALL_INVALID fallback is five numbers')
  end
  text = '0 0 0 0 recommend closed 0 ' .. rate .. ' ' .. capacity .. ' ' .. max .. ' ' .. subject_rate
    .. ' ' .. subject_capacity
end
cap = math.floor(cap)

-- Who lives, what they need and hold; this process as it is now.
local all, names, held, processes, reporting, mine, placed_at = {}, {}, 0, 1, 0, 0, nil
local flat = redis.call('HGETALL', KEYS[2])
for i = 1, #flat, 2 do
  local name = flat[i]
  local n, share, r, at = string.match(flat[i + 1], '^(%d+) (%-?%d+) ([012]) (%d+)$')
  at = tonumber(at)
  if name == ':places' then
    placed_at = tonumber(flat[i + 1])
  elseif name == process then
    if at and now - at < LAPSE_US then mine = math.max(0, tonumber(share)) end
  elseif name ~= ':sum' then
    if not at or now - at >= LAPSE_US then
      redis.call('HDEL', KEYS[2], name)
    else
      if at > now then -- the clock was set back: it lapses from now on
        redis.call('HSET', KEYS[2], name, string.format('%s %s %s %.0f', n, share, r, now))
      end
      processes = processes + 1
      if r ~= '0' then
        reporting = reporting + 1
        held = held + math.max(0, tonumber(share))
      end
      if r == '1' then
        names[#names + 1] = name
        all[name] = tonumber(n)
      end
    end
  end
end
local share, fair, places = -1, -1, false
if reports then
  reporting = reporting + 1
  if cap > 0 then
    -- Of its share a process that takes place by place keeps what is under way under it, until that has ended.
    if exact or not never and cap < reporting or placed_at and placed_at > now then
      placed_at = now
      redis.call('HSET', KEYS[2], ':places', string.format('%.0f', now))
    end
    places = not never and placed_at and now - placed_at < STICK_US
    local free = math.max(0, cap - redis.call('ZCOUNT', KEYS[3], '(' .. string.format('%.0f', now), '+inf'))
    names[#names + 1] = process
    all[process] = need
    -- Smallest needs first: each gets what it needs or an equal part of what is left; names break ties.
    table.sort(names, function(a, b)
      if all[a] ~= all[b] then return all[a] < all[b] end
      return a < b
    end)
    local left, parts = free, {}
    for i = 1, #names do
      local part = math.min(all[names[i]], math.floor(left / (#names - i + 1)))
      parts[i] = part
      left = left - part
    end
    -- What nobody needs, evenly to all.
    for i = 1, #names do
      local more = math.floor(left / (#names - i + 1))
      parts[i] = parts[i] + more
      left = left - more
      if names[i] == process then fair = parts[i] end
    end
    share = math.max(0, math.min(fair, free - held))
    if by_place then
      share = math.min(mine, need)
      fair = share
    elseif places then
      share, fair = mine, mine -- until it asks again, with what is under way
    end
  end
end
-- What it has under way beyond its share, or may begin before it hears of it, is not yet another's.
local holds = share >= 0 and not by_place and math.max(share, bound) or share
local as = by_place and 2 or reports and 1 or 0
redis.call(
  'HSET', KEYS[2], process, string.format('%.0f %.0f %d %.0f', need, holds, as, now),
  ':sum', string.format('%.0f %.0f', held + math.max(0, holds), now)
)
redis.call('PEXPIRE', KEYS[2], 60000)
return {
  string.format('%.0f', now), text, string.format('%.0f', share), string.format('%.0f', fair),
  string.format('%d', processes), string.format('%d', reporting), places and '1' or '0',
}
