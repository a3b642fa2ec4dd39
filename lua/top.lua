-- top: adds what one process counted of its heaviest subjects to a minute, and keeps the minute small.
-- The hash holds `t:<subject>` (tokens admitted) and `d:<subject>` (takes denied), each a lower bound; `te` and `de` say
-- by how much each may be too low; `t`, `d` are the totals; `n` the takes seen, `r` those of them that were read.
-- KEYS:
--   minute   hash of one minute
-- ARGV:
--   ttlMs    how long the minute is kept from now
--   most     subjects kept of each kind when the hash has grown
--   grown    fields from which it counts as grown
--   pairs...  a field and an amount to add (a number >= 0), many times
-- RETURNS: fields in the hash
-- TIME: never
-- COMPLEXITY: O(p) in the pairs; when grown O(f log f) in the fields, which are at most grown + p
--- @include lib/number.lua
local call = redis.call
local ttl, most, grown = within(ARGV[1], 1, LEASE_MAX_MS), count(ARGV[2]), count(ARGV[3])
if not (ttl and most and most >= 1 and grown) or #ARGV % 2 == 0 or not KEYS[1] then
  return redis.error_reply('FLYBALL_E_CALL_INVALID top wants ttlMs, most, grown, then pairs')
end
for i = 4, #ARGV, 2 do
  if not within(ARGV[i + 1], 0, LARGEST) then
    return redis.error_reply('FLYBALL_E_CALL_INVALID top wants amounts >= 0')
  end
end
-- What is no number there is begun anew, so that it fails neither the others nor what follows.
local function add(field, amount)
  local held = call('HGET', KEYS[1], field)
  if held and not within(held, 0, LARGEST) then call('HDEL', KEYS[1], field) end
  call('HINCRBYFLOAT', KEYS[1], field, amount)
end
for i = 4, #ARGV, 2 do add(ARGV[i], ARGV[i + 1]) end

-- As trimHeavy of the SDK: the weight of the first that goes is taken off those that stay, and is the error.
local function trim(all, kind)
  local list = {}
  for i = 1, #all, 2 do
    local n = within(all[i + 1], 0, LARGEST)
    if string.sub(all[i], 1, 2) == kind .. ':' then
      if n then list[#list + 1] = { all[i], n } else call('HDEL', KEYS[1], all[i]) end
    end
  end
  if #list <= most then return end
  table.sort(list, function(a, b) return a[2] > b[2] end)
  local cut = list[most + 1][2]
  for i = 1, #list do
    local left = list[i][2] - cut
    if left > 0 then
      call('HSET', KEYS[1], list[i][1], string.format('%.17g', left))
    else
      call('HDEL', KEYS[1], list[i][1])
    end
  end
  add(kind .. 'e', string.format('%.17g', cut))
end
if call('HLEN', KEYS[1]) > grown then
  local all = call('HGETALL', KEYS[1])
  trim(all, 't')
  trim(all, 'd')
end
call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil(ttl)))
return call('HLEN', KEYS[1])
