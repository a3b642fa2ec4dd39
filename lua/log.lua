-- log: sliding log: n takes, each only if with it no more than rate × window was taken in the window that ends now.
-- Exact at every moment. A key is a list of entries of 16 bytes (time in µs, sum of all millionths of a token taken so
-- far), oldest first; the first is the one before the window. Takes of one µs share an entry. Denied takes add none,
-- so a key holds at most one entry for each admitted take in the window, and never more than 10,000: beyond it a
-- take joins the newest entry, which only delays its return.
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
-- COMPLEXITY: O(n log e) in the takes and the entries
--- @include lib/number.lua
--- @include lib/now.lua
--- @include lib/params.lua
--- @include lib/effective.lua
--- @include lib/ttl.lua
--- @include lib/view.lua
local FIRST, LEADING = 5, 3
--- @include lib/opening.lua
--- @include lib/terms.lua
local MOST, ALL, BEGIN = 10000, 4503599627370496, -9007199254740992 -- sums are kept modulo 2^52

-- What is no entry of ours: its list begins anew.
local strange
local function entry(key, index)
  local text = call('LINDEX', key, index)
  if #text ~= 16 then
    strange = true
    return BEGIN, 0
  end
  return struct.unpack('<dd', text)
end

-- Index of the first entry after `t`.
local function first_after(key, n, t)
  local low, high = 0, n
  for _ = 1, 32 do
    if low >= high then break end
    local middle = math.floor((low + high) / 2)
    if entry(key, middle) > t then high = middle else low = middle + 1 end
  end
  return low
end

local function open_window(key)
  local w = { key = key, n = call('LLEN', key), used = 0, sum = 0, base = 0, live = 1, keep = 1 }
  if w.n == 0 then
    w.fresh = true
    return w
  end
  strange = false
  w.newest, w.sum = entry(key, w.n - 1)
  w.live = math.max(1, first_after(key, w.n, now - window_us))
  local _, base = entry(key, w.live - 1)
  w.base, w.used = base, (w.sum - base) % ALL
  if strange or not (w.used >= 0 and w.sum < ALL) then
    return { key = key, n = 0, used = 0, sum = 0, base = 0, live = 1, keep = 1, fresh = true, strange = true }
  end
  if w.newest > now then w.ahead, w.keep = true, math.max(1, first_after(key, w.n, now)) end
  return w
end

local function charge(w, micros)
  w.sum, w.used, w.changed = (w.sum + micros) % ALL, w.used + micros, true
end

-- When `micros` will have left the window.
local function wait_us(w, micros)
  if micros > w.used then return nil end
  local low, high = w.live, w.n
  for _ = 1, 32 do
    if low >= high then break end
    local middle = math.floor((low + high) / 2)
    local _, sum = entry(w.key, middle)
    if (sum - w.base) % ALL >= micros then high = middle else low = middle + 1 end
  end
  local t = low < w.n and entry(w.key, low) or now
  return math.min(t, now) + window_us - now
end

local function save(w)
  local last = struct.pack('<dd', now, w.sum)
  if w.n == 0 then
    if w.strange then call('LTRIM', w.key, 1, 0) end
    call('RPUSH', w.key, struct.pack('<dd', BEGIN, 0), last)
  elseif w.ahead then -- the clock was set back: what lies ahead counts from now on
    call('LTRIM', w.key, 0, w.keep - 1)
    call('RPUSH', w.key, last)
  elseif w.live < w.n and (w.newest == now or w.n - w.live >= MOST) then
    call('LSET', w.key, -1, last)
  else
    call('RPUSH', w.key, last)
  end
  if w.live > 1 then call('LTRIM', w.key, w.live - 1, -1) end
  call('PEXPIRE', w.key, window_us / 1000 + 1000)
end
--- @include lib/windows.lua
