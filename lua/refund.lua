-- refund: gives back what takes took, each once, never above the capacity; nothing when too late to know what it was.
-- A refund is dropped an hour after its take, and in another epoch. A bucket gets nothing that its take took before it
-- was emptied (a trip, a reset, a rate of 0), nor the total anything while the breaker is not closed: what was probed
-- stays probed. A window gets back only what it still counts. The total and the subject are told apart in this.
-- KEYS:
--   params      the params hash
--   key...      three for each refund: its mark (the total again: it needs none), the total, the subject or the total
--     again; total and subject are buckets or windows, as the refund says
-- ARGV:
--   nowUs       empty: Redis TIME; tests pass a time
--   dueUs       latest Redis time (µs) at which this call may give back; empty: any
--   shadow      1: the keys are the shadow's
--   fallback    numbers for missing params: `rate capacity inFlightMax subjectRate subjectCapacity`
--   refund...   one for each: `kind atUs epoch generation cost windowMs cells marked`: kind b, wl, wc or wf; atUs when
--     it was taken; marked 1: once only, by its mark
-- RETURNS: [status, nowUs, then for each: 0 given back, 1 was so before, 2 too late, 3 moved on]; status 0, or 1: late
-- TIME: once, unless nowUs is given
-- COMPLEXITY: O(n) in the refunds; for a log also in the entries since the take, at most 2,000,
--   and 20,000 in all
--- @include lib/number.lua
--- @include lib/now.lua
--- @include lib/params.lua
--- @include lib/effective.lua
--- @include lib/ttl.lua
--- @include lib/view.lua
local call = redis.call
local refunds = #ARGV - 4
if refunds < 0 or refunds > 128 or #KEYS ~= 3 * refunds + 1 then
  return redis.error_reply('FLYBALL_E_CALL_INVALID three keys and one argument for each refund, at most 128')
end
local now, due = now_us(ARGV[1]), ARGV[2]
if due ~= '' then due = within(due, -LARGEST, LARGEST) end
if not now or not due then return redis.error_reply('FLYBALL_E_CALL_INVALID nowUs and dueUs are µs, or empty') end
if due ~= '' and now > due then return { 1, now } end

-- What is in force, and the clocks that buckets count by.
local LIFE_US, AHEAD_US = 3600000000, 1000000
local NONE = -1e300
local p = read_params(KEYS[1])
local managed = p and true
local code, rate, capacity, full, floor, subject_floor, clock, subject_clock, ttl, subject_ttl, text
local subject_rate, subject_capacity, reserve_default, reserve_sheddable, open_until, probe_rate, unmanaged_base
local epoch, generation, closed = 0, 0, true
if p then
  local v = view_of(p, now)
  local e = effective(p, now)
  rate, capacity, floor, clock, ttl = v.rate, v.capacity, v.floor, v.tokens, v.ttlMs
  subject_rate, subject_capacity, subject_floor = v.subjectRate, v.subjectCapacity, v.subjectFloor
  subject_clock, subject_ttl = v.subjectTokens, v.subjectTtlMs
  epoch, generation, closed = p.epoch, p.generation, e.state == 'closed' or e.state == 'recovering'
else
  --- @include lib/unmanaged.lua
end

-- Did a bucket hold on to its tokens since `at`? A floor set since then says no; one that may have been, too. What the
-- clock showed at `at` is not kept: it was no less than the highest rate allows.
local function kept_since(at, accrued, its_floor, most)
  return not p or at >= p.changedAt or its_floor <= accrued - most * (p.changedAt - at) / 1000000
end

-- Each part is looked at first: a function that gives back, or nil when there is nothing to give back to.
local function nothing_more() end

local function bucket(key, v, per_second, most, its_floor, life, cost)
  local mark = call('GET', key)
  local bound = per_second >= 0
  if not mark then return bound and nothing_more or nil end -- it is full
  local slack = 0.0000005 + (v > 0 and v or 0) * 4.4408920985006262e-16
  local base, skewed
  -- A subject with numbers of its own: what it held when it was written was that much more.
  local held, numbers, room = string.match(mark, '^o:(%-?%d[^:]*)(:%d+:%-?%d[^:]*:[^:]+:(%d[^:]*):%-?%d+)$')
  if managed and held and tonumber(held) and tonumber(room) then
    local tokens = math.max(tonumber(held), math.min(tonumber(room), held + cost))
    return function() call('SET', key, 'o:' .. exact(tokens) .. numbers, 'KEEPTTL') end
  end
  if not bound then return nil end
  if managed then
    base = tonumber(mark)
    if not base or not (base <= v + slack) then return nil end -- left without params, or ahead of a clock set back
    if its_floor > v + slack then its_floor = NONE end
  else
    base, skewed = unmanaged_base(mark, per_second)
    if skewed then return nil end
  end
  local back = math.max(base - cost, v - most, its_floor)
  if back >= base then return nothing_more end
  return function()
    local text_of = managed and '%.17g' or 'u:%.17g:%.0f'
    call('SET', key, string.format(text_of, managed and back or -back, now), 'PX', life)
  end
end

local function fixed_window(key, r)
  local stop, used = string.match(call('GET', key) or '', '^(%d+) (%d+)$')
  stop, used = tonumber(stop), tonumber(used)
  if not stop or stop <= now or r.at >= stop or r.at < stop - r.window or used < r.micros or used > LARGEST then
    return nil
  end
  return function()
    call('SET', key, string.format('%.0f %.0f', stop, used - r.micros), 'KEEPTTL')
  end
end

local function cell_window(key, r)
  local stored = call('GET', key)
  if not stored or r.cells < 1 or #stored ~= 8 * (r.cells + 3) then return nil end
  local newest, width = struct.unpack('<dd', stored)
  local cell = math.floor(r.at / width)
  local from = 8 * (newest - cell) + 16
  if width ~= math.ceil(r.window / r.cells) or newest % 1 ~= 0 or cell > newest or from >= #stored
    or math.floor(now / width) - cell > r.cells or newest * width > now then
    return nil
  end
  local taken = struct.unpack('<d', stored, from + 1)
  if not (taken >= r.micros and taken <= LARGEST) then return nil end
  return function()
    local left = struct.pack('<d', taken - r.micros)
    call('SET', key, string.sub(stored, 1, from) .. left .. string.sub(stored, from + 9), 'KEEPTTL')
  end
end

-- A log keeps sums, so all entries since the take change: once a call.
local MOST, ALL = 2000, 4503599627370496
local MOST_OF_CALL, read = 20000, 0
local earliest, logs = {}, {}
-- What is no entry of ours: nothing is given back to its list.
local strange
local function read_entry(text)
  if #text == 16 then return struct.unpack('<dd', text) end
  strange = true
  return 0, 0
end
local function entry(key, index)
  return read_entry(call('LINDEX', key, index))
end
local function open_log(key)
  local log = { from = 1, times = {}, sums = {}, cut = {}, n = 0 }
  logs[key] = log
  local n = call('LLEN', key)
  strange = false
  if n < 2 or entry(key, n - 1) > now then return log end
  local low, high = math.max(1, n - MOST), n
  for _ = 1, 32 do
    if low >= high then break end
    local middle = math.floor((low + high) / 2)
    if entry(key, middle) >= earliest[key] then high = middle else low = middle + 1 end
  end
  -- More would hold Redis for too long.
  if read + n - low > MOST_OF_CALL then return log end
  read = read + n - low
  local _, before = entry(key, low - 1)
  log.from, log.sums[0] = low, before
  local raw = call('LRANGE', key, low, -1)
  for i = 1, #raw do log.times[i], log.sums[i] = read_entry(raw[i]) end
  if strange then return log end
  log.n = #raw
  -- Entries before the first that was read are out of reach.
  log.since = low > 1 and entry(key, low - 1) or NONE
  return log
end
local function log_window(key, r)
  local log = logs[key] or open_log(key)
  if log.n == 0 or r.at <= log.since or r.at <= now - r.window then return nil end
  local low, high = 1, log.n + 1
  for _ = 1, 32 do
    if low >= high then break end
    local middle = math.floor((low + high) / 2)
    if log.times[middle] >= r.at then high = middle else low = middle + 1 end
  end
  if low > log.n then return nil end
  local cut = log.cut[low] or 0
  if not ((log.sums[low] - log.sums[low - 1]) % ALL - cut >= r.micros) then return nil end
  return function()
    log.cut[low], log.changed = cut + r.micros, true
  end
end
local function save_log(key, log)
  local out, cut = {}, 0
  for i = 1, log.n do
    cut = cut + (log.cut[i] or 0)
    out[i] = struct.pack('<dd', log.times[i], (log.sums[i] - cut) % ALL)
  end
  call('LTRIM', key, 0, log.from - 1)
  call('RPUSH', key, unpack(out))
end

local WINDOWS = { wf = fixed_window, wc = cell_window, wl = log_window }
local parsed = {}
for i = 1, refunds do
  local kind, at, its_epoch, its_generation, cost, window, cells, marked =
    string.match(ARGV[4 + i], '^(%l%l?) (%d+) (%d+) (%d+) (%d+%.?%d*) (%d+) (%d+) ([01])$')
  local r = {
    at = tonumber(at), epoch = tonumber(its_epoch), generation = tonumber(its_generation), cost = tonumber(cost),
    window = (tonumber(window) or 0) * 1000, cells = tonumber(cells), marked = marked == '1', kind = kind,
  }
  if not kind or not (kind == 'b' or WINDOWS[kind]) or r.at > LARGEST or not (r.cost > 0 and r.cost <= 1000000000) then
    return redis.error_reply(
      'FLYBALL_E_CALL_INVALID a refund is `kind atUs epoch generation cost windowMs cells marked`'
    )
  end
  r.micros = math.floor(r.cost * 1000000 + 0.5)
  parsed[i] = r
  if kind == 'wl' then
    for k = 3 * i, 3 * i + 1 do earliest[KEYS[k]] = math.min(earliest[KEYS[k]] or r.at, r.at) end
  end
end

local reply = { 0, now }
for i = 1, refunds do
  local r = parsed[i]
  local mark, total_key, subject_key = KEYS[3 * i - 1], KEYS[3 * i], KEYS[3 * i + 1]
  local answer, give_total, give_own = 3, nil, nil
  if now - r.at > LIFE_US then
    answer = 2
  elseif r.marked and call('GET', mark) then
    answer = 1
  elseif r.at - now <= AHEAD_US and r.epoch == epoch then
    if r.kind ~= 'b' then
      give_total = WINDOWS[r.kind](total_key, r)
      if subject_key ~= total_key then give_own = WINDOWS[r.kind](subject_key, r) end
    else
      local most = p and math.max(p.rate, p.maxRate, p.safeRate, p.probeRate)
      if closed and r.generation == generation and kept_since(r.at, p and p.accrued, floor, most) then
        give_total = bucket(total_key, clock, rate, capacity, floor, ttl, r.cost)
      end
      -- Without a rate of the policy a subject may have numbers of its own all the same.
      if subject_key ~= total_key and (subject_rate >= 0 or p and p.subjectRules == 1) then
        local follow = p and p.subjectFollow == 1 and most / p.policyRate or 1
        local own_most = p and math.max(0, p.subjectRate) * follow
        if kept_since(r.at, p and p.subjectAccrued, subject_floor, own_most) then
          give_own = bucket(
            subject_key, subject_clock, subject_rate, subject_capacity, subject_floor, subject_ttl, r.cost
          )
        end
      end
    end
    if give_total or give_own then
      answer = 0
      local life = string.format('%.0f', math.ceil((LIFE_US + r.at - now) / 1000) + 1000)
      if r.marked then call('SET', mark, '1', 'PX', life) end
      if give_total then give_total() end
      if give_own then give_own() end
    end
  end
  reply[2 + i] = answer
end
for key, log in pairs(logs) do
  if log.changed then save_log(key, log) end
end
return reply
