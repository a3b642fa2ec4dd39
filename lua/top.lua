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
local call = redis.call
local ttl, most, grown = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if not (ttl and ttl > 0 and most and most >= 1 and grown) or #ARGV % 2 == 0 then
  return redis.error_reply('FLYBALL_E_CALL_INVALID top wants ttlMs, most, grown, then pairs')
end
for i = 4, #ARGV, 2 do
  local amount = tonumber(ARGV[i + 1])
  if not (amount and amount >= 0 and amount < math.huge) then
    return redis.error_reply('FLYBALL_E_CALL_INVALID top wants amounts >= 0')
  end
end
for i = 4, #ARGV, 2 do call('HINCRBYFLOAT', KEYS[1], ARGV[i], ARGV[i + 1]) end

-- As trimHeavy of the SDK: the weight of the first that goes is taken off those that stay, and is the error.
local function trim(all, kind)
  local list = {}
  for i = 1, #all, 2 do
    local n = tonumber(all[i + 1])
    if string.sub(all[i], 1, 2) == kind .. ':' and n then list[#list + 1] = { all[i], n } end
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
  call('HINCRBYFLOAT', KEYS[1], kind .. 'e', string.format('%.17g', cut))
end
if call('HLEN', KEYS[1]) > grown then
  local all = call('HGETALL', KEYS[1])
  trim(all, 't')
  trim(all, 'd')
end
call('PEXPIRE', KEYS[1], ttl)
return call('HLEN', KEYS[1])
