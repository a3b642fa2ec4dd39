-- ttl: how long a bucket must be kept (ms), so that one that is gone would have been full anyway: the largest
-- capacity ÷ the lowest rate the limits can reach by themselves, and a margin. Always finite. Keys are kept for
-- `keptMs`, twice of what is needed when it is set, so that a write may ask for more without emptying buckets.
local TTL_MARGIN_MS = 1000
local TTL_MAX_MS = 315360000000 -- ten years

-- The lowest of the rates above 0; at rate 0 the clock stands still and the write that brought it set the floor.
local function lowest_above_zero(...)
  local lowest = math.huge
  for _, rate in ipairs({ ... }) do
    if rate > 0 and rate < lowest then lowest = rate end
  end
  return lowest
end

local function ttl_ms(capacity, rate)
  if not (rate > 0) or rate == math.huge then return TTL_MAX_MS end
  return math.min(TTL_MAX_MS, math.ceil(capacity / rate * 1000) + TTL_MARGIN_MS)
end

local function bucket_ttl_ms(p)
  return ttl_ms(
    math.max(p.capacity, p.maxCapacity),
    lowest_above_zero(p.minRate, p.probeRate, p.safeRate, p.rate)
  )
end

local function subject_ttl_ms(p)
  if p.subjectRate < 0 then return 0 end
  local rate = p.subjectRate
  if p.subjectFollow == 1 then
    rate = rate * lowest_above_zero(p.minRate, p.safeRate, p.rate) / p.policyRate
  end
  return ttl_ms(p.subjectCapacity, rate)
end

-- The new `keptMs`, and whether keys that are there may vanish too early: then the floor must stand at V.
local function kept_ms(kept, needed)
  if needed <= kept and kept <= 4 * needed then return kept, false end
  return math.min(TTL_MAX_MS, 2 * needed), needed > kept
end
