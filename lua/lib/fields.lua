-- fields: the params in their order, which of them a writer may set, and how a change is read.
local FIELDS = {
  'v', 'mode', 'state', 'epoch', 'revision', 'generation', 'rate', 'capacity', 'inFlightMax', 'subjectRate',
  'subjectCapacity', 'subjectFollow', 'policyRate', 'minRate', 'maxRate', 'minCapacity', 'maxCapacity',
  'minInFlight', 'maxInFlight', 'accrued', 'changedAt', 'subjectAccrued', 'floor', 'subjectFloor',
  'openUntil', 'openForMs', 'probeRate', 'validUntil', 'lostAfterMs', 'lostOverMs', 'safeRate',
  'safeInFlight', 'reserveDefault', 'reserveSheddable', 'frozenUntil', 'pinnedUntil', 'holdBreaker',
  'heldBy', 'fence', 'policyHash', 'onRedisError', 'subject', 'algorithm', 'windowMs', 'cells', 'terms', 'rollout',
  'subjectRules', 'subjectTerms', 'windows', 'byPerson', 'canary', 'keptMs', 'subjectKeptMs',
}
-- Fields that came later: params written before them, and writers that do not give them.
local LATER = {
  onRedisError = '', subject = '', algorithm = '', windowMs = 0, cells = 0, terms = '', rollout = '', subjectRules = 0,
  subjectTerms = '', windows = '', byPerson = '', canary = '',
}
local LONGEST = {
  subject = 1024, terms = 16384, rollout = 8192, subjectTerms = 2048, windows = 1024, byPerson = 2048, canary = 512,
}
-- The script alone keeps these: revision and epoch, clocks and floors, the fence, the autopilot's word, and how
-- long keys are kept.
local OWN = {
  v = true, epoch = true, revision = true, accrued = true, changedAt = true, subjectAccrued = true,
  floor = true, subjectFloor = true, fence = true, validUntil = true, keptMs = true, subjectKeptMs = true,
}
local KNOWN = {}
for i = 1, #FIELDS do KNOWN[FIELDS[i]] = true end
local MINUS_ONE = { subjectRate = true, openUntil = true, frozenUntil = true, pinnedUntil = true }
local ON_REDIS_ERROR = { [''] = true, open = true, closed = true, ['local'] = true }
local ALGORITHMS = {
  [''] = true, ['token-bucket'] = true, ['sliding-log'] = true, ['sliding-counter'] = true,
  ['fixed-window'] = true, ['leaky-bucket'] = true,
}
local FLAGS = { subjectFollow = true, holdBreaker = true, subjectRules = true }

-- Fewest digits that read back to the same bits: people read the hash too.
local function shortest(n)
  for digits = 15, 16 do
    local text = string.format('%.' .. digits .. 'g', n)
    if tonumber(text) == n then return text end
  end
  return exact(n)
end

-- Reads the pairs from ARGV[first] on into `p`; returns the fields that were given, or a fault.
local function apply_change(p, first)
  local changed = {}
  if (#ARGV - first + 1) % 2 ~= 0 then return nil, 'a change is pairs of field and value' end
  for i = first, #ARGV, 2 do
    local field, value = ARGV[i], ARGV[i + 1]
    if not KNOWN[field] or OWN[field] then return nil, field .. ' is not a field that a writer sets' end
    if TEXT[field] then
      local longest = LONGEST[field] or 256
      if #value > longest then return nil, field .. ' is longer than ' .. longest .. ' bytes' end
      if (field == 'mode' and not MODES[value]) or (field == 'state' and not STATES[value])
        or (field == 'onRedisError' and not ON_REDIS_ERROR[value])
        or (field == 'algorithm' and not ALGORITHMS[value]) then
        return nil, field .. ' is ' .. value
      end
      p[field] = value
    else
      local n = finite(value)
      if not n or n > LARGEST or n < 0 and not (n == -1 and MINUS_ONE[field])
        or FLAGS[field] and n > 1 or field == 'generation' and n % 1 ~= 0 then
        return nil, field .. ' is ' .. string.sub(value, 1, 40) .. ', which is not allowed'
      end
      p[field] = n == 0 and 0 or n
    end
    changed[field] = TEXT[field] and value or shortest(p[field])
  end
  return changed
end

local function fill_later(p)
  for field, value in pairs(LATER) do
    if p[field] == nil then p[field] = value end
  end
end

local function missing_field(p)
  for i = 1, #FIELDS do
    if p[FIELDS[i]] == nil and not OWN[FIELDS[i]] then return FIELDS[i] .. ' is missing' end
  end
end
