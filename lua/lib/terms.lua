-- terms: the window of the call, `windowMs` or `windowMs cells`. Sets window_us and cells.
local LONGEST_MS = 31622400000 -- 366 days
local window_text, cells_text = string.match(ARGV[5], '^(%d+) ?(%d*)$')
local window_us, cells = tonumber(window_text or ''), tonumber(cells_text or '') or 0
if not window_us or window_us < 1 or window_us > LONGEST_MS or cells > 1000 then
  return redis.error_reply('FLYBALL_E_CALL_INVALID window is `windowMs` or `windowMs cells`: ' .. ARGV[5])
end
window_us = window_us * 1000
