-- params: the params hash as a table of numbers and texts; nil when there is none, or none that can be read: a
-- field is missing or garbage. Then all go on as without params, and the owner creates them anew.
-- Twin of parseParams in src/redis/params.ts: where one reads params, the other must.
local MODES = { off = 0, shadow = 1, recommend = 2, auto = 3 }
local STATES = { closed = 0, open = 1, ['half-open'] = 2, recovering = 3 }
local TEXT = {
  mode = true, state = true, heldBy = true, policyHash = true, onRedisError = true, subject = true,
  algorithm = true, terms = true, rollout = true, subjectTerms = true, windows = true,
  byPerson = true, canary = true,
}
-- Without any of these nothing can be said; fields that came later have their defaults.
local NEEDED = {
  'v', 'mode', 'state', 'epoch', 'revision', 'generation', 'rate', 'capacity', 'inFlightMax', 'subjectRate',
  'subjectCapacity', 'subjectFollow', 'policyRate', 'minRate', 'maxRate', 'minCapacity', 'maxCapacity',
  'minInFlight', 'maxInFlight', 'accrued', 'changedAt', 'subjectAccrued', 'floor', 'subjectFloor',
  'openUntil', 'openForMs', 'probeRate', 'validUntil', 'lostAfterMs', 'lostOverMs', 'safeRate',
  'safeInFlight', 'reserveDefault', 'reserveSheddable', 'frozenUntil', 'pinnedUntil', 'holdBreaker',
  'heldBy', 'fence', 'policyHash',
}
-- Came later, with a default: but garbage is garbage.
local LATER_NUMBERS = { windowMs = true, cells = true, subjectRules = true }
local COUNTS = { 'epoch', 'revision', 'generation', 'fence' }
local NOT_BELOW_ZERO = {
  'rate', 'capacity', 'inFlightMax', 'subjectCapacity', 'policyRate', 'probeRate', 'safeRate', 'safeInFlight',
  'lostAfterMs', 'lostOverMs',
}

local function readable(p)
  for i = 1, #NEEDED do
    if p[NEEDED[i]] == nil then return false end
  end
  if not MODES[p.mode] or not STATES[p.state] then return false end
  for i = 1, #COUNTS do
    local n = p[COUNTS[i]]
    if n < 0 or n > 9007199254740992 or n % 1 ~= 0 then return false end
  end
  for i = 1, #NOT_BELOW_ZERO do
    if p[NOT_BELOW_ZERO[i]] < 0 then return false end
  end
  return true
end

local function read_params(key)
  local flat = redis.call('HGETALL', key)
  if #flat == 0 then return nil end
  local p = {}
  for i = 1, #flat, 2 do
    local field, value = flat[i], flat[i + 1]
    if TEXT[field] then
      p[field] = value
    elseif field ~= 'hot' then
      value = not string.find(value, '[^%d%.eE%+%-]') and tonumber(value)
      -- Of NaN and infinity alone the difference to itself is not 0.
      if value and value - value == 0 then
        p[field] = value
      elseif LATER_NUMBERS[field] then
        return nil
      end
    end
  end
  -- Not known: as long as any, and the next write says it anew.
  for _, field in ipairs({ 'keptMs', 'subjectKeptMs' }) do
    if not p[field] or p[field] < 0 or p[field] % 1 ~= 0 then p[field] = 315360000000 end
  end
  return readable(p) and p or nil
end
