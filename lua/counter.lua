-- counter: sliding counter: n takes over a window of `cells` equal cells and the one that is running.
-- Never admits more than rate × window in any window, as the log does; what was taken returns up to one cell
-- (window ÷ cells) later than with the log: under steady demand at least cells ÷ (cells + 1) of the rate passes.
-- A key is one string: number and length of the newest cell, then the millionths taken in each cell, newest first.
-- KEYS:
--   params      the params hash
--   total       the total's window (the shadow's, when `shadow` is 1)
--   bucket      the total's bucket: it paces the probes while half-open
--   subject...  one for each take: the subject's window, or `total` again for a take without a subject
-- ARGV:
--   nowUs       empty: Redis TIME; tests pass a time
--   chargeByUs  latest Redis time (µs) at which this call may charge; empty: any; 0: never, only learn the time
--   shadow      1: the keys are the shadow's
--   fallback    numbers for missing params: `rate capacity inFlightMax subjectRate subjectCapacity`
--   window      `windowMs cells`, 1 to 1000 cells
--   take...     one for each take: `<cost>`, `<cost> critical` or `<cost> sheddable`
-- RETURNS: [status, nowUs, inForce, then reason, remaining, retryAfterMs of each take]; see docs/contract.md
-- TIME: once, unless nowUs is given
-- COMPLEXITY: O(n × cells) in the takes
--- @include lib/number.lua
--- @include lib/now.lua
--- @include lib/params.lua
--- @include lib/effective.lua
--- @include lib/ttl.lua
--- @include lib/view.lua
local FIRST, LEADING = 5, 3
--- @include lib/opening.lua
--- @include lib/terms.lua
if cells < 1 then return redis.error_reply('FLYBALL_E_CALL_INVALID window is `windowMs cells`: ' .. ARGV[5]) end
local width = math.ceil(window_us / cells)
local cell = math.floor(now / width)

-- Millionths in one cell; what is no amount is none.
local function cell_of(stored, i)
  local n = struct.unpack('<d', stored, 8 * i + 9)
  return n > 0 and n or 0
end

local function open_window(key)
  local w = { key = key, used = 0, cells = {} }
  for i = 1, cells + 1 do w.cells[i] = 0 end
  local stored = call('GET', key)
  local count = stored and #stored / 8 - 2 or 0
  if count < 2 or count > 1001 or count % 1 ~= 0 then
    w.fresh = true
    return w
  end
  local newest, old_width = struct.unpack('<dd', stored)
  local shift = cell - newest
  if old_width == width and count == cells + 1 and shift >= 0 then
    for i = 1, count - shift do
      w.cells[i + shift] = cell_of(stored, i)
      w.used = w.used + w.cells[i + shift]
    end
    return w
  end
  -- Other cells, or a clock that was set back: what had not left yet counts as taken now, and even a denial writes it:
  -- in a window that became shorter it would else deny for as long as the old one.
  local back = newest * old_width > now
  for i = 1, count do
    if back or (newest - i + 1 + count) * old_width > now then
      w.used = w.used + cell_of(stored, i)
    end
  end
  w.cells[1], w.ahead = w.used, back or w.used > 0
  return w
end

local function charge(w, micros)
  w.cells[1], w.used, w.changed = w.cells[1] + micros, w.used + micros, true
end

-- A cell leaves when its end lies a whole window back.
local function wait_us(w, micros)
  local sum = 0
  for i = cells + 1, 1, -1 do
    sum = sum + w.cells[i]
    if sum >= micros then return (cell - i + 2 + cells) * width - now end
  end
end

local function save(w)
  local parts = { struct.pack('<dd', cell, width) }
  for i = 1, cells + 1 do parts[i + 1] = struct.pack('<d', w.cells[i]) end
  call('SET', w.key, table.concat(parts), 'PX', math.ceil((cells + 1) * width / 1000) + 1000)
end
--- @include lib/windows.lua
