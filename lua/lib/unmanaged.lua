-- unmanaged: the params are missing, so the caller's numbers rule and buckets refill by them the classical way:
-- `u:<tokens>:<timeUs>`. Processes with different numbers then never fight over a mark of the token clock.
local number = '(%d+%.?%d*[eE]?[%+%-]?%d*)'
local r, c, f, sr, sc = string.match(
  ARGV[4],
  '^' .. number .. ' ' .. number .. ' ' .. number .. ' (%-?%d+%.?%d*[eE]?[%+%-]?%d*) ' .. number .. '$'
)
rate, capacity, subject_rate, subject_capacity = tonumber(r), tonumber(c), tonumber(sr), tonumber(sc)
local cap = tonumber(f)
local sum = rate and capacity and cap and subject_rate and subject_capacity
  and rate + capacity + cap + subject_rate + subject_capacity
if not sum or sum > 9007199254740992 then
  return redis.error_reply('FLYBALL_E_CALL_INVALID fallback is five numbers: ' .. ARGV[4])
end
code = (ARGV[3] == '1' or ARGV[3] == '3') and 1 or 2
full, floor, subject_floor = capacity, NONE, NONE
clock, subject_clock = 0, 0
reserve_default, reserve_sheddable, open_until, probe_rate = 0, 0, 0, 0
local function life(most, per_second)
  if not (per_second > 0) then return 86400000 end
  return math.min(86400000 * 3650, math.ceil(most / per_second * 1000) + 1000)
end
ttl, subject_ttl = life(capacity, rate), life(subject_capacity, subject_rate)
text = string.format(
  '0 0 0 0 %s closed 0 %.17g %.17g %.17g %.17g %.17g',
  code == 1 and 'shadow' or 'recommend', rate, capacity, cap, subject_rate, subject_capacity
)

-- Tokens of a bucket, as a base on a clock that stands at 0; true when the bucket must be written anew.
function unmanaged_base(mark, per_second)
  local held, at = string.match(mark, '^u:(%d+%.?%d*[eE]?[%+%-]?%d*):(%d+)$')
  held, at = tonumber(held), tonumber(at)
  if not held or not at then return 0, true end -- a mark of the token clock: nothing is known, start empty
  return -(held + per_second * math.max(0, now - at) / 1000000), at > now
end
