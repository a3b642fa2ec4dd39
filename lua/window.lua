-- window: fixed window: n takes, each only if with it no more than rate × window was taken since the window began.
-- Windows begin at multiples of their length since 1970. Round a boundary up to two limits can pass within one length:
-- one at the end of a window, one at the start of the next. A key is one string: the time of the last take, and the
-- millionths of a token taken in its window.
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
--   window      `windowMs`
--   take...     one for each take: `<cost>`, `<cost> critical` or `<cost> sheddable`
-- RETURNS: [status, nowUs, inForce, then reason, remaining, retryAfterMs of each take]; see docs/contract.md
-- TIME: once, unless nowUs is given
-- COMPLEXITY: O(n) in the takes
--- @include lib/number.lua
--- @include lib/now.lua
--- @include lib/params.lua
--- @include lib/effective.lua
--- @include lib/ttl.lua
--- @include lib/view.lua
local FIRST, LEADING = 5, 3
--- @include lib/opening.lua
--- @include lib/terms.lua
local begin = now - now % window_us

local function open_window(key)
  local w = { key = key, used = 0 }
  local last, used = string.match(call('GET', key) or '', '^(%d+) (%d+)$')
  last = tonumber(last)
  if last and last >= begin then
    w.used, w.ahead = tonumber(used), last > now
  end
  return w
end

local function charge(w, micros)
  w.used, w.changed = w.used + micros, true
end

local function wait_us(w, micros)
  if micros > w.used then return nil end
  return begin + window_us - now
end

local function save(w)
  call('SET', w.key, string.format('%.0f %.0f', now, w.used), 'PX', math.ceil((begin + window_us - now) / 1000) + 1000)
end
--- @include lib/windows.lua
