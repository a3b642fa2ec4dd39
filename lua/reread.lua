-- reread: params as stored, of those limiters whose params are not as they were last read.
-- KEYS:
--   params...  params hashes, of any limiters on this slot
-- ARGV:
--   mark...    of each, as last read; empty: not read yet
-- RETURNS: [nowUs, then of each three: validUntil, mark (both empty: missing), fields and values (nil: as marked)]
-- TIME: once, after the reads
-- COMPLEXITY: O(fields of all)
local out = {}
for i = 1, #KEYS do
  local all = redis.call('HGETALL', KEYS[i])
  local kept = {}
  local valid = ''
  for j = 1, #all, 2 do
    if all[j] == 'validUntil' then
      valid = all[j + 1]
    elseif all[j] ~= 'hot' then
      -- Both move with each beat: the mark leaves them out.
      kept[#kept + 1] = all[j]
      kept[#kept + 1] = all[j + 1]
    end
  end
  local mark = ''
  if #kept > 0 then mark = redis.sha1hex(table.concat(kept, '\n')) end
  local at = 3 * i - 1
  out[at] = valid
  out[at + 1] = mark
  if mark == '' or mark == ARGV[i] then
    out[at + 2] = false
  else
    out[at + 2] = kept
  end
end
local time = redis.call('TIME')
out[1] = string.format('%.0f', time[1] * 1000000 + time[2])
return out
