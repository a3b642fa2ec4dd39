-- seconds: telemetry seconds as text, of those to which flushes were added since they were last read.
-- KEYS:
--   second...  telemetry hashes, of any limiters on this slot
-- ARGV:
--   mark...    of each, as last read: flushes, number of fields, offered; empty: not read yet
-- RETURNS: [nowUs, then of each: nil when nothing was added; empty: not there; else its mark, then its fields and
--   counts, a line each]
-- TIME: once, after the reads
-- COMPLEXITY: O(fields of what is returned)
--- @include lib/second.lua
local out = {}
for i = 1, #KEYS do
  local mark = second_mark(KEYS[i])
  if mark == ARGV[i] then
    out[i + 1] = false
  elseif mark == '' then
    out[i + 1] = ''
  else
    out[i + 1] = mark .. '\n' .. table.concat(redis.call('HGETALL', KEYS[i]), '\n')
  end
end
local time = redis.call('TIME')
out[1] = string.format('%.0f', time[1] * 1000000 + time[2])
return out
