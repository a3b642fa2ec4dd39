-- second: what tells a telemetry second from itself as last read: flushes, number of fields, offered; empty: not there.
local function second_mark(key)
  local counts = redis.call('HMGET', key, 'n', 'off')
  if not counts[1] then return '' end
  return counts[1] .. ' ' .. redis.call('HLEN', key) .. ' ' .. (counts[2] or '')
end
