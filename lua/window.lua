-- window: fixed window: n takes, each only if with it no more than rate × window was taken since the window began.
-- Windows begin at multiples of their length since 1970. Round a boundary up to two limits can pass within one length:
-- one at the end of a window, one at the start of the next. After a clock step or a new length the window in force
-- ends at most one length later, and the next is no shorter than one. A key is one string: the end of its window, and
-- the millionths of a token taken in it.
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
local aligned = now - now % window_us + window_us

local function open_window(key)
  local w = { key = key, used = 0, stop = aligned }
  local stop, used = string.match(call('GET', key) or '', '^(%d+) (%d+)$')
  stop = tonumber(stop)
  if not stop then
    w.fresh = true
    return w
  end
  if stop > now then
    w.used, w.stop = math.min(LARGEST, tonumber(used)), math.min(stop, now + window_us)
    w.ahead = w.stop < stop
  elseif stop % window_us ~= 0 and aligned < stop + window_us then
    w.stop = aligned + window_us
  end
  return w
end

local function charge(w, micros)
  w.used, w.changed = w.used + micros, true
end

local function wait_us(w, micros)
  if micros > w.used then return nil end
  return w.stop - now
end

local function save(w)
  local life = w.stop - now
  if w.stop % window_us ~= 0 then life = life + window_us end
  call('SET', w.key, string.format('%.0f %.0f', w.stop, w.used), 'PX', math.ceil(life / 1000) + 1000)
end
--- @include lib/windows.lua
