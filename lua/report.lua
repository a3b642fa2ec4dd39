-- report: adds what a process counted since its last report to a telemetry second, all of it or nothing.
-- KEYS:
--   second      telemetry hash of the second in which it comes
-- ARGV:
--   keptMs      how long it is kept from now
--   counts      fields and counts, a line each
-- RETURNS: how many fields were added to
-- TIME: never
-- COMPLEXITY: O(fields)
local added = 0
for field, count in string.gmatch(ARGV[2], '([^\n]+)\n(%d+)') do
  redis.call('HINCRBY', KEYS[1], field, count)
  added = added + 1
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return added
