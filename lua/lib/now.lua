-- now: Redis time in µs; `given` is used instead when it is not empty (tests only). Read once a call.
local function now_us(given)
  if given ~= '' then return within(given, -LARGEST, LARGEST) end
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
