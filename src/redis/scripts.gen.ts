/** Generated from lua/*.lua by scripts/build-lua.mjs; do not edit. Stage: enforce, actuate. */

export type ScriptArg = string | number;

/** A script as Redis gets it; the type parameters name its keys and arguments. */
export interface Script<Keys extends string[], Args extends ScriptArg[]> {
  readonly name: string;
  readonly sha: string;
  readonly lua: string;
  /** Never set: carries the types. */
  readonly types?: { keys: Keys; args: Args };
}

/** Keys of `actuate`, in order. */
export type ActuateKeys = [params: string, audit: string, lease: string, state: string, policy: string, version: string];
/** Arguments of `actuate`, in order. */
export type ActuateArgs = [nowUs: ScriptArg, authority: ScriptArg, owner: ScriptArg, token: ScriptArg, epoch: ScriptArg, revision: ScriptArg, create: ScriptArg, newEpoch: ScriptArg, cause: ScriptArg, refloor: ScriptArg, leaseMs: ScriptArg, prev: ScriptArg, hash: ScriptArg, body: ScriptArg, checkpoint: ScriptArg, policyHash: ScriptArg, policyJson: ScriptArg, channel: ScriptArg, limiter: ScriptArg, ...change: ScriptArg[]];
/**
 * changes what is in force and appends exactly one audit entry, or refuses and writes nothing. Checks authority, revision, audit head, holds and bounds; settles the token clocks at what really held.
 * Returns ['ok', nowUs, epoch, revision, streamId] or ['refused', reason, detail, nowUs, epoch, revision, head]. O(1).
 */
export const actuateScript: Script<ActuateKeys, ActuateArgs> = {
  name: 'actuate',
  sha: 'd42176ec14e4741f0a58dce4653c981eaf7cb8dc',
  lua: "-- flyball actuate\n\
local LARGEST = 9007199254740992\n\
local LEASE_MAX_MS = 315360000000\n\
local function finite(text)\n\
  if type(text) ~= 'string' or #text > 32 then return nil end\n\
  if not string.find(text, '^%-?%d+%.?%d*$')\n\
    and not string.find(text, '^%-?%d+%.?%d*[eE][%+%-]?%d+$') then\n\
    return nil\n\
  end\n\
  local n = tonumber(text)\n\
  if not n or n ~= n or n == math.huge or n == -math.huge then return nil end\n\
  return n\n\
end\n\
local function within(text, least, most)\n\
  local n = finite(text)\n\
  if n and n >= least and n <= most then return n end\n\
end\n\
local function count(text)\n\
  local n = within(text, 0, LARGEST)\n\
  if n and n % 1 == 0 then return n end\n\
end\n\
local function exact(n)\n\
  return string.format('%.17g', n)\n\
end\n\
local function now_us(given)\n\
  if given ~= '' then return within(given, -LARGEST, LARGEST) end\n\
  local time = redis.call('TIME')\n\
  return time[1] * 1000000 + time[2]\n\
end\n\
local MODES = { off = 0, shadow = 1, recommend = 2, auto = 3 }\n\
local STATES = { closed = 0, open = 1, ['half-open'] = 2, recovering = 3 }\n\
local TEXT = {\n\
  mode = true, state = true, heldBy = true, policyHash = true, onRedisError = true, subject = true,\n\
  algorithm = true, terms = true, rollout = true, subjectTerms = true, windows = true,\n\
  byPerson = true, canary = true,\n\
}\n\
local NEEDED = {\n\
  'v', 'mode', 'state', 'epoch', 'revision', 'generation', 'rate', 'capacity', 'inFlightMax', 'subjectRate',\n\
  'subjectCapacity', 'subjectFollow', 'policyRate', 'minRate', 'maxRate', 'minCapacity', 'maxCapacity',\n\
  'minInFlight', 'maxInFlight', 'accrued', 'changedAt', 'subjectAccrued', 'floor', 'subjectFloor',\n\
  'openUntil', 'openForMs', 'probeRate', 'validUntil', 'lostAfterMs', 'lostOverMs', 'safeRate',\n\
  'safeInFlight', 'reserveDefault', 'reserveSheddable', 'frozenUntil', 'pinnedUntil', 'holdBreaker',\n\
  'heldBy', 'fence', 'policyHash',\n\
}\n\
local LATER_NUMBERS = { windowMs = true, cells = true, subjectRules = true }\n\
local COUNTS = { 'epoch', 'revision', 'generation', 'fence' }\n\
local NOT_BELOW_ZERO = {\n\
  'rate', 'capacity', 'inFlightMax', 'subjectCapacity', 'policyRate', 'probeRate', 'safeRate', 'safeInFlight',\n\
  'lostAfterMs', 'lostOverMs',\n\
}\n\
local function readable(p)\n\
  for i = 1, #NEEDED do\n\
    if p[NEEDED[i]] == nil then return false end\n\
  end\n\
  if not MODES[p.mode] or not STATES[p.state] then return false end\n\
  for i = 1, #COUNTS do\n\
    local n = p[COUNTS[i]]\n\
    if n < 0 or n > 9007199254740992 or n % 1 ~= 0 then return false end\n\
  end\n\
  for i = 1, #NOT_BELOW_ZERO do\n\
    if p[NOT_BELOW_ZERO[i]] < 0 then return false end\n\
  end\n\
  return true\n\
end\n\
local function read_params(key)\n\
  local flat = redis.call('HGETALL', key)\n\
  if #flat == 0 then return nil end\n\
  local p = {}\n\
  for i = 1, #flat, 2 do\n\
    local field, value = flat[i], flat[i + 1]\n\
    if TEXT[field] then\n\
      p[field] = value\n\
    elseif field ~= 'hot' then\n\
      value = not string.find(value, '[^%d%.eE%+%-]') and tonumber(value)\n\
      if value and value - value == 0 then\n\
        p[field] = value\n\
      elseif LATER_NUMBERS[field] then\n\
        return nil\n\
      end\n\
    end\n\
  end\n\
  for _, field in ipairs({ 'keptMs', 'subjectKeptMs' }) do\n\
    if not p[field] or p[field] < 0 or p[field] % 1 ~= 0 then p[field] = 315360000000 end\n\
  end\n\
  return readable(p) and p or nil\n\
end\n\
local NEVER = 9007199254740992\n\
local function glide_start(p)\n\
  if p.pinnedUntil == -1 or p.frozenUntil == -1 then return NEVER end\n\
  local start = math.max(p.validUntil, p.pinnedUntil, p.frozenUntil)\n\
  if p.state == 'open' then\n\
    if p.openUntil == -1 then return NEVER end\n\
    start = math.max(start, p.openUntil)\n\
  end\n\
  return (start + p.lostAfterMs) * 1000\n\
end\n\
local function is_open(p, now)\n\
  if p.state ~= 'open' then return false end\n\
  if p.openUntil == -1 then return true end\n\
  local left = p.openUntil * 1000 - now\n\
  return left > 0 and left <= p.openForMs * 1000\n\
end\n\
local function paid(base, safe, from, to, opens, glide, over)\n\
  local sum = 0\n\
  local start = math.max(from, opens)\n\
  local stop = math.min(to, glide)\n\
  if stop > start then sum = base * (stop - start) end\n\
  local finish = glide + over\n\
  local left = math.max(from, glide)\n\
  local right = math.min(to, finish)\n\
  if right > left then\n\
    local first = base + (safe - base) * ((left - glide) / over)\n\
    local last = base + (safe - base) * ((right - glide) / over)\n\
    sum = sum + (first + last) / 2 * (right - left)\n\
  end\n\
  local after = math.max(from, finish)\n\
  if to > after then sum = sum + safe * (to - after) end\n\
  return sum / 1000000\n\
end\n\
local function effective(p, now)\n\
  local open = is_open(p, now)\n\
  local probing = not open and (p.state == 'open' or p.state == 'half-open')\n\
  local glide = glide_start(p)\n\
  local over = p.lostOverMs * 1000\n\
  local gliding = now >= glide\n\
  local share = 0\n\
  if gliding then share = now >= glide + over and 1 or (now - glide) / over end\n\
  local stopped = p.state == 'open' or p.state == 'half-open'\n\
  local base = stopped and p.probeRate or p.rate\n\
  local rate = open and 0 or base + (p.safeRate - base) * share\n\
  local capacity = p.capacity\n\
  if probing then\n\
    local narrow = math.min(capacity, math.max(1, p.probeRate))\n\
    capacity = narrow + (capacity - narrow) * share\n\
  end\n\
  local cap = p.inFlightMax\n\
  if cap > 0 and p.safeInFlight > 0 then\n\
    cap = math.floor(cap + (p.safeInFlight - cap) * share + 0.5)\n\
  end\n\
  local scale, safe_scale = 1, 1\n\
  if p.subjectFollow == 1 then\n\
    scale = p.rate / p.policyRate\n\
    safe_scale = p.safeRate / p.policyRate\n\
  end\n\
  local none = p.subjectRate < 0\n\
  local subject_base = none and 0 or p.subjectRate * scale\n\
  local subject_safe = none and 0 or p.subjectRate * safe_scale\n\
  local subject_rate = subject_base + (subject_safe - subject_base) * share\n\
  local opens = 0\n\
  if open then\n\
    opens = p.openUntil == -1 and NEVER or p.openUntil * 1000\n\
  elseif p.state == 'open' and p.openUntil * 1000 <= now then\n\
    opens = p.openUntil * 1000\n\
  end\n\
  local tokens, subject_tokens\n\
  if now < p.changedAt then\n\
    tokens = p.accrued - rate * (p.changedAt - now) / 1000000\n\
    subject_tokens = p.subjectAccrued - subject_rate * (p.changedAt - now) / 1000000\n\
  else\n\
    tokens = p.accrued + paid(base, p.safeRate, p.changedAt, now, opens, glide, over)\n\
    subject_tokens = p.subjectAccrued\n\
      + paid(subject_base, subject_safe, p.changedAt, now, 0, glide, over)\n\
  end\n\
  local state = p.state\n\
  if probing then state = gliding and 'recovering' or 'half-open' end\n\
  return {\n\
    state = state,\n\
    gliding = gliding,\n\
    rate = rate,\n\
    capacity = capacity,\n\
    inFlightMax = cap,\n\
    subjectRate = none and -1 or subject_rate,\n\
    subjectCapacity = p.subjectCapacity,\n\
    tokens = tokens,\n\
    subjectTokens = subject_tokens,\n\
    opens = opens,\n\
    glide = glide,\n\
  }\n\
end\n\
local TTL_MARGIN_MS = 1000\n\
local TTL_MAX_MS = 315360000000\n\
local function lowest_above_zero(...)\n\
  local lowest = math.huge\n\
  for _, rate in ipairs({ ... }) do\n\
    if rate > 0 and rate < lowest then lowest = rate end\n\
  end\n\
  return lowest\n\
end\n\
local function ttl_ms(capacity, rate)\n\
  if not (rate > 0) or rate == math.huge then return TTL_MAX_MS end\n\
  return math.min(TTL_MAX_MS, math.ceil(capacity / rate * 1000) + TTL_MARGIN_MS)\n\
end\n\
local function bucket_ttl_ms(p)\n\
  return ttl_ms(\n\
    math.max(p.capacity, p.maxCapacity),\n\
    lowest_above_zero(p.minRate, p.probeRate, p.safeRate, p.rate)\n\
  )\n\
end\n\
local function subject_ttl_ms(p)\n\
  if p.subjectRate < 0 then return 0 end\n\
  local rate = p.subjectRate\n\
  if p.subjectFollow == 1 then\n\
    rate = rate * lowest_above_zero(p.minRate, p.safeRate, p.rate) / p.policyRate\n\
  end\n\
  return ttl_ms(p.subjectCapacity, rate)\n\
end\n\
local function kept_ms(kept, needed)\n\
  if needed <= kept and kept <= 4 * needed then return kept, false end\n\
  return math.min(TTL_MAX_MS, 2 * needed), needed > kept\n\
end\n\
local function in_force_text(p, e)\n\
  return string.format(\n\
    '1 %.0f %.0f %.0f %s %s %d %.17g %.17g %.17g %.17g %.17g',\n\
    p.epoch, p.revision, p.generation, p.mode, e.state, e.gliding and 1 or 0,\n\
    e.rate, e.capacity, e.inFlightMax, e.subjectRate, e.subjectCapacity\n\
  )\n\
end\n\
local function view_of(p, now)\n\
  local e = effective(p, now)\n\
  local untl = e.glide\n\
  if e.state == 'open' then untl = math.min(untl, e.opens) end\n\
  local since = p.changedAt\n\
  if e.state ~= 'open' then since = math.max(since, e.opens) end\n\
  local half_open = e.state == 'half-open'\n\
  return {\n\
    code = MODES[p.mode] + 4 * STATES[e.state] + 16 * (p.subjectRules or 0),\n\
    from = since,\n\
    untl = e.gliding and 0 or untl,\n\
    since = since,\n\
    accrued = p.accrued,\n\
    rate = e.rate,\n\
    capacity = e.capacity,\n\
    fullCapacity = p.capacity,\n\
    floor = p.floor,\n\
    reserveDefault = half_open and 0 or p.reserveDefault * e.capacity,\n\
    reserveSheddable = half_open and 0 or p.reserveSheddable * e.capacity,\n\
    ttlMs = p.keptMs,\n\
    subjectSince = p.changedAt,\n\
    subjectAccrued = p.subjectAccrued,\n\
    subjectRate = e.subjectRate,\n\
    subjectLowest = p.subjectFollow == 1 and math.min(e.subjectRate, p.subjectRate * p.rate / p.policyRate)\n\
      or e.subjectRate,\n\
    subjectCapacity = e.subjectCapacity,\n\
    subjectFloor = p.subjectFloor,\n\
    subjectTtlMs = p.subjectKeptMs,\n\
    openUntil = p.openUntil * 1000,\n\
    probeRate = p.probeRate,\n\
    tokens = e.tokens,\n\
    subjectTokens = e.subjectTokens,\n\
    text = in_force_text(p, e),\n\
  }\n\
end\n\
local function pack_hot(v)\n\
  return struct.pack(\n\
    '<dddddddddddddddddddd',\n\
    v.code, v.from, v.untl, v.since, v.accrued, v.rate, v.capacity, v.fullCapacity, v.floor,\n\
    v.reserveDefault, v.reserveSheddable, v.ttlMs,\n\
    v.subjectSince, v.subjectAccrued, v.subjectRate, v.subjectCapacity, v.subjectFloor, v.subjectTtlMs,\n\
    v.openUntil, v.probeRate\n\
  ) .. v.text\n\
end\n\
local function lease_of(lease_key)\n\
  return redis.call('MGET', lease_key)[1]\n\
end\n\
local function holds_lease(lease_key, owner, token, fence)\n\
  local number = count(token)\n\
  if not number or number < fence then return false end\n\
  return lease_of(lease_key) == owner .. ':' .. token\n\
end\n\
local function lease_token(lease_key)\n\
  return count(string.match(lease_of(lease_key) or '', ':(%d+)$')) or 0\n\
end\n\
local GENESIS = string.rep('0', 64)\n\
local function audit_head(key)\n\
  local newest = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]\n\
  if not newest then return GENESIS, 0 end\n\
  local hash, epoch = GENESIS, 0\n\
  for i = 1, #newest[2], 2 do\n\
    if newest[2][i] == 'hash' then hash = newest[2][i + 1] end\n\
    if newest[2][i] == 'epoch' then epoch = count(newest[2][i + 1]) or 0 end\n\
  end\n\
  return hash, epoch\n\
end\n\
local function append(key, kind, epoch, revision, hash, prev, body)\n\
  return redis.call('XADD', key, 'MAXLEN', '~', '100000', '*', 'kind', kind,\n\
    'epoch', string.format('%.0f', epoch), 'revision', string.format('%.0f', revision),\n\
    'hash', hash, 'prev', prev, 'body', body)\n\
end\n\
local FIELDS = {\n\
  'v', 'mode', 'state', 'epoch', 'revision', 'generation', 'rate', 'capacity', 'inFlightMax', 'subjectRate',\n\
  'subjectCapacity', 'subjectFollow', 'policyRate', 'minRate', 'maxRate', 'minCapacity', 'maxCapacity',\n\
  'minInFlight', 'maxInFlight', 'accrued', 'changedAt', 'subjectAccrued', 'floor', 'subjectFloor',\n\
  'openUntil', 'openForMs', 'probeRate', 'validUntil', 'lostAfterMs', 'lostOverMs', 'safeRate',\n\
  'safeInFlight', 'reserveDefault', 'reserveSheddable', 'frozenUntil', 'pinnedUntil', 'holdBreaker',\n\
  'heldBy', 'fence', 'policyHash', 'onRedisError', 'subject', 'algorithm', 'windowMs', 'cells', 'terms', 'rollout',\n\
  'subjectRules', 'subjectTerms', 'windows', 'byPerson', 'canary', 'keptMs', 'subjectKeptMs',\n\
}\n\
local LATER = {\n\
  onRedisError = '', subject = '', algorithm = '', windowMs = 0, cells = 0, terms = '', rollout = '', subjectRules = 0,\n\
  subjectTerms = '', windows = '', byPerson = '', canary = '',\n\
}\n\
local LONGEST = {\n\
  subject = 1024, terms = 16384, rollout = 8192, subjectTerms = 2048, windows = 1024, byPerson = 2048, canary = 512,\n\
}\n\
local OWN = {\n\
  v = true, epoch = true, revision = true, accrued = true, changedAt = true, subjectAccrued = true,\n\
  floor = true, subjectFloor = true, fence = true, validUntil = true, keptMs = true, subjectKeptMs = true,\n\
}\n\
local KNOWN = {}\n\
for i = 1, #FIELDS do KNOWN[FIELDS[i]] = true end\n\
local MINUS_ONE = { subjectRate = true, openUntil = true, frozenUntil = true, pinnedUntil = true }\n\
local ON_REDIS_ERROR = { [''] = true, open = true, closed = true, ['local'] = true }\n\
local ALGORITHMS = {\n\
  [''] = true, ['token-bucket'] = true, ['sliding-log'] = true, ['sliding-counter'] = true,\n\
  ['fixed-window'] = true, ['leaky-bucket'] = true,\n\
}\n\
local FLAGS = { subjectFollow = true, holdBreaker = true, subjectRules = true }\n\
local function shortest(n)\n\
  for digits = 15, 16 do\n\
    local text = string.format('%.' .. digits .. 'g', n)\n\
    if tonumber(text) == n then return text end\n\
  end\n\
  return exact(n)\n\
end\n\
local function apply_change(p, first)\n\
  local changed = {}\n\
  if (#ARGV - first + 1) % 2 ~= 0 then return nil, 'a change is pairs of field and value' end\n\
  for i = first, #ARGV, 2 do\n\
    local field, value = ARGV[i], ARGV[i + 1]\n\
    if not KNOWN[field] or OWN[field] then return nil, field .. ' is not a field that a writer sets' end\n\
    if TEXT[field] then\n\
      local longest = LONGEST[field] or 256\n\
      if #value > longest then return nil, field .. ' is longer than ' .. longest .. ' bytes' end\n\
      if (field == 'mode' and not MODES[value]) or (field == 'state' and not STATES[value])\n\
        or (field == 'onRedisError' and not ON_REDIS_ERROR[value])\n\
        or (field == 'algorithm' and not ALGORITHMS[value]) then\n\
        return nil, field .. ' is ' .. value\n\
      end\n\
      p[field] = value\n\
    else\n\
      local n = finite(value)\n\
      if not n or n > LARGEST or n < 0 and not (n == -1 and MINUS_ONE[field])\n\
        or FLAGS[field] and n > 1 or field == 'generation' and n % 1 ~= 0 then\n\
        return nil, field .. ' is ' .. string.sub(value, 1, 40) .. ', which is not allowed'\n\
      end\n\
      p[field] = n == 0 and 0 or n\n\
    end\n\
    changed[field] = TEXT[field] and value or shortest(p[field])\n\
  end\n\
  return changed\n\
end\n\
local function fill_later(p)\n\
  for field, value in pairs(LATER) do\n\
    if p[field] == nil then p[field] = value end\n\
  end\n\
end\n\
local function missing_field(p)\n\
  for i = 1, #FIELDS do\n\
    if p[FIELDS[i]] == nil and not OWN[FIELDS[i]] then return FIELDS[i] .. ' is missing' end\n\
  end\n\
end\n\
local HELD = { rate = true, capacity = true, inFlightMax = true }\n\
local function holds(p, now)\n\
  return p.frozenUntil == -1 or p.frozenUntil * 1000 > now\n\
    or p.pinnedUntil == -1 or p.pinnedUntil * 1000 > now\n\
end\n\
local function named(field, value, allowed)\n\
  return field .. ' is ' .. exact(value) .. '; allowed is ' .. allowed\n\
end\n\
local function policy_keeps(before, p)\n\
  return (p.rate == before.rate or (before.rate > p.maxRate and p.rate == p.maxRate))\n\
    and (p.inFlightMax == before.inFlightMax or before.inFlightMax == 0 or p.maxInFlight == 0\n\
      or (before.inFlightMax > p.maxInFlight and p.inFlightMax == p.maxInFlight))\n\
end\n\
local SCHEDULE = 'the schedule'\n\
local function breaks_hold(before, p, cause, now, mends)\n\
  if not before or cause == 'person' or mends or not holds(before, now) then return nil end\n\
  local who = before.heldBy ~= '' and before.heldBy or 'a person'\n\
  if cause == 'law' or cause == 'schedule' then return 'held by ' .. who end\n\
  if cause == 'breaker' and before.holdBreaker == 1 then return 'the breaker is held by ' .. who end\n\
  if cause == 'policy' then\n\
    if not policy_keeps(before, p) then return 'rate and cap are held by ' .. who end\n\
    if who == SCHEDULE and before.pinnedUntil == p.pinnedUntil then return nil end\n\
  else\n\
    for field in pairs(HELD) do\n\
      if p[field] ~= before[field] then return field .. ' is held by ' .. who end\n\
    end\n\
  end\n\
  for _, field in ipairs({ 'frozenUntil', 'pinnedUntil', 'holdBreaker', 'heldBy' }) do\n\
    if p[field] ~= before[field] then return 'only a person ends the hold of ' .. who end\n\
  end\n\
end\n\
local function breaks_mode(before, p, e, cause)\n\
  if not before or p.mode == 'auto' then return nil end\n\
  if cause == 'law' or cause == 'schedule' then return 'in mode ' .. p.mode .. ' the law changes nothing' end\n\
  if cause == 'breaker' and e.state == 'closed' then\n\
    return 'in mode ' .. p.mode .. ' the breaker trips nothing'\n\
  end\n\
end\n\
local function breaks_shape(p)\n\
  if not (p.capacity > 0) then return named('capacity', p.capacity, 'above 0') end\n\
  if not (p.policyRate > 0) then return named('policyRate', p.policyRate, 'above 0') end\n\
  if not (p.probeRate > 0) then return named('probeRate', p.probeRate, 'above 0') end\n\
  if not (p.safeRate > 0) then return named('safeRate', p.safeRate, 'above 0') end\n\
  if p.minRate > p.maxRate then return named('minRate', p.minRate, 'at most maxRate') end\n\
  if p.minCapacity > p.maxCapacity then return named('minCapacity', p.minCapacity, 'at most maxCapacity') end\n\
  if p.minInFlight > p.maxInFlight then return named('minInFlight', p.minInFlight, 'at most maxInFlight') end\n\
  if p.subjectRate >= 0 and not (p.subjectCapacity > 0) then\n\
    return named('subjectCapacity', p.subjectCapacity, 'above 0')\n\
  end\n\
  if p.inFlightMax % 1 ~= 0 or p.safeInFlight % 1 ~= 0 then\n\
    return named('inFlightMax', p.inFlightMax, 'a whole number')\n\
  end\n\
  if p.reserveDefault > 1 or p.reserveSheddable > 1 then\n\
    return named('reserveSheddable', p.reserveSheddable, '0 to 1')\n\
  end\n\
end\n\
local function breaks_bounds(before, p, cause)\n\
  local person = cause == 'person'\n\
  local moved = not before or p.rate ~= before.rate or p.maxRate ~= before.maxRate\n\
  if moved and p.rate > math.max(p.maxRate, cause == 'settle' and p.safeRate or 0) then\n\
    return named('rate', p.rate, '0 to ' .. exact(p.maxRate))\n\
  end\n\
  if before and p.rate ~= before.rate and p.state == 'closed' and p.rate < p.minRate\n\
    and (cause == 'law' or cause == 'schedule' or cause == 'breaker') then\n\
    return named('rate', p.rate, exact(p.minRate) .. ' to ' .. exact(p.maxRate))\n\
  end\n\
  if not before or p.capacity ~= before.capacity then\n\
    if p.capacity > p.maxCapacity or (not person and p.capacity < p.minCapacity) then\n\
      return named('capacity', p.capacity, exact(p.minCapacity) .. ' to ' .. exact(p.maxCapacity))\n\
    end\n\
  end\n\
  if not before or p.inFlightMax ~= before.inFlightMax then\n\
    local most = math.max(p.maxInFlight, cause == 'settle' and p.safeInFlight or 0)\n\
    if p.inFlightMax > most or (cause == 'law' and p.state == 'closed' and p.inFlightMax < p.minInFlight) then\n\
      return named('inFlightMax', p.inFlightMax, exact(p.minInFlight) .. ' to ' .. exact(p.maxInFlight))\n\
    end\n\
  end\n\
end\n\
local function forbidden(before, p, e, changed, cause, now, mends)\n\
  local fault = breaks_shape(p)\n\
  if fault then return 'invalid', fault end\n\
  fault = breaks_hold(before, p, cause, now, mends)\n\
  if fault then return 'held', fault end\n\
  fault = breaks_mode(before, p, e, cause)\n\
  if fault then return 'mode', fault end\n\
  fault = breaks_bounds(before, p, cause)\n\
  if fault then return 'bounds', fault end\n\
end\n\
local REBASE_AT = 17592186044416\n\
local function settled(before, now)\n\
  if not before then\n\
    return {\n\
      validUntil = 0, fence = 0, accrued = 0, subjectAccrued = 0, floor = 0, subjectFloor = 0,\n\
      changedAt = now, keptMs = 0, subjectKeptMs = 0,\n\
    }, nil\n\
  end\n\
  local e = effective(before, now)\n\
  local p = {}\n\
  for field, value in pairs(before) do p[field] = value end\n\
  p.accrued, p.subjectAccrued, p.changedAt = e.tokens, e.subjectTokens, now\n\
  p.state = e.state\n\
  if e.gliding then p.rate, p.inFlightMax = e.rate, e.inFlightMax end\n\
  return p, e\n\
end\n\
local function normalise_open(p, e, changed, now)\n\
  local now_ms = math.floor(now / 1000)\n\
  if p.state ~= 'open' then\n\
    p.openUntil, changed.openUntil = 0, nil\n\
    return\n\
  end\n\
  local trip = not e or e.state ~= 'open'\n\
  if trip and not changed.openUntil then p.openUntil = now_ms + p.openForMs end\n\
  if p.openUntil ~= -1 then\n\
    if changed.openUntil then\n\
      p.openForMs = math.max(p.openForMs, p.openUntil - now_ms)\n\
      changed.openForMs = nil\n\
    elseif not trip then\n\
      p.openUntil = math.min(p.openUntil, now_ms + p.openForMs)\n\
    end\n\
  end\n\
  if trip and e and not changed.generation then p.generation = p.generation + 1 end\n\
end\n\
local REFLOOR = { empty = 0, full = 1 }\n\
local function set_floors(before, p, e, refloor)\n\
  if p.accrued > REBASE_AT then p.accrued, p.floor = 0, 0 end\n\
  if p.subjectAccrued > REBASE_AT then p.subjectAccrued, p.subjectFloor = 0, 0 end\n\
  local shorter, subject_shorter\n\
  p.keptMs, shorter = kept_ms(p.keptMs, bucket_ttl_ms(p))\n\
  p.subjectKeptMs, subject_shorter = kept_ms(p.subjectKeptMs, subject_ttl_ms(p))\n\
  if not before then\n\
    local share = refloor or 1\n\
    p.floor = p.accrued - (p.state == 'closed' and share or 0) * p.capacity\n\
    p.subjectFloor = p.subjectAccrued - share * p.subjectCapacity\n\
    return\n\
  end\n\
  p.floor = math.min(p.floor, p.accrued)\n\
  p.subjectFloor = math.min(p.subjectFloor, p.subjectAccrued)\n\
  local room = (p.state == 'half-open') and math.min(p.capacity, math.max(1, p.probeRate)) or p.capacity\n\
  if room > e.capacity then p.floor = math.max(p.floor, p.accrued - e.capacity) end\n\
  if p.state == 'half-open' then p.floor = math.max(p.floor, p.accrued - room) end\n\
  if p.subjectRate >= 0 then\n\
    if before.subjectRate < 0 then\n\
      p.subjectFloor = p.subjectAccrued - p.subjectCapacity\n\
    elseif p.subjectCapacity > before.subjectCapacity then\n\
      p.subjectFloor = math.max(p.subjectFloor, p.subjectAccrued - before.subjectCapacity)\n\
    end\n\
  end\n\
  local trip_or_reset = p.state == 'open' or e.state == 'open'\n\
  if refloor and refloor < 1 then p.floor = math.max(p.floor, p.accrued - refloor * room) end\n\
  if trip_or_reset or shorter or (p.rate == 0 and before.rate > 0) then\n\
    p.floor = p.accrued\n\
  end\n\
  local stands = p.subjectFollow == 1 and p.rate == 0 and before.rate > 0\n\
  if p.subjectRate >= 0 and refloor and refloor < 1 then\n\
    p.subjectFloor = math.max(p.subjectFloor, p.subjectAccrued - refloor * p.subjectCapacity)\n\
  end\n\
  if p.subjectRate >= 0 and (stands\n\
    or (before.subjectRate >= 0 and subject_shorter)) then\n\
    p.subjectFloor = p.subjectAccrued\n\
  end\n\
end\n\
local now = now_us(ARGV[1])\n\
local authority, owner, token = ARGV[2], ARGV[3], ARGV[4]\n\
local epoch, revision = count(ARGV[5]), count(ARGV[6])\n\
local create, new_epoch, cause = ARGV[7] == '1', count(ARGV[8]), ARGV[9]\n\
local refloor = REFLOOR[ARGV[10]] or within(ARGV[10], 0, 1)\n\
local lease_ms = within(ARGV[11], 0, LEASE_MAX_MS)\n\
local prev, hash, body = ARGV[12], ARGV[13], ARGV[14]\n\
local checkpoint, policy_hash, policy_json = ARGV[15], ARGV[16], ARGV[17]\n\
local channel, limiter = ARGV[18], ARGV[19]\n\
local before = read_params(KEYS[1])\n\
local head, head_epoch = audit_head(KEYS[2])\n\
local function integer(n)\n\
  return string.format('%.0f', n)\n\
end\n\
local function refuse(reason, detail)\n\
  local at = before or { epoch = 0, revision = 0 }\n\
  return { 'refused', reason, detail, integer(now or 0), integer(at.epoch), integer(at.revision), head }\n\
end\n\
if not now or not epoch or not revision or not lease_ms or (authority == 'lease' and lease_ms < 1)\n\
  or not (new_epoch or ARGV[8] == '') then\n\
  return refuse('invalid', 'nowUs, epoch, revision, newEpoch and leaseMs are numbers, leaseMs of a lease above 0')\n\
end\n\
if not refloor and ARGV[10] ~= '' then return refuse('invalid', 'refloor is empty, full or a share from 0 to 1') end\n\
if create and before then return refuse('exists', 'the params are there already') end\n\
if not create and not before then return refuse('invalid', 'the params are missing: create them') end\n\
if authority == 'lease' then\n\
  if not holds_lease(KEYS[3], owner, token, before and before.fence or 0) then\n\
    return refuse('lease', 'the lease is held by ' .. (lease_of(KEYS[3]) or 'nobody'))\n\
  end\n\
elseif authority ~= 'person' then\n\
  return refuse('invalid', 'authority is ' .. authority .. ', not lease or person')\n\
end\n\
if before and (epoch ~= before.epoch or revision ~= before.revision) then\n\
  return refuse('revision', 'in force is ' .. integer(before.epoch) .. '/' .. integer(before.revision))\n\
end\n\
if (create and epoch <= head_epoch) or (new_epoch and new_epoch <= epoch) then\n\
  return refuse('revision', 'a new epoch must be above ' .. integer(math.max(head_epoch, before and epoch or 0)))\n\
end\n\
if prev ~= head then return refuse('head', 'the newest audit entry is another one') end\n\
local p, e = settled(before, now)\n\
local changed, fault = apply_change(p, 20)\n\
fill_later(p)\n\
if fault then return refuse('invalid', fault) end\n\
if create then\n\
  fault = missing_field(p)\n\
  if fault then return refuse('invalid', fault) end\n\
  p.v, p.epoch, p.revision = 1, epoch, revision\n\
else\n\
  p.revision = p.revision + 1\n\
  if new_epoch then p.epoch = new_epoch end\n\
end\n\
if authority == 'lease' then\n\
  p.validUntil = math.floor(now / 1000) + lease_ms\n\
  p.fence = tonumber(token)\n\
else\n\
  if create then p.fence = lease_token(KEYS[3]) end\n\
  p.validUntil = math.max(p.validUntil, math.floor(now / 1000))\n\
end\n\
normalise_open(p, e, changed, now)\n\
local reason\n\
reason, fault = forbidden(before, p, e, changed, cause, now, new_epoch and cause == 'settle')\n\
if reason then return refuse(reason, fault) end\n\
set_floors(before, p, e, refloor)\n\
local fields = {}\n\
for i = 1, #FIELDS do\n\
  local field = FIELDS[i]\n\
  local value = p[field]\n\
  fields[2 * i - 1] = field\n\
  fields[2 * i] = TEXT[field] and value or changed[field] or shortest(value)\n\
end\n\
fields[#fields + 1] = 'hot'\n\
fields[#fields + 1] = pack_hot(view_of(p, now))\n\
redis.call('PUBLISH', channel, limiter .. ' ' .. integer(p.epoch) .. ' ' .. integer(p.revision))\n\
local id = append(KEYS[2], 'change', p.epoch, p.revision, hash, prev, body)\n\
if create then redis.call('DEL', KEYS[1]) end\n\
redis.call('HSET', KEYS[1], unpack(fields))\n\
if authority == 'lease' then redis.call('PEXPIRE', KEYS[3], integer(math.ceil(lease_ms))) end\n\
if checkpoint ~= '' then redis.call('SET', KEYS[4], checkpoint, 'PX', '3600000') end\n\
if policy_hash ~= '' then\n\
  redis.call('SET', KEYS[5], policy_json)\n\
  redis.call('SET', KEYS[6], policy_json)\n\
end\n\
return { 'ok', integer(now), integer(p.epoch), integer(p.revision), id }\n\
",
};

/** Keys of `announce`, in order. */
export type AnnounceKeys = [daemons: string];
/** Arguments of `announce`, in order. */
export type AnnounceArgs = [nowUs: ScriptArg, owner: ScriptArg, record: ScriptArg, livesMs: ScriptArg];
/**
 * a daemon says that it lives, and hears who else does. Who is long silent is forgotten.
 * Returns [nowUs, owner...] of all that live. O(daemons).
 */
export const announceScript: Script<AnnounceKeys, AnnounceArgs> = {
  name: 'announce',
  sha: '7b6cbf1ac1217858b9fdeb87bb0c827ff1ecbc06',
  lua: "-- flyball announce\n\
local LARGEST = 9007199254740992\n\
local LEASE_MAX_MS = 315360000000\n\
local function finite(text)\n\
  if type(text) ~= 'string' or #text > 32 then return nil end\n\
  if not string.find(text, '^%-?%d+%.?%d*$')\n\
    and not string.find(text, '^%-?%d+%.?%d*[eE][%+%-]?%d+$') then\n\
    return nil\n\
  end\n\
  local n = tonumber(text)\n\
  if not n or n ~= n or n == math.huge or n == -math.huge then return nil end\n\
  return n\n\
end\n\
local function within(text, least, most)\n\
  local n = finite(text)\n\
  if n and n >= least and n <= most then return n end\n\
end\n\
local function count(text)\n\
  local n = within(text, 0, LARGEST)\n\
  if n and n % 1 == 0 then return n end\n\
end\n\
local function exact(n)\n\
  return string.format('%.17g', n)\n\
end\n\
local function now_us(given)\n\
  if given ~= '' then return within(given, -LARGEST, LARGEST) end\n\
  local time = redis.call('TIME')\n\
  return time[1] * 1000000 + time[2]\n\
end\n\
local FORGET_MS = 60000\n\
local KEPT_MS = 86400000\n\
local now = now_us(ARGV[1])\n\
local owner, record, lives_ms = ARGV[2], ARGV[3], within(ARGV[4], 1, LEASE_MAX_MS)\n\
if not now or not lives_ms or owner == '' then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID announce wants owner, record, livesMs above 0')\n\
end\n\
local now_ms = math.floor(now / 1000)\n\
local function spoke_at(at, text)\n\
  return string.format('%.0f', at) .. ' ' .. text\n\
end\n\
local kind = redis.call('TYPE', KEYS[1])['ok']\n\
if kind ~= 'hash' and kind ~= 'none' then redis.call('DEL', KEYS[1]) end\n\
if record == '' then\n\
  redis.call('HDEL', KEYS[1], owner)\n\
else\n\
  redis.call('HSET', KEYS[1], owner, spoke_at(now_ms, record))\n\
  redis.call('PEXPIRE', KEYS[1], KEPT_MS)\n\
end\n\
local reply = { string.format('%.0f', now) }\n\
local flat = redis.call('HGETALL', KEYS[1])\n\
for i = 1, #flat, 2 do\n\
  local at, text = string.match(flat[i + 1], '^(%d+) (.*)$')\n\
  at = count(at)\n\
  if not at or now_ms - at > math.max(FORGET_MS, lives_ms) then\n\
    redis.call('HDEL', KEYS[1], flat[i])\n\
  else\n\
    if at > now_ms then\n\
      redis.call('HSET', KEYS[1], flat[i], spoke_at(now_ms, text))\n\
    end\n\
    if now_ms - at <= lives_ms then reply[#reply + 1] = flat[i] end\n\
  end\n\
end\n\
return reply\n\
",
};

/** Keys of `budget`, in order. */
export type BudgetKeys = [budget: string];
/** Arguments of `budget`, in order. */
export type BudgetArgs = [nowUs: ScriptArg, changes: ScriptArg, doublings: ScriptArg, raise: ScriptArg];
/**
 * what all autopilots may change together. Cuts are counted and never wait; raises wait until there is room.
 * Returns [1 granted | 0 wait, nowUs]. O(1).
 */
export const budgetScript: Script<BudgetKeys, BudgetArgs> = {
  name: 'budget',
  sha: '1ac0b6665f31b73c1882aff3b14c47318d11e6ca',
  lua: "-- flyball budget\n\
local LARGEST = 9007199254740992\n\
local LEASE_MAX_MS = 315360000000\n\
local function finite(text)\n\
  if type(text) ~= 'string' or #text > 32 then return nil end\n\
  if not string.find(text, '^%-?%d+%.?%d*$')\n\
    and not string.find(text, '^%-?%d+%.?%d*[eE][%+%-]?%d+$') then\n\
    return nil\n\
  end\n\
  local n = tonumber(text)\n\
  if not n or n ~= n or n == math.huge or n == -math.huge then return nil end\n\
  return n\n\
end\n\
local function within(text, least, most)\n\
  local n = finite(text)\n\
  if n and n >= least and n <= most then return n end\n\
end\n\
local function count(text)\n\
  local n = within(text, 0, LARGEST)\n\
  if n and n % 1 == 0 then return n end\n\
end\n\
local function exact(n)\n\
  return string.format('%.17g', n)\n\
end\n\
local function now_us(given)\n\
  if given ~= '' then return within(given, -LARGEST, LARGEST) end\n\
  local time = redis.call('TIME')\n\
  return time[1] * 1000000 + time[2]\n\
end\n\
local KEPT_MS = 7200000\n\
local now = now_us(ARGV[1])\n\
local changes, doublings, raise = finite(ARGV[2]), finite(ARGV[3]), within(ARGV[4], 0, 1000)\n\
if not now or not raise then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID budget wants raise, 0 or more')\n\
end\n\
local now_ms = math.floor(now / 1000)\n\
local most_changes = math.max(1, (changes or 0) / 2)\n\
local most_doublings = (doublings or 0) / 2\n\
local left_c, left_d, at = string.match(redis.call('MGET', KEYS[1])[1] or '', '^(%S+) (%S+) (%d+)$')\n\
left_c, left_d, at = finite(left_c), finite(left_d), count(at)\n\
if not left_c or not left_d or not at then left_c, left_d, at = most_changes, most_doublings, now_ms end\n\
local passed = math.max(0, now_ms - at)\n\
left_c = math.min(most_changes, left_c + most_changes * passed / 60000)\n\
left_d = math.min(most_doublings, left_d + most_doublings * passed / 3600000)\n\
local granted = raise == 0 or ((not changes or left_c >= 1)\n\
  and (not doublings or left_d >= math.min(raise, most_doublings)))\n\
if granted then\n\
  left_c = math.max(0, left_c - 1)\n\
  left_d = left_d - raise\n\
end\n\
local text = string.format('%.6f %.6f %.0f', left_c, math.max(-1000, left_d), now_ms)\n\
redis.call('SET', KEYS[1], text, 'PX', KEPT_MS)\n\
return { granted and 1 or 0, string.format('%.0f', now) }\n\
",
};

/** Keys of `counter`, in order. */
export type CounterKeys = [params: string, total: string, bucket: string, ...subject: string[]];
/** Arguments of `counter`, in order. */
export type CounterArgs = [nowUs: ScriptArg, chargeByUs: ScriptArg, shadow: ScriptArg, fallback: ScriptArg, window: ScriptArg, ...take: ScriptArg[]];
/**
 * sliding counter: n takes over a window of `cells` equal cells and the one that is running. Never admits more than rate × window in any window, as the log does; what was taken returns up to one cell (window ÷ cells) later than with the log: under steady demand at least cells ÷ (cells + 1) of the rate passes. A key is one string: number and length of the newest cell, then the millionths taken in each cell, newest first.
 * Returns [status, nowUs, inForce, then reason, remaining, retryAfterMs of each take]; see docs/contract.md. O(n × cells) in the takes.
 */
export const counterScript: Script<CounterKeys, CounterArgs> = {
  name: 'counter',
  sha: '14fbfef3aa96d98f3f8db719c0f4175b47e0c014',
  lua: "-- flyball counter\n\
local LARGEST = 9007199254740992\n\
local LEASE_MAX_MS = 315360000000\n\
local function finite(text)\n\
  if type(text) ~= 'string' or #text > 32 then return nil end\n\
  if not string.find(text, '^%-?%d+%.?%d*$')\n\
    and not string.find(text, '^%-?%d+%.?%d*[eE][%+%-]?%d+$') then\n\
    return nil\n\
  end\n\
  local n = tonumber(text)\n\
  if not n or n ~= n or n == math.huge or n == -math.huge then return nil end\n\
  return n\n\
end\n\
local function within(text, least, most)\n\
  local n = finite(text)\n\
  if n and n >= least and n <= most then return n end\n\
end\n\
local function count(text)\n\
  local n = within(text, 0, LARGEST)\n\
  if n and n % 1 == 0 then return n end\n\
end\n\
local function exact(n)\n\
  return string.format('%.17g', n)\n\
end\n\
local function now_us(given)\n\
  if given ~= '' then return within(given, -LARGEST, LARGEST) end\n\
  local time = redis.call('TIME')\n\
  return time[1] * 1000000 + time[2]\n\
end\n\
local MODES = { off = 0, shadow = 1, recommend = 2, auto = 3 }\n\
local STATES = { closed = 0, open = 1, ['half-open'] = 2, recovering = 3 }\n\
local TEXT = {\n\
  mode = true, state = true, heldBy = true, policyHash = true, onRedisError = true, subject = true,\n\
  algorithm = true, terms = true, rollout = true, subjectTerms = true, windows = true,\n\
  byPerson = true, canary = true,\n\
}\n\
local NEEDED = {\n\
  'v', 'mode', 'state', 'epoch', 'revision', 'generation', 'rate', 'capacity', 'inFlightMax', 'subjectRate',\n\
  'subjectCapacity', 'subjectFollow', 'policyRate', 'minRate', 'maxRate', 'minCapacity', 'maxCapacity',\n\
  'minInFlight', 'maxInFlight', 'accrued', 'changedAt', 'subjectAccrued', 'floor', 'subjectFloor',\n\
  'openUntil', 'openForMs', 'probeRate', 'validUntil', 'lostAfterMs', 'lostOverMs', 'safeRate',\n\
  'safeInFlight', 'reserveDefault', 'reserveSheddable', 'frozenUntil', 'pinnedUntil', 'holdBreaker',\n\
  'heldBy', 'fence', 'policyHash',\n\
}\n\
local LATER_NUMBERS = { windowMs = true, cells = true, subjectRules = true }\n\
local COUNTS = { 'epoch', 'revision', 'generation', 'fence' }\n\
local NOT_BELOW_ZERO = {\n\
  'rate', 'capacity', 'inFlightMax', 'subjectCapacity', 'policyRate', 'probeRate', 'safeRate', 'safeInFlight',\n\
  'lostAfterMs', 'lostOverMs',\n\
}\n\
local function readable(p)\n\
  for i = 1, #NEEDED do\n\
    if p[NEEDED[i]] == nil then return false end\n\
  end\n\
  if not MODES[p.mode] or not STATES[p.state] then return false end\n\
  for i = 1, #COUNTS do\n\
    local n = p[COUNTS[i]]\n\
    if n < 0 or n > 9007199254740992 or n % 1 ~= 0 then return false end\n\
  end\n\
  for i = 1, #NOT_BELOW_ZERO do\n\
    if p[NOT_BELOW_ZERO[i]] < 0 then return false end\n\
  end\n\
  return true\n\
end\n\
local function read_params(key)\n\
  local flat = redis.call('HGETALL', key)\n\
  if #flat == 0 then return nil end\n\
  local p = {}\n\
  for i = 1, #flat, 2 do\n\
    local field, value = flat[i], flat[i + 1]\n\
    if TEXT[field] then\n\
      p[field] = value\n\
    elseif field ~= 'hot' then\n\
      value = not string.find(value, '[^%d%.eE%+%-]') and tonumber(value)\n\
      if value and value - value == 0 then\n\
        p[field] = value\n\
      elseif LATER_NUMBERS[field] then\n\
        return nil\n\
      end\n\
    end\n\
  end\n\
  for _, field in ipairs({ 'keptMs', 'subjectKeptMs' }) do\n\
    if not p[field] or p[field] < 0 or p[field] % 1 ~= 0 then p[field] = 315360000000 end\n\
  end\n\
  return readable(p) and p or nil\n\
end\n\
local NEVER = 9007199254740992\n\
local function glide_start(p)\n\
  if p.pinnedUntil == -1 or p.frozenUntil == -1 then return NEVER end\n\
  local start = math.max(p.validUntil, p.pinnedUntil, p.frozenUntil)\n\
  if p.state == 'open' then\n\
    if p.openUntil == -1 then return NEVER end\n\
    start = math.max(start, p.openUntil)\n\
  end\n\
  return (start + p.lostAfterMs) * 1000\n\
end\n\
local function is_open(p, now)\n\
  if p.state ~= 'open' then return false end\n\
  if p.openUntil == -1 then return true end\n\
  local left = p.openUntil * 1000 - now\n\
  return left > 0 and left <= p.openForMs * 1000\n\
end\n\
local function paid(base, safe, from, to, opens, glide, over)\n\
  local sum = 0\n\
  local start = math.max(from, opens)\n\
  local stop = math.min(to, glide)\n\
  if stop > start then sum = base * (stop - start) end\n\
  local finish = glide + over\n\
  local left = math.max(from, glide)\n\
  local right = math.min(to, finish)\n\
  if right > left then\n\
    local first = base + (safe - base) * ((left - glide) / over)\n\
    local last = base + (safe - base) * ((right - glide) / over)\n\
    sum = sum + (first + last) / 2 * (right - left)\n\
  end\n\
  local after = math.max(from, finish)\n\
  if to > after then sum = sum + safe * (to - after) end\n\
  return sum / 1000000\n\
end\n\
local function effective(p, now)\n\
  local open = is_open(p, now)\n\
  local probing = not open and (p.state == 'open' or p.state == 'half-open')\n\
  local glide = glide_start(p)\n\
  local over = p.lostOverMs * 1000\n\
  local gliding = now >= glide\n\
  local share = 0\n\
  if gliding then share = now >= glide + over and 1 or (now - glide) / over end\n\
  local stopped = p.state == 'open' or p.state == 'half-open'\n\
  local base = stopped and p.probeRate or p.rate\n\
  local rate = open and 0 or base + (p.safeRate - base) * share\n\
  local capacity = p.capacity\n\
  if probing then\n\
    local narrow = math.min(capacity, math.max(1, p.probeRate))\n\
    capacity = narrow + (capacity - narrow) * share\n\
  end\n\
  local cap = p.inFlightMax\n\
  if cap > 0 and p.safeInFlight > 0 then\n\
    cap = math.floor(cap + (p.safeInFlight - cap) * share + 0.5)\n\
  end\n\
  local scale, safe_scale = 1, 1\n\
  if p.subjectFollow == 1 then\n\
    scale = p.rate / p.policyRate\n\
    safe_scale = p.safeRate / p.policyRate\n\
  end\n\
  local none = p.subjectRate < 0\n\
  local subject_base = none and 0 or p.subjectRate * scale\n\
  local subject_safe = none and 0 or p.subjectRate * safe_scale\n\
  local subject_rate = subject_base + (subject_safe - subject_base) * share\n\
  local opens = 0\n\
  if open then\n\
    opens = p.openUntil == -1 and NEVER or p.openUntil * 1000\n\
  elseif p.state == 'open' and p.openUntil * 1000 <= now then\n\
    opens = p.openUntil * 1000\n\
  end\n\
  local tokens, subject_tokens\n\
  if now < p.changedAt then\n\
    tokens = p.accrued - rate * (p.changedAt - now) / 1000000\n\
    subject_tokens = p.subjectAccrued - subject_rate * (p.changedAt - now) / 1000000\n\
  else\n\
    tokens = p.accrued + paid(base, p.safeRate, p.changedAt, now, opens, glide, over)\n\
    subject_tokens = p.subjectAccrued\n\
      + paid(subject_base, subject_safe, p.changedAt, now, 0, glide, over)\n\
  end\n\
  local state = p.state\n\
  if probing then state = gliding and 'recovering' or 'half-open' end\n\
  return {\n\
    state = state,\n\
    gliding = gliding,\n\
    rate = rate,\n\
    capacity = capacity,\n\
    inFlightMax = cap,\n\
    subjectRate = none and -1 or subject_rate,\n\
    subjectCapacity = p.subjectCapacity,\n\
    tokens = tokens,\n\
    subjectTokens = subject_tokens,\n\
    opens = opens,\n\
    glide = glide,\n\
  }\n\
end\n\
local TTL_MARGIN_MS = 1000\n\
local TTL_MAX_MS = 315360000000\n\
local function lowest_above_zero(...)\n\
  local lowest = math.huge\n\
  for _, rate in ipairs({ ... }) do\n\
    if rate > 0 and rate < lowest then lowest = rate end\n\
  end\n\
  return lowest\n\
end\n\
local function ttl_ms(capacity, rate)\n\
  if not (rate > 0) or rate == math.huge then return TTL_MAX_MS end\n\
  return math.min(TTL_MAX_MS, math.ceil(capacity / rate * 1000) + TTL_MARGIN_MS)\n\
end\n\
local function bucket_ttl_ms(p)\n\
  return ttl_ms(\n\
    math.max(p.capacity, p.maxCapacity),\n\
    lowest_above_zero(p.minRate, p.probeRate, p.safeRate, p.rate)\n\
  )\n\
end\n\
local function subject_ttl_ms(p)\n\
  if p.subjectRate < 0 then return 0 end\n\
  local rate = p.subjectRate\n\
  if p.subjectFollow == 1 then\n\
    rate = rate * lowest_above_zero(p.minRate, p.safeRate, p.rate) / p.policyRate\n\
  end\n\
  return ttl_ms(p.subjectCapacity, rate)\n\
end\n\
local function kept_ms(kept, needed)\n\
  if needed <= kept and kept <= 4 * needed then return kept, false end\n\
  return math.min(TTL_MAX_MS, 2 * needed), needed > kept\n\
end\n\
local function in_force_text(p, e)\n\
  return string.format(\n\
    '1 %.0f %.0f %.0f %s %s %d %.17g %.17g %.17g %.17g %.17g',\n\
    p.epoch, p.revision, p.generation, p.mode, e.state, e.gliding and 1 or 0,\n\
    e.rate, e.capacity, e.inFlightMax, e.subjectRate, e.subjectCapacity\n\
  )\n\
end\n\
local function view_of(p, now)\n\
  local e = effective(p, now)\n\
  local untl = e.glide\n\
  if e.state == 'open' then untl = math.min(untl, e.opens) end\n\
  local since = p.changedAt\n\
  if e.state ~= 'open' then since = math.max(since, e.opens) end\n\
  local half_open = e.state == 'half-open'\n\
  return {\n\
    code = MODES[p.mode] + 4 * STATES[e.state] + 16 * (p.subjectRules or 0),\n\
    from = since,\n\
    untl = e.gliding and 0 or untl,\n\
    since = since,\n\
    accrued = p.accrued,\n\
    rate = e.rate,\n\
    capacity = e.capacity,\n\
    fullCapacity = p.capacity,\n\
    floor = p.floor,\n\
    reserveDefault = half_open and 0 or p.reserveDefault * e.capacity,\n\
    reserveSheddable = half_open and 0 or p.reserveSheddable * e.capacity,\n\
    ttlMs = p.keptMs,\n\
    subjectSince = p.changedAt,\n\
    subjectAccrued = p.subjectAccrued,\n\
    subjectRate = e.subjectRate,\n\
    subjectLowest = p.subjectFollow == 1 and math.min(e.subjectRate, p.subjectRate * p.rate / p.policyRate)\n\
      or e.subjectRate,\n\
    subjectCapacity = e.subjectCapacity,\n\
    subjectFloor = p.subjectFloor,\n\
    subjectTtlMs = p.subjectKeptMs,\n\
    openUntil = p.openUntil * 1000,\n\
    probeRate = p.probeRate,\n\
    tokens = e.tokens,\n\
    subjectTokens = e.subjectTokens,\n\
    text = in_force_text(p, e),\n\
  }\n\
end\n\
local FIRST, LEADING = 5, 3\n\
local call = redis.call\n\
local takes = #ARGV - FIRST\n\
local rich, shadow = ARGV[3] == '4' or ARGV[3] == '5', ARGV[3] == '1' or ARGV[3] == '5'\n\
local before_subjects = rich and LEADING + 3 or LEADING\n\
if takes < 0 or takes > 512 or #KEYS ~= (rich and takes or 0) + takes + before_subjects then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID one key and one argument for each take, at most 512')\n\
end\n\
local now, charge_by = now_us(ARGV[1]), ARGV[2]\n\
if charge_by ~= '' then charge_by = within(charge_by, -LARGEST, LARGEST) end\n\
if not now or not charge_by then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID nowUs and chargeByUs are µs, or empty')\n\
end\n\
local params_key = KEYS[1]\n\
local NONE = -1e300\n\
local hot = call('HGET', params_key, 'hot')\n\
local managed = hot and #hot > 160\n\
local code, from, untl, since, accrued, rate, capacity, full, floor, reserve_default, reserve_sheddable\n\
local ttl, subject_since, subject_accrued, subject_rate, subject_capacity, subject_floor, subject_ttl\n\
local open_until, probe_rate, text, clock, subject_clock, unmanaged_base\n\
if managed then\n\
  code, from, untl, since, accrued, rate, capacity, full, floor, reserve_default, reserve_sheddable,\n\
    ttl, subject_since, subject_accrued, subject_rate, subject_capacity, subject_floor, subject_ttl,\n\
    open_until, probe_rate = struct.unpack('<dddddddddddddddddddd', hot)\n\
  if now >= from and now < untl then\n\
    text = string.sub(hot, 161)\n\
    clock = accrued + rate * (now - since) / 1000000\n\
    subject_clock = subject_accrued\n\
    if subject_rate > 0 then subject_clock = subject_clock + subject_rate * (now - subject_since) / 1000000 end\n\
  end\n\
end\n\
local subject_lowest = subject_rate\n\
if not text then\n\
  local p = read_params(params_key)\n\
  managed = p and true\n\
  if p then\n\
    local v = view_of(p, now)\n\
    code, rate, capacity, full, text = v.code, v.rate, v.capacity, v.fullCapacity, v.text\n\
    clock, subject_clock, ttl, subject_ttl = v.tokens, v.subjectTokens, v.ttlMs, v.subjectTtlMs\n\
    reserve_default, reserve_sheddable = v.reserveDefault, v.reserveSheddable\n\
    subject_rate, subject_capacity = v.subjectRate, v.subjectCapacity\n\
    open_until, probe_rate = v.openUntil, v.probeRate\n\
    floor, subject_floor = v.floor, v.subjectFloor\n\
    subject_since, subject_lowest = v.subjectSince, v.subjectLowest\n\
  else\n\
    local number = '(%d+%.?%d*[eE]?[%+%-]?%d*)'\n\
    local r, c, f, sr, sc = string.match(\n\
      ARGV[4],\n\
      '^' .. number .. ' ' .. number .. ' ' .. number .. ' (%-?%d+%.?%d*[eE]?[%+%-]?%d*) ' .. number .. '$'\n\
    )\n\
    rate, capacity, subject_rate, subject_capacity = tonumber(r), tonumber(c), tonumber(sr), tonumber(sc)\n\
    local cap = tonumber(f)\n\
    local sum = rate and capacity and cap and subject_rate and subject_capacity\n\
      and rate + capacity + cap + subject_rate + subject_capacity\n\
    if not sum or sum > 9007199254740992 then\n\
      return redis.error_reply('FLYBALL_E_CALL_INVALID fallback is five numbers: ' .. ARGV[4])\n\
    end\n\
    code = (ARGV[3] == '1' or ARGV[3] == '3') and 1 or 2\n\
    full, floor, subject_floor = capacity, NONE, NONE\n\
    clock, subject_clock = 0, 0\n\
    reserve_default, reserve_sheddable, open_until, probe_rate = 0, 0, 0, 0\n\
    local function life(most, per_second)\n\
      if not (per_second > 0) then return 86400000 end\n\
      return math.min(86400000 * 3650, math.ceil(most / per_second * 1000) + 1000)\n\
    end\n\
    ttl, subject_ttl = life(capacity, rate), life(subject_capacity, subject_rate)\n\
    text = string.format(\n\
      '0 0 0 0 %s closed 0 %.17g %.17g %.17g %.17g %.17g',\n\
      code == 1 and 'shadow' or 'recommend', rate, capacity, cap, subject_rate, subject_capacity\n\
    )\n\
    function unmanaged_base(mark, per_second)\n\
      local held, at = string.match(mark, '^u:(%d+%.?%d*[eE]?[%+%-]?%d*):(%d+)$')\n\
      held, at = tonumber(held), tonumber(at)\n\
      if not held or not at then return 0, true end\n\
      return -(held + per_second * math.max(0, now - at) / 1000000), at > now\n\
    end\n\
  end\n\
end\n\
if charge_by ~= '' and now > charge_by then return { 1, now, text } end\n\
if (managed and code >= 16 or false) ~= rich then return { 3, now, text } end\n\
code = code % 16\n\
local mode = code % 4\n\
if managed and mode ~= 0 and (mode == 1) ~= shadow then return { 2, now, text } end\n\
local state = (code - mode) / 4\n\
local open, probing = state == 1, state == 2\n\
local total_key = KEYS[2]\n\
local reply = { 0, now, text }\n\
local costs, reserves\n\
local function whole_ms(us)\n\
  if not us or us > 315360000000000 then return -1 end\n\
  return math.max(1, math.ceil(us / 1000))\n\
end\n\
local LONGEST_MS = 31622400000\n\
local window_text, cells_text = string.match(ARGV[5], '^(%d+) ?(%d*)$')\n\
local window_us, cells = tonumber(window_text or ''), tonumber(cells_text or '') or 0\n\
if not window_us or window_us < 1 or window_us > LONGEST_MS or cells > 1000 then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID window is `windowMs` or `windowMs cells`: ' .. ARGV[5])\n\
end\n\
window_us = window_us * 1000\n\
if cells < 1 then return redis.error_reply('FLYBALL_E_CALL_INVALID window is `windowMs cells`: ' .. ARGV[5]) end\n\
local width = math.ceil(window_us / cells)\n\
local cell = math.floor(now / width)\n\
local function cell_of(stored, i)\n\
  local n = struct.unpack('<d', stored, 8 * i + 9)\n\
  return n > 0 and n or 0\n\
end\n\
local function open_window(key)\n\
  local w = { key = key, used = 0, cells = {} }\n\
  for i = 1, cells + 1 do w.cells[i] = 0 end\n\
  local stored = call('GET', key)\n\
  local count = stored and #stored / 8 - 2 or 0\n\
  if count < 2 or count > 1001 or count % 1 ~= 0 then\n\
    w.fresh = true\n\
    return w\n\
  end\n\
  local newest, old_width = struct.unpack('<dd', stored)\n\
  local shift = cell - newest\n\
  if old_width == width and count == cells + 1 and shift >= 0 then\n\
    for i = 1, count - shift do\n\
      w.cells[i + shift] = cell_of(stored, i)\n\
      w.used = w.used + w.cells[i + shift]\n\
    end\n\
    return w\n\
  end\n\
  local back = newest * old_width > now\n\
  for i = 1, count do\n\
    if back or (newest - i + 1 + count) * old_width > now then\n\
      w.used = w.used + cell_of(stored, i)\n\
    end\n\
  end\n\
  w.cells[1], w.ahead = w.used, back or w.used > 0\n\
  return w\n\
end\n\
local function charge(w, micros)\n\
  w.cells[1], w.used, w.changed = w.cells[1] + micros, w.used + micros, true\n\
end\n\
local function wait_us(w, micros)\n\
  local sum = 0\n\
  for i = cells + 1, 1, -1 do\n\
    sum = sum + w.cells[i]\n\
    if sum >= micros then return (cell - i + 2 + cells) * width - now end\n\
  end\n\
end\n\
local function save(w)\n\
  local parts = { struct.pack('<dd', cell, width) }\n\
  for i = 1, cells + 1 do parts[i + 1] = struct.pack('<d', w.cells[i]) end\n\
  call('SET', w.key, table.concat(parts), 'PX', math.ceil((cells + 1) * width / 1000) + 1000)\n\
end\n\
local MOST_RATE, MOST_CAPACITY = 1000000, 1000000000\n\
local function part_of(text, most)\n\
  return within(text, 1e-9, most)\n\
end\n\
local function override_of(text, now)\n\
  local kind, ends, rate, capacity = string.match(text or '', '^(%l+) (%-?%d+) (%S+) (%S+)')\n\
  ends = within(ends, -1, LARGEST)\n\
  if not ends or ends ~= -1 and ends * 1000 <= now then return nil end\n\
  rate, capacity = part_of(rate, MOST_RATE), part_of(capacity, MOST_CAPACITY)\n\
  if kind == 'limit' and not rate and not capacity or kind ~= 'limit' and kind ~= 'block' and kind ~= 'exempt' then\n\
    return nil\n\
  end\n\
  return { kind = kind, ends = ends, rate = rate, capacity = capacity, numbers = kind == 'limit' }\n\
end\n\
local function steps_of(terms)\n\
  local steps = {}\n\
  for times, capacity, rate in string.gmatch(terms, 'step=(%d+):([^: ]+):([^: ]+)') do\n\
    steps[#steps + 1] = {\n\
      kind = 'tier', times = tonumber(times), ends = 0, rate = part_of(rate, MOST_RATE),\n\
      capacity = part_of(capacity, MOST_CAPACITY),\n\
      numbers = true,\n\
    }\n\
  end\n\
  return steps\n\
end\n\
local function tier_of(steps, streak)\n\
  local tier = 0\n\
  for i = 1, #steps do\n\
    if streak and streak >= steps[i].times then tier = i end\n\
  end\n\
  return tier\n\
end\n\
local overrides_key, index_key, shared_key = KEYS[LEADING + 1], KEYS[LEADING + 2], KEYS[LEADING + 3]\n\
local terms = rich and call('HGET', KEYS[1], 'subjectTerms') or ''\n\
local most = tonumber(string.match(terms, 'max=(%d+)') or '')\n\
local steps = steps_of(terms)\n\
local rules = {}\n\
local function rule_of(i)\n\
  local key = KEYS[before_subjects + i]\n\
  local rule = rules[key]\n\
  if rule ~= nil then return rule end\n\
  rule = override_of(call('HGET', overrides_key, string.sub(key, #total_key + 2)), now)\n\
  if not rule and steps[1] then\n\
    rule = steps[tier_of(steps, tonumber(call('GET', KEYS[before_subjects + takes + i]) or ''))]\n\
  end\n\
  rules[key] = rule or false\n\
  return rules[key]\n\
end\n\
local live\n\
local function room_for(life_ms, tidy)\n\
  live = live or call('ZCARD', index_key)\n\
  if live < most or not tidy then return live < most end\n\
  local due = call('ZRANGEBYSCORE', index_key, '-inf', string.format('%.0f', now / 1000), 'LIMIT', 0, 8)\n\
  for j = 1, #due do\n\
    if call('EXISTS', total_key .. ':' .. due[j]) == 1 then\n\
      call('ZADD', index_key, string.format('%.0f', now / 1000 + life_ms), due[j])\n\
    else\n\
      call('ZREM', index_key, due[j])\n\
      live = live - 1\n\
    end\n\
  end\n\
  return live < most\n\
end\n\
local function came(key, life_ms)\n\
  live = live or call('ZCARD', index_key)\n\
  live = live + call('ZADD', index_key, string.format('%.0f', now / 1000 + life_ms), string.sub(key, #total_key + 2))\n\
  call('PEXPIRE', index_key, string.format('%.0f', math.min(315360000000, math.max(86400000, 4 * life_ms))))\n\
end\n\
local window_life_ms = window_us / 500 + 1000\n\
local LARGEST_LIMIT = 2251799813685248\n\
local function micros(tokens)\n\
  return math.min(LARGEST_LIMIT, math.floor(tokens * 1000000 + 0.5))\n\
end\n\
local window_s = window_us / 1000000\n\
local limit = micros(rate * window_s)\n\
local subject_limit = subject_rate >= 0 and micros(subject_rate * window_s)\n\
local opened, order = {}, {}\n\
local function window_of(key)\n\
  local w = opened[key]\n\
  if not w then\n\
    w = open_window(key)\n\
    opened[key] = w\n\
    order[#order + 1] = w\n\
  end\n\
  return w\n\
end\n\
local probe_base, probed\n\
local slack = 0.0000005 + (clock > 0 and clock or 0) * 4.4408920985006262e-16\n\
if probing then\n\
  probe_base = clock - capacity\n\
  if floor > probe_base and floor <= clock + slack then probe_base = floor end\n\
  local mark = call('GET', KEYS[3])\n\
  if mark then\n\
    mark = tonumber(mark)\n\
    probe_base = mark and mark <= clock + slack and math.max(mark, probe_base) or clock\n\
  end\n\
end\n\
for i = 1, takes do\n\
  local arg, key = ARGV[FIRST + i], KEYS[before_subjects + i]\n\
  local cost, reserve = 1, reserve_default\n\
  if arg ~= '1' then\n\
    cost = costs and costs[arg]\n\
    if not cost then\n\
      costs = costs or {}\n\
      reserves = reserves or {}\n\
      local digits, priority = string.match(arg, '^(%d+%.?%d*) ?(%l*)$')\n\
      cost = -1\n\
      reserves[arg] = 0\n\
      if digits and #digits <= 16 and #arg == #digits + #priority + (priority == '' and 0 or 1)\n\
        and (priority == '' or priority == 'critical' or priority == 'sheddable') then\n\
        if digits == '0' or string.find(digits, '^[1-9]%d*$')\n\
          or (string.find(digits, '^%d+%.%d%d?%d?%d?%d?%d?$') and not string.find(digits, '^0%d')\n\
            and tonumber(digits) > 0) then\n\
          cost = tonumber(digits)\n\
        end\n\
        if priority == '' then\n\
          reserves[arg] = reserve_default\n\
        elseif priority == 'sheddable' then\n\
          reserves[arg] = reserve_sheddable\n\
        end\n\
      end\n\
      costs[arg] = cost\n\
    end\n\
    reserve = reserves[arg]\n\
  end\n\
  local rule = rich and mode > 0 and key ~= total_key and rule_of(i) or nil\n\
  local kind, own_limit, shared = rule and rule.kind, subject_limit, false\n\
  if rule and rule.rate then own_limit = micros(rule.rate * window_s) end\n\
  local exempt = kind == 'exempt' and not probing\n\
  local reason, retry, left = 0, 0, limit\n\
  if cost < 0 then\n\
    reason, retry, left = 8, -1, 0\n\
  elseif mode == 0 then\n\
    reason = 1\n\
  elseif kind == 'block' then\n\
    reason, left = 9, 0\n\
    retry = rule.ends == -1 and -1 or whole_ms(rule.ends * 1000 - now)\n\
  elseif open then\n\
    reason, left = 4, 0\n\
    retry = open_until < 0 and -1 or whole_ms(open_until - now)\n\
  else\n\
    local need = cost * 1000000 < LARGEST_LIMIT and micros(cost) or math.huge\n\
    local total = window_of(total_key)\n\
    local own = own_limit and kind ~= 'exempt' and key ~= total_key and window_of(key)\n\
    if own and most and not rule and own.fresh and not own.came and not room_for(window_life_ms, cost > 0) then\n\
      own, shared = window_of(shared_key), true\n\
    end\n\
    local keep = capacity > 0 and micros(limit / 1000000 * reserve / capacity) or 0\n\
    if probing then\n\
      left = math.max(0, math.floor((clock - probe_base + slack) * 1000000))\n\
    else\n\
      left = limit - total.used\n\
    end\n\
    if cost > 0 then\n\
      total.touched = true\n\
      if own then own.touched = true end\n\
    end\n\
    if not exempt and need > (probing and micros(full) or limit) or own and need > own_limit then\n\
      reason, retry = not probing and limit == 0 and 2 or own and own_limit == 0 and 3 or 7, -1\n\
    else\n\
      local us = 0\n\
      if probing and cost - (clock - probe_base) > slack then\n\
        reason = 5\n\
        us = rate > 0 and cost <= capacity and (cost - (clock - probe_base)) / rate * 1000000\n\
      elseif not probing and not exempt and need + keep > left then\n\
        reason = need <= left and 6 or 2\n\
        us = wait_us(total, need + keep - left)\n\
      end\n\
      if own and need > own_limit - own.used then\n\
        local more = wait_us(own, need - (own_limit - own.used))\n\
        reason, us = 3, us and more and math.max(us, more)\n\
      end\n\
      if reason > 0 then retry = whole_ms(us) end\n\
    end\n\
    if reason == 0 and cost > 0 then\n\
      charge(total, exempt and math.max(0, math.min(need, limit - total.used)) or need)\n\
      if own then charge(own, need) end\n\
      if own and most and not rule and own.fresh and not shared and not own.came then\n\
        own.came = true\n\
        came(key, window_life_ms)\n\
      end\n\
      if probing then probe_base, probed = probe_base + cost, true end\n\
      left = left - need\n\
    end\n\
    if own then left = math.min(left, own_limit - own.used) end\n\
  end\n\
  if exempt and reason == 0 then reason = 10 end\n\
  local at = 3 * i + 1\n\
  reply[at], reply[at + 1] = reason + (shared and 32 or 0), math.max(0, math.floor(left / 1000000))\n\
  reply[at + 2] = retry\n\
end\n\
for i = 1, #order do\n\
  local w = order[i]\n\
  if w.changed or w.ahead and w.touched then save(w) end\n\
end\n\
if probed then call('SET', KEYS[3], string.format('%.17g', probe_base), 'PX', ttl) end\n\
return reply\n\
",
};

/** Keys of `draw`, in order. */
export type DrawKeys = [params: string, ...bucket: string[]];
/** Arguments of `draw`, in order. */
export type DrawArgs = [nowUs: ScriptArg, epoch: ScriptArg, ...draw: ScriptArg[]];
/**
 * takes tokens in blocks for a process that decides by itself for a moment, and takes back what it did not use. Of each bucket at most half of what is left is given, above the reserve of default takes: who asks next finds some.
 * Returns [status, nowUs, inForce, then tokens given, whole tokens left, for each]; status 0, or 1: nothing is drawn in blocks now (no params, shadow, off, open, half-open, rules for subjects, another algorithm), nor taken back. O(n) in the buckets.
 */
export const drawScript: Script<DrawKeys, DrawArgs> = {
  name: 'draw',
  sha: 'cd34988551c49f3f002c96b5398754cd67e51e02',
  lua: "-- flyball draw\n\
local LARGEST = 9007199254740992\n\
local LEASE_MAX_MS = 315360000000\n\
local function finite(text)\n\
  if type(text) ~= 'string' or #text > 32 then return nil end\n\
  if not string.find(text, '^%-?%d+%.?%d*$')\n\
    and not string.find(text, '^%-?%d+%.?%d*[eE][%+%-]?%d+$') then\n\
    return nil\n\
  end\n\
  local n = tonumber(text)\n\
  if not n or n ~= n or n == math.huge or n == -math.huge then return nil end\n\
  return n\n\
end\n\
local function within(text, least, most)\n\
  local n = finite(text)\n\
  if n and n >= least and n <= most then return n end\n\
end\n\
local function count(text)\n\
  local n = within(text, 0, LARGEST)\n\
  if n and n % 1 == 0 then return n end\n\
end\n\
local function exact(n)\n\
  return string.format('%.17g', n)\n\
end\n\
local function now_us(given)\n\
  if given ~= '' then return within(given, -LARGEST, LARGEST) end\n\
  local time = redis.call('TIME')\n\
  return time[1] * 1000000 + time[2]\n\
end\n\
local MODES = { off = 0, shadow = 1, recommend = 2, auto = 3 }\n\
local STATES = { closed = 0, open = 1, ['half-open'] = 2, recovering = 3 }\n\
local TEXT = {\n\
  mode = true, state = true, heldBy = true, policyHash = true, onRedisError = true, subject = true,\n\
  algorithm = true, terms = true, rollout = true, subjectTerms = true, windows = true,\n\
  byPerson = true, canary = true,\n\
}\n\
local NEEDED = {\n\
  'v', 'mode', 'state', 'epoch', 'revision', 'generation', 'rate', 'capacity', 'inFlightMax', 'subjectRate',\n\
  'subjectCapacity', 'subjectFollow', 'policyRate', 'minRate', 'maxRate', 'minCapacity', 'maxCapacity',\n\
  'minInFlight', 'maxInFlight', 'accrued', 'changedAt', 'subjectAccrued', 'floor', 'subjectFloor',\n\
  'openUntil', 'openForMs', 'probeRate', 'validUntil', 'lostAfterMs', 'lostOverMs', 'safeRate',\n\
  'safeInFlight', 'reserveDefault', 'reserveSheddable', 'frozenUntil', 'pinnedUntil', 'holdBreaker',\n\
  'heldBy', 'fence', 'policyHash',\n\
}\n\
local LATER_NUMBERS = { windowMs = true, cells = true, subjectRules = true }\n\
local COUNTS = { 'epoch', 'revision', 'generation', 'fence' }\n\
local NOT_BELOW_ZERO = {\n\
  'rate', 'capacity', 'inFlightMax', 'subjectCapacity', 'policyRate', 'probeRate', 'safeRate', 'safeInFlight',\n\
  'lostAfterMs', 'lostOverMs',\n\
}\n\
local function readable(p)\n\
  for i = 1, #NEEDED do\n\
    if p[NEEDED[i]] == nil then return false end\n\
  end\n\
  if not MODES[p.mode] or not STATES[p.state] then return false end\n\
  for i = 1, #COUNTS do\n\
    local n = p[COUNTS[i]]\n\
    if n < 0 or n > 9007199254740992 or n % 1 ~= 0 then return false end\n\
  end\n\
  for i = 1, #NOT_BELOW_ZERO do\n\
    if p[NOT_BELOW_ZERO[i]] < 0 then return false end\n\
  end\n\
  return true\n\
end\n\
local function read_params(key)\n\
  local flat = redis.call('HGETALL', key)\n\
  if #flat == 0 then return nil end\n\
  local p = {}\n\
  for i = 1, #flat, 2 do\n\
    local field, value = flat[i], flat[i + 1]\n\
    if TEXT[field] then\n\
      p[field] = value\n\
    elseif field ~= 'hot' then\n\
      value = not string.find(value, '[^%d%.eE%+%-]') and tonumber(value)\n\
      if value and value - value == 0 then\n\
        p[field] = value\n\
      elseif LATER_NUMBERS[field] then\n\
        return nil\n\
      end\n\
    end\n\
  end\n\
  for _, field in ipairs({ 'keptMs', 'subjectKeptMs' }) do\n\
    if not p[field] or p[field] < 0 or p[field] % 1 ~= 0 then p[field] = 315360000000 end\n\
  end\n\
  return readable(p) and p or nil\n\
end\n\
local NEVER = 9007199254740992\n\
local function glide_start(p)\n\
  if p.pinnedUntil == -1 or p.frozenUntil == -1 then return NEVER end\n\
  local start = math.max(p.validUntil, p.pinnedUntil, p.frozenUntil)\n\
  if p.state == 'open' then\n\
    if p.openUntil == -1 then return NEVER end\n\
    start = math.max(start, p.openUntil)\n\
  end\n\
  return (start + p.lostAfterMs) * 1000\n\
end\n\
local function is_open(p, now)\n\
  if p.state ~= 'open' then return false end\n\
  if p.openUntil == -1 then return true end\n\
  local left = p.openUntil * 1000 - now\n\
  return left > 0 and left <= p.openForMs * 1000\n\
end\n\
local function paid(base, safe, from, to, opens, glide, over)\n\
  local sum = 0\n\
  local start = math.max(from, opens)\n\
  local stop = math.min(to, glide)\n\
  if stop > start then sum = base * (stop - start) end\n\
  local finish = glide + over\n\
  local left = math.max(from, glide)\n\
  local right = math.min(to, finish)\n\
  if right > left then\n\
    local first = base + (safe - base) * ((left - glide) / over)\n\
    local last = base + (safe - base) * ((right - glide) / over)\n\
    sum = sum + (first + last) / 2 * (right - left)\n\
  end\n\
  local after = math.max(from, finish)\n\
  if to > after then sum = sum + safe * (to - after) end\n\
  return sum / 1000000\n\
end\n\
local function effective(p, now)\n\
  local open = is_open(p, now)\n\
  local probing = not open and (p.state == 'open' or p.state == 'half-open')\n\
  local glide = glide_start(p)\n\
  local over = p.lostOverMs * 1000\n\
  local gliding = now >= glide\n\
  local share = 0\n\
  if gliding then share = now >= glide + over and 1 or (now - glide) / over end\n\
  local stopped = p.state == 'open' or p.state == 'half-open'\n\
  local base = stopped and p.probeRate or p.rate\n\
  local rate = open and 0 or base + (p.safeRate - base) * share\n\
  local capacity = p.capacity\n\
  if probing then\n\
    local narrow = math.min(capacity, math.max(1, p.probeRate))\n\
    capacity = narrow + (capacity - narrow) * share\n\
  end\n\
  local cap = p.inFlightMax\n\
  if cap > 0 and p.safeInFlight > 0 then\n\
    cap = math.floor(cap + (p.safeInFlight - cap) * share + 0.5)\n\
  end\n\
  local scale, safe_scale = 1, 1\n\
  if p.subjectFollow == 1 then\n\
    scale = p.rate / p.policyRate\n\
    safe_scale = p.safeRate / p.policyRate\n\
  end\n\
  local none = p.subjectRate < 0\n\
  local subject_base = none and 0 or p.subjectRate * scale\n\
  local subject_safe = none and 0 or p.subjectRate * safe_scale\n\
  local subject_rate = subject_base + (subject_safe - subject_base) * share\n\
  local opens = 0\n\
  if open then\n\
    opens = p.openUntil == -1 and NEVER or p.openUntil * 1000\n\
  elseif p.state == 'open' and p.openUntil * 1000 <= now then\n\
    opens = p.openUntil * 1000\n\
  end\n\
  local tokens, subject_tokens\n\
  if now < p.changedAt then\n\
    tokens = p.accrued - rate * (p.changedAt - now) / 1000000\n\
    subject_tokens = p.subjectAccrued - subject_rate * (p.changedAt - now) / 1000000\n\
  else\n\
    tokens = p.accrued + paid(base, p.safeRate, p.changedAt, now, opens, glide, over)\n\
    subject_tokens = p.subjectAccrued\n\
      + paid(subject_base, subject_safe, p.changedAt, now, 0, glide, over)\n\
  end\n\
  local state = p.state\n\
  if probing then state = gliding and 'recovering' or 'half-open' end\n\
  return {\n\
    state = state,\n\
    gliding = gliding,\n\
    rate = rate,\n\
    capacity = capacity,\n\
    inFlightMax = cap,\n\
    subjectRate = none and -1 or subject_rate,\n\
    subjectCapacity = p.subjectCapacity,\n\
    tokens = tokens,\n\
    subjectTokens = subject_tokens,\n\
    opens = opens,\n\
    glide = glide,\n\
  }\n\
end\n\
local TTL_MARGIN_MS = 1000\n\
local TTL_MAX_MS = 315360000000\n\
local function lowest_above_zero(...)\n\
  local lowest = math.huge\n\
  for _, rate in ipairs({ ... }) do\n\
    if rate > 0 and rate < lowest then lowest = rate end\n\
  end\n\
  return lowest\n\
end\n\
local function ttl_ms(capacity, rate)\n\
  if not (rate > 0) or rate == math.huge then return TTL_MAX_MS end\n\
  return math.min(TTL_MAX_MS, math.ceil(capacity / rate * 1000) + TTL_MARGIN_MS)\n\
end\n\
local function bucket_ttl_ms(p)\n\
  return ttl_ms(\n\
    math.max(p.capacity, p.maxCapacity),\n\
    lowest_above_zero(p.minRate, p.probeRate, p.safeRate, p.rate)\n\
  )\n\
end\n\
local function subject_ttl_ms(p)\n\
  if p.subjectRate < 0 then return 0 end\n\
  local rate = p.subjectRate\n\
  if p.subjectFollow == 1 then\n\
    rate = rate * lowest_above_zero(p.minRate, p.safeRate, p.rate) / p.policyRate\n\
  end\n\
  return ttl_ms(p.subjectCapacity, rate)\n\
end\n\
local function kept_ms(kept, needed)\n\
  if needed <= kept and kept <= 4 * needed then return kept, false end\n\
  return math.min(TTL_MAX_MS, 2 * needed), needed > kept\n\
end\n\
local function in_force_text(p, e)\n\
  return string.format(\n\
    '1 %.0f %.0f %.0f %s %s %d %.17g %.17g %.17g %.17g %.17g',\n\
    p.epoch, p.revision, p.generation, p.mode, e.state, e.gliding and 1 or 0,\n\
    e.rate, e.capacity, e.inFlightMax, e.subjectRate, e.subjectCapacity\n\
  )\n\
end\n\
local function view_of(p, now)\n\
  local e = effective(p, now)\n\
  local untl = e.glide\n\
  if e.state == 'open' then untl = math.min(untl, e.opens) end\n\
  local since = p.changedAt\n\
  if e.state ~= 'open' then since = math.max(since, e.opens) end\n\
  local half_open = e.state == 'half-open'\n\
  return {\n\
    code = MODES[p.mode] + 4 * STATES[e.state] + 16 * (p.subjectRules or 0),\n\
    from = since,\n\
    untl = e.gliding and 0 or untl,\n\
    since = since,\n\
    accrued = p.accrued,\n\
    rate = e.rate,\n\
    capacity = e.capacity,\n\
    fullCapacity = p.capacity,\n\
    floor = p.floor,\n\
    reserveDefault = half_open and 0 or p.reserveDefault * e.capacity,\n\
    reserveSheddable = half_open and 0 or p.reserveSheddable * e.capacity,\n\
    ttlMs = p.keptMs,\n\
    subjectSince = p.changedAt,\n\
    subjectAccrued = p.subjectAccrued,\n\
    subjectRate = e.subjectRate,\n\
    subjectLowest = p.subjectFollow == 1 and math.min(e.subjectRate, p.subjectRate * p.rate / p.policyRate)\n\
      or e.subjectRate,\n\
    subjectCapacity = e.subjectCapacity,\n\
    subjectFloor = p.subjectFloor,\n\
    subjectTtlMs = p.subjectKeptMs,\n\
    openUntil = p.openUntil * 1000,\n\
    probeRate = p.probeRate,\n\
    tokens = e.tokens,\n\
    subjectTokens = e.subjectTokens,\n\
    text = in_force_text(p, e),\n\
  }\n\
end\n\
local call = redis.call\n\
local draws = #KEYS - 1\n\
if draws < 1 or draws > 512 or #ARGV ~= draws + 2 then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID one argument for each bucket, at most 512')\n\
end\n\
local now, epoch = now_us(ARGV[1]), count(ARGV[2])\n\
if not now or not epoch then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID nowUs is µs, or empty; epoch is a count')\n\
end\n\
local wants, backs = {}, {}\n\
for i = 1, draws do\n\
  local want, back = string.match(ARGV[2 + i], '^(%d+) (%d+)$')\n\
  wants[i], backs[i] = count(want), count(back)\n\
  if not wants[i] or not backs[i] then\n\
    return redis.error_reply('FLYBALL_E_CALL_INVALID a draw is `<want> <back>`: ' .. string.sub(ARGV[2 + i], 1, 40))\n\
  end\n\
end\n\
local p = read_params(KEYS[1])\n\
if not p then return { 1, now, '' } end\n\
local v = view_of(p, now)\n\
local reply = { 0, now, v.text }\n\
local mode, state = v.code % 4, math.floor(v.code / 4)\n\
if mode < 2 or state == STATES['open'] or state == STATES['half-open'] or state > 3\n\
  or p.algorithm and p.algorithm ~= '' and p.algorithm ~= 'token-bucket' then\n\
  reply[1] = 1\n\
  return reply\n\
end\n\
for i = 1, draws do\n\
  local key, total = KEYS[1 + i], i == 1\n\
  local clock = total and v.tokens or v.subjectTokens\n\
  local most = total and v.capacity or v.subjectCapacity\n\
  local floor = total and v.floor or v.subjectFloor\n\
  local life = total and v.ttlMs or v.subjectTtlMs\n\
  local kept = total and v.reserveDefault or 0\n\
  local slack = 0.0000005 + (clock > 0 and clock or 0) * 4.4408920985006262e-16\n\
  local given, left = 0, 0\n\
  if total or v.subjectRate >= 0 then\n\
    local base = clock - most\n\
    if floor > base and floor <= clock + slack then base = floor end\n\
    local mark = call('GET', key)\n\
    local moved = false\n\
    if mark then\n\
      mark = tonumber(mark)\n\
      if not mark or not (mark <= clock + slack) then\n\
        mark, moved = clock, true\n\
      elseif backs[i] > 0 and p.epoch == epoch then\n\
        mark = mark - backs[i]\n\
        moved = true\n\
      end\n\
      if mark > base then base = mark end\n\
    end\n\
    left = clock - base\n\
    given = math.max(0, math.min(wants[i], math.floor((left - kept) / 2 + slack)))\n\
    base, left = base + given, left - given\n\
    if moved or given > 0 then call('SET', key, string.format('%.17g', base), 'PX', life) end\n\
  end\n\
  reply[2 + 2 * i], reply[3 + 2 * i] = given, math.max(0, math.floor(left + slack))\n\
end\n\
return reply\n\
",
};

/** Keys of `effective`, in order. */
export type EffectiveKeys = [params: string];
/** Arguments of `effective`, in order. */
export type EffectiveArgs = [nowUs: ScriptArg];
/**
 * reads what is in force now, after open time and glide, without changing anything.
 * Returns [nowUs, inForce, tokens, subjectTokens], or [nowUs] when the params are missing. O(1).
 */
export const effectiveScript: Script<EffectiveKeys, EffectiveArgs> = {
  name: 'effective',
  sha: 'fdc5fc0666ea6ada3123be63126ea7a4493ec1b0',
  lua: "-- flyball effective\n\
local LARGEST = 9007199254740992\n\
local LEASE_MAX_MS = 315360000000\n\
local function finite(text)\n\
  if type(text) ~= 'string' or #text > 32 then return nil end\n\
  if not string.find(text, '^%-?%d+%.?%d*$')\n\
    and not string.find(text, '^%-?%d+%.?%d*[eE][%+%-]?%d+$') then\n\
    return nil\n\
  end\n\
  local n = tonumber(text)\n\
  if not n or n ~= n or n == math.huge or n == -math.huge then return nil end\n\
  return n\n\
end\n\
local function within(text, least, most)\n\
  local n = finite(text)\n\
  if n and n >= least and n <= most then return n end\n\
end\n\
local function count(text)\n\
  local n = within(text, 0, LARGEST)\n\
  if n and n % 1 == 0 then return n end\n\
end\n\
local function exact(n)\n\
  return string.format('%.17g', n)\n\
end\n\
local function now_us(given)\n\
  if given ~= '' then return within(given, -LARGEST, LARGEST) end\n\
  local time = redis.call('TIME')\n\
  return time[1] * 1000000 + time[2]\n\
end\n\
local MODES = { off = 0, shadow = 1, recommend = 2, auto = 3 }\n\
local STATES = { closed = 0, open = 1, ['half-open'] = 2, recovering = 3 }\n\
local TEXT = {\n\
  mode = true, state = true, heldBy = true, policyHash = true, onRedisError = true, subject = true,\n\
  algorithm = true, terms = true, rollout = true, subjectTerms = true, windows = true,\n\
  byPerson = true, canary = true,\n\
}\n\
local NEEDED = {\n\
  'v', 'mode', 'state', 'epoch', 'revision', 'generation', 'rate', 'capacity', 'inFlightMax', 'subjectRate',\n\
  'subjectCapacity', 'subjectFollow', 'policyRate', 'minRate', 'maxRate', 'minCapacity', 'maxCapacity',\n\
  'minInFlight', 'maxInFlight', 'accrued', 'changedAt', 'subjectAccrued', 'floor', 'subjectFloor',\n\
  'openUntil', 'openForMs', 'probeRate', 'validUntil', 'lostAfterMs', 'lostOverMs', 'safeRate',\n\
  'safeInFlight', 'reserveDefault', 'reserveSheddable', 'frozenUntil', 'pinnedUntil', 'holdBreaker',\n\
  'heldBy', 'fence', 'policyHash',\n\
}\n\
local LATER_NUMBERS = { windowMs = true, cells = true, subjectRules = true }\n\
local COUNTS = { 'epoch', 'revision', 'generation', 'fence' }\n\
local NOT_BELOW_ZERO = {\n\
  'rate', 'capacity', 'inFlightMax', 'subjectCapacity', 'policyRate', 'probeRate', 'safeRate', 'safeInFlight',\n\
  'lostAfterMs', 'lostOverMs',\n\
}\n\
local function readable(p)\n\
  for i = 1, #NEEDED do\n\
    if p[NEEDED[i]] == nil then return false end\n\
  end\n\
  if not MODES[p.mode] or not STATES[p.state] then return false end\n\
  for i = 1, #COUNTS do\n\
    local n = p[COUNTS[i]]\n\
    if n < 0 or n > 9007199254740992 or n % 1 ~= 0 then return false end\n\
  end\n\
  for i = 1, #NOT_BELOW_ZERO do\n\
    if p[NOT_BELOW_ZERO[i]] < 0 then return false end\n\
  end\n\
  return true\n\
end\n\
local function read_params(key)\n\
  local flat = redis.call('HGETALL', key)\n\
  if #flat == 0 then return nil end\n\
  local p = {}\n\
  for i = 1, #flat, 2 do\n\
    local field, value = flat[i], flat[i + 1]\n\
    if TEXT[field] then\n\
      p[field] = value\n\
    elseif field ~= 'hot' then\n\
      value = not string.find(value, '[^%d%.eE%+%-]') and tonumber(value)\n\
      if value and value - value == 0 then\n\
        p[field] = value\n\
      elseif LATER_NUMBERS[field] then\n\
        return nil\n\
      end\n\
    end\n\
  end\n\
  for _, field in ipairs({ 'keptMs', 'subjectKeptMs' }) do\n\
    if not p[field] or p[field] < 0 or p[field] % 1 ~= 0 then p[field] = 315360000000 end\n\
  end\n\
  return readable(p) and p or nil\n\
end\n\
local NEVER = 9007199254740992\n\
local function glide_start(p)\n\
  if p.pinnedUntil == -1 or p.frozenUntil == -1 then return NEVER end\n\
  local start = math.max(p.validUntil, p.pinnedUntil, p.frozenUntil)\n\
  if p.state == 'open' then\n\
    if p.openUntil == -1 then return NEVER end\n\
    start = math.max(start, p.openUntil)\n\
  end\n\
  return (start + p.lostAfterMs) * 1000\n\
end\n\
local function is_open(p, now)\n\
  if p.state ~= 'open' then return false end\n\
  if p.openUntil == -1 then return true end\n\
  local left = p.openUntil * 1000 - now\n\
  return left > 0 and left <= p.openForMs * 1000\n\
end\n\
local function paid(base, safe, from, to, opens, glide, over)\n\
  local sum = 0\n\
  local start = math.max(from, opens)\n\
  local stop = math.min(to, glide)\n\
  if stop > start then sum = base * (stop - start) end\n\
  local finish = glide + over\n\
  local left = math.max(from, glide)\n\
  local right = math.min(to, finish)\n\
  if right > left then\n\
    local first = base + (safe - base) * ((left - glide) / over)\n\
    local last = base + (safe - base) * ((right - glide) / over)\n\
    sum = sum + (first + last) / 2 * (right - left)\n\
  end\n\
  local after = math.max(from, finish)\n\
  if to > after then sum = sum + safe * (to - after) end\n\
  return sum / 1000000\n\
end\n\
local function effective(p, now)\n\
  local open = is_open(p, now)\n\
  local probing = not open and (p.state == 'open' or p.state == 'half-open')\n\
  local glide = glide_start(p)\n\
  local over = p.lostOverMs * 1000\n\
  local gliding = now >= glide\n\
  local share = 0\n\
  if gliding then share = now >= glide + over and 1 or (now - glide) / over end\n\
  local stopped = p.state == 'open' or p.state == 'half-open'\n\
  local base = stopped and p.probeRate or p.rate\n\
  local rate = open and 0 or base + (p.safeRate - base) * share\n\
  local capacity = p.capacity\n\
  if probing then\n\
    local narrow = math.min(capacity, math.max(1, p.probeRate))\n\
    capacity = narrow + (capacity - narrow) * share\n\
  end\n\
  local cap = p.inFlightMax\n\
  if cap > 0 and p.safeInFlight > 0 then\n\
    cap = math.floor(cap + (p.safeInFlight - cap) * share + 0.5)\n\
  end\n\
  local scale, safe_scale = 1, 1\n\
  if p.subjectFollow == 1 then\n\
    scale = p.rate / p.policyRate\n\
    safe_scale = p.safeRate / p.policyRate\n\
  end\n\
  local none = p.subjectRate < 0\n\
  local subject_base = none and 0 or p.subjectRate * scale\n\
  local subject_safe = none and 0 or p.subjectRate * safe_scale\n\
  local subject_rate = subject_base + (subject_safe - subject_base) * share\n\
  local opens = 0\n\
  if open then\n\
    opens = p.openUntil == -1 and NEVER or p.openUntil * 1000\n\
  elseif p.state == 'open' and p.openUntil * 1000 <= now then\n\
    opens = p.openUntil * 1000\n\
  end\n\
  local tokens, subject_tokens\n\
  if now < p.changedAt then\n\
    tokens = p.accrued - rate * (p.changedAt - now) / 1000000\n\
    subject_tokens = p.subjectAccrued - subject_rate * (p.changedAt - now) / 1000000\n\
  else\n\
    tokens = p.accrued + paid(base, p.safeRate, p.changedAt, now, opens, glide, over)\n\
    subject_tokens = p.subjectAccrued\n\
      + paid(subject_base, subject_safe, p.changedAt, now, 0, glide, over)\n\
  end\n\
  local state = p.state\n\
  if probing then state = gliding and 'recovering' or 'half-open' end\n\
  return {\n\
    state = state,\n\
    gliding = gliding,\n\
    rate = rate,\n\
    capacity = capacity,\n\
    inFlightMax = cap,\n\
    subjectRate = none and -1 or subject_rate,\n\
    subjectCapacity = p.subjectCapacity,\n\
    tokens = tokens,\n\
    subjectTokens = subject_tokens,\n\
    opens = opens,\n\
    glide = glide,\n\
  }\n\
end\n\
local TTL_MARGIN_MS = 1000\n\
local TTL_MAX_MS = 315360000000\n\
local function lowest_above_zero(...)\n\
  local lowest = math.huge\n\
  for _, rate in ipairs({ ... }) do\n\
    if rate > 0 and rate < lowest then lowest = rate end\n\
  end\n\
  return lowest\n\
end\n\
local function ttl_ms(capacity, rate)\n\
  if not (rate > 0) or rate == math.huge then return TTL_MAX_MS end\n\
  return math.min(TTL_MAX_MS, math.ceil(capacity / rate * 1000) + TTL_MARGIN_MS)\n\
end\n\
local function bucket_ttl_ms(p)\n\
  return ttl_ms(\n\
    math.max(p.capacity, p.maxCapacity),\n\
    lowest_above_zero(p.minRate, p.probeRate, p.safeRate, p.rate)\n\
  )\n\
end\n\
local function subject_ttl_ms(p)\n\
  if p.subjectRate < 0 then return 0 end\n\
  local rate = p.subjectRate\n\
  if p.subjectFollow == 1 then\n\
    rate = rate * lowest_above_zero(p.minRate, p.safeRate, p.rate) / p.policyRate\n\
  end\n\
  return ttl_ms(p.subjectCapacity, rate)\n\
end\n\
local function kept_ms(kept, needed)\n\
  if needed <= kept and kept <= 4 * needed then return kept, false end\n\
  return math.min(TTL_MAX_MS, 2 * needed), needed > kept\n\
end\n\
local function in_force_text(p, e)\n\
  return string.format(\n\
    '1 %.0f %.0f %.0f %s %s %d %.17g %.17g %.17g %.17g %.17g',\n\
    p.epoch, p.revision, p.generation, p.mode, e.state, e.gliding and 1 or 0,\n\
    e.rate, e.capacity, e.inFlightMax, e.subjectRate, e.subjectCapacity\n\
  )\n\
end\n\
local function view_of(p, now)\n\
  local e = effective(p, now)\n\
  local untl = e.glide\n\
  if e.state == 'open' then untl = math.min(untl, e.opens) end\n\
  local since = p.changedAt\n\
  if e.state ~= 'open' then since = math.max(since, e.opens) end\n\
  local half_open = e.state == 'half-open'\n\
  return {\n\
    code = MODES[p.mode] + 4 * STATES[e.state] + 16 * (p.subjectRules or 0),\n\
    from = since,\n\
    untl = e.gliding and 0 or untl,\n\
    since = since,\n\
    accrued = p.accrued,\n\
    rate = e.rate,\n\
    capacity = e.capacity,\n\
    fullCapacity = p.capacity,\n\
    floor = p.floor,\n\
    reserveDefault = half_open and 0 or p.reserveDefault * e.capacity,\n\
    reserveSheddable = half_open and 0 or p.reserveSheddable * e.capacity,\n\
    ttlMs = p.keptMs,\n\
    subjectSince = p.changedAt,\n\
    subjectAccrued = p.subjectAccrued,\n\
    subjectRate = e.subjectRate,\n\
    subjectLowest = p.subjectFollow == 1 and math.min(e.subjectRate, p.subjectRate * p.rate / p.policyRate)\n\
      or e.subjectRate,\n\
    subjectCapacity = e.subjectCapacity,\n\
    subjectFloor = p.subjectFloor,\n\
    subjectTtlMs = p.subjectKeptMs,\n\
    openUntil = p.openUntil * 1000,\n\
    probeRate = p.probeRate,\n\
    tokens = e.tokens,\n\
    subjectTokens = e.subjectTokens,\n\
    text = in_force_text(p, e),\n\
  }\n\
end\n\
local now = now_us(ARGV[1])\n\
if not now then return redis.error_reply('FLYBALL_E_CALL_INVALID nowUs is a number') end\n\
local p = read_params(KEYS[1])\n\
if not p then return { string.format('%.0f', now) } end\n\
local v = view_of(p, now)\n\
return {\n\
  string.format('%.0f', now), v.text,\n\
  string.format('%.17g', v.tokens), string.format('%.17g', v.subjectTokens),\n\
}\n\
",
};

/** Keys of `heartbeat`, in order. */
export type HeartbeatKeys = [params: string, lease: string, state: string];
/** Arguments of `heartbeat`, in order. */
export type HeartbeatArgs = [nowUs: ScriptArg, owner: ScriptArg, token: ScriptArg, leaseMs: ScriptArg, checkpoint: ScriptArg];
/**
 * the lease holder says that it lives: what is in force stays valid for another lease. No revision and no audit entry. Refused once the limits glide, or the clock was set back: then actuate.
 * Returns ['ok', nowUs, validUntil, epoch, revision] or ['refused', 'lease' | 'gliding' | 'clock' | 'missing', nowUs]. O(1).
 */
export const heartbeatScript: Script<HeartbeatKeys, HeartbeatArgs> = {
  name: 'heartbeat',
  sha: 'd27bfee6c4217fa325d941604fb69f41308b6be9',
  lua: "-- flyball heartbeat\n\
local LARGEST = 9007199254740992\n\
local LEASE_MAX_MS = 315360000000\n\
local function finite(text)\n\
  if type(text) ~= 'string' or #text > 32 then return nil end\n\
  if not string.find(text, '^%-?%d+%.?%d*$')\n\
    and not string.find(text, '^%-?%d+%.?%d*[eE][%+%-]?%d+$') then\n\
    return nil\n\
  end\n\
  local n = tonumber(text)\n\
  if not n or n ~= n or n == math.huge or n == -math.huge then return nil end\n\
  return n\n\
end\n\
local function within(text, least, most)\n\
  local n = finite(text)\n\
  if n and n >= least and n <= most then return n end\n\
end\n\
local function count(text)\n\
  local n = within(text, 0, LARGEST)\n\
  if n and n % 1 == 0 then return n end\n\
end\n\
local function exact(n)\n\
  return string.format('%.17g', n)\n\
end\n\
local function now_us(given)\n\
  if given ~= '' then return within(given, -LARGEST, LARGEST) end\n\
  local time = redis.call('TIME')\n\
  return time[1] * 1000000 + time[2]\n\
end\n\
local MODES = { off = 0, shadow = 1, recommend = 2, auto = 3 }\n\
local STATES = { closed = 0, open = 1, ['half-open'] = 2, recovering = 3 }\n\
local TEXT = {\n\
  mode = true, state = true, heldBy = true, policyHash = true, onRedisError = true, subject = true,\n\
  algorithm = true, terms = true, rollout = true, subjectTerms = true, windows = true,\n\
  byPerson = true, canary = true,\n\
}\n\
local NEEDED = {\n\
  'v', 'mode', 'state', 'epoch', 'revision', 'generation', 'rate', 'capacity', 'inFlightMax', 'subjectRate',\n\
  'subjectCapacity', 'subjectFollow', 'policyRate', 'minRate', 'maxRate', 'minCapacity', 'maxCapacity',\n\
  'minInFlight', 'maxInFlight', 'accrued', 'changedAt', 'subjectAccrued', 'floor', 'subjectFloor',\n\
  'openUntil', 'openForMs', 'probeRate', 'validUntil', 'lostAfterMs', 'lostOverMs', 'safeRate',\n\
  'safeInFlight', 'reserveDefault', 'reserveSheddable', 'frozenUntil', 'pinnedUntil', 'holdBreaker',\n\
  'heldBy', 'fence', 'policyHash',\n\
}\n\
local LATER_NUMBERS = { windowMs = true, cells = true, subjectRules = true }\n\
local COUNTS = { 'epoch', 'revision', 'generation', 'fence' }\n\
local NOT_BELOW_ZERO = {\n\
  'rate', 'capacity', 'inFlightMax', 'subjectCapacity', 'policyRate', 'probeRate', 'safeRate', 'safeInFlight',\n\
  'lostAfterMs', 'lostOverMs',\n\
}\n\
local function readable(p)\n\
  for i = 1, #NEEDED do\n\
    if p[NEEDED[i]] == nil then return false end\n\
  end\n\
  if not MODES[p.mode] or not STATES[p.state] then return false end\n\
  for i = 1, #COUNTS do\n\
    local n = p[COUNTS[i]]\n\
    if n < 0 or n > 9007199254740992 or n % 1 ~= 0 then return false end\n\
  end\n\
  for i = 1, #NOT_BELOW_ZERO do\n\
    if p[NOT_BELOW_ZERO[i]] < 0 then return false end\n\
  end\n\
  return true\n\
end\n\
local function read_params(key)\n\
  local flat = redis.call('HGETALL', key)\n\
  if #flat == 0 then return nil end\n\
  local p = {}\n\
  for i = 1, #flat, 2 do\n\
    local field, value = flat[i], flat[i + 1]\n\
    if TEXT[field] then\n\
      p[field] = value\n\
    elseif field ~= 'hot' then\n\
      value = not string.find(value, '[^%d%.eE%+%-]') and tonumber(value)\n\
      if value and value - value == 0 then\n\
        p[field] = value\n\
      elseif LATER_NUMBERS[field] then\n\
        return nil\n\
      end\n\
    end\n\
  end\n\
  for _, field in ipairs({ 'keptMs', 'subjectKeptMs' }) do\n\
    if not p[field] or p[field] < 0 or p[field] % 1 ~= 0 then p[field] = 315360000000 end\n\
  end\n\
  return readable(p) and p or nil\n\
end\n\
local NEVER = 9007199254740992\n\
local function glide_start(p)\n\
  if p.pinnedUntil == -1 or p.frozenUntil == -1 then return NEVER end\n\
  local start = math.max(p.validUntil, p.pinnedUntil, p.frozenUntil)\n\
  if p.state == 'open' then\n\
    if p.openUntil == -1 then return NEVER end\n\
    start = math.max(start, p.openUntil)\n\
  end\n\
  return (start + p.lostAfterMs) * 1000\n\
end\n\
local function is_open(p, now)\n\
  if p.state ~= 'open' then return false end\n\
  if p.openUntil == -1 then return true end\n\
  local left = p.openUntil * 1000 - now\n\
  return left > 0 and left <= p.openForMs * 1000\n\
end\n\
local function paid(base, safe, from, to, opens, glide, over)\n\
  local sum = 0\n\
  local start = math.max(from, opens)\n\
  local stop = math.min(to, glide)\n\
  if stop > start then sum = base * (stop - start) end\n\
  local finish = glide + over\n\
  local left = math.max(from, glide)\n\
  local right = math.min(to, finish)\n\
  if right > left then\n\
    local first = base + (safe - base) * ((left - glide) / over)\n\
    local last = base + (safe - base) * ((right - glide) / over)\n\
    sum = sum + (first + last) / 2 * (right - left)\n\
  end\n\
  local after = math.max(from, finish)\n\
  if to > after then sum = sum + safe * (to - after) end\n\
  return sum / 1000000\n\
end\n\
local function effective(p, now)\n\
  local open = is_open(p, now)\n\
  local probing = not open and (p.state == 'open' or p.state == 'half-open')\n\
  local glide = glide_start(p)\n\
  local over = p.lostOverMs * 1000\n\
  local gliding = now >= glide\n\
  local share = 0\n\
  if gliding then share = now >= glide + over and 1 or (now - glide) / over end\n\
  local stopped = p.state == 'open' or p.state == 'half-open'\n\
  local base = stopped and p.probeRate or p.rate\n\
  local rate = open and 0 or base + (p.safeRate - base) * share\n\
  local capacity = p.capacity\n\
  if probing then\n\
    local narrow = math.min(capacity, math.max(1, p.probeRate))\n\
    capacity = narrow + (capacity - narrow) * share\n\
  end\n\
  local cap = p.inFlightMax\n\
  if cap > 0 and p.safeInFlight > 0 then\n\
    cap = math.floor(cap + (p.safeInFlight - cap) * share + 0.5)\n\
  end\n\
  local scale, safe_scale = 1, 1\n\
  if p.subjectFollow == 1 then\n\
    scale = p.rate / p.policyRate\n\
    safe_scale = p.safeRate / p.policyRate\n\
  end\n\
  local none = p.subjectRate < 0\n\
  local subject_base = none and 0 or p.subjectRate * scale\n\
  local subject_safe = none and 0 or p.subjectRate * safe_scale\n\
  local subject_rate = subject_base + (subject_safe - subject_base) * share\n\
  local opens = 0\n\
  if open then\n\
    opens = p.openUntil == -1 and NEVER or p.openUntil * 1000\n\
  elseif p.state == 'open' and p.openUntil * 1000 <= now then\n\
    opens = p.openUntil * 1000\n\
  end\n\
  local tokens, subject_tokens\n\
  if now < p.changedAt then\n\
    tokens = p.accrued - rate * (p.changedAt - now) / 1000000\n\
    subject_tokens = p.subjectAccrued - subject_rate * (p.changedAt - now) / 1000000\n\
  else\n\
    tokens = p.accrued + paid(base, p.safeRate, p.changedAt, now, opens, glide, over)\n\
    subject_tokens = p.subjectAccrued\n\
      + paid(subject_base, subject_safe, p.changedAt, now, 0, glide, over)\n\
  end\n\
  local state = p.state\n\
  if probing then state = gliding and 'recovering' or 'half-open' end\n\
  return {\n\
    state = state,\n\
    gliding = gliding,\n\
    rate = rate,\n\
    capacity = capacity,\n\
    inFlightMax = cap,\n\
    subjectRate = none and -1 or subject_rate,\n\
    subjectCapacity = p.subjectCapacity,\n\
    tokens = tokens,\n\
    subjectTokens = subject_tokens,\n\
    opens = opens,\n\
    glide = glide,\n\
  }\n\
end\n\
local TTL_MARGIN_MS = 1000\n\
local TTL_MAX_MS = 315360000000\n\
local function lowest_above_zero(...)\n\
  local lowest = math.huge\n\
  for _, rate in ipairs({ ... }) do\n\
    if rate > 0 and rate < lowest then lowest = rate end\n\
  end\n\
  return lowest\n\
end\n\
local function ttl_ms(capacity, rate)\n\
  if not (rate > 0) or rate == math.huge then return TTL_MAX_MS end\n\
  return math.min(TTL_MAX_MS, math.ceil(capacity / rate * 1000) + TTL_MARGIN_MS)\n\
end\n\
local function bucket_ttl_ms(p)\n\
  return ttl_ms(\n\
    math.max(p.capacity, p.maxCapacity),\n\
    lowest_above_zero(p.minRate, p.probeRate, p.safeRate, p.rate)\n\
  )\n\
end\n\
local function subject_ttl_ms(p)\n\
  if p.subjectRate < 0 then return 0 end\n\
  local rate = p.subjectRate\n\
  if p.subjectFollow == 1 then\n\
    rate = rate * lowest_above_zero(p.minRate, p.safeRate, p.rate) / p.policyRate\n\
  end\n\
  return ttl_ms(p.subjectCapacity, rate)\n\
end\n\
local function kept_ms(kept, needed)\n\
  if needed <= kept and kept <= 4 * needed then return kept, false end\n\
  return math.min(TTL_MAX_MS, 2 * needed), needed > kept\n\
end\n\
local function in_force_text(p, e)\n\
  return string.format(\n\
    '1 %.0f %.0f %.0f %s %s %d %.17g %.17g %.17g %.17g %.17g',\n\
    p.epoch, p.revision, p.generation, p.mode, e.state, e.gliding and 1 or 0,\n\
    e.rate, e.capacity, e.inFlightMax, e.subjectRate, e.subjectCapacity\n\
  )\n\
end\n\
local function view_of(p, now)\n\
  local e = effective(p, now)\n\
  local untl = e.glide\n\
  if e.state == 'open' then untl = math.min(untl, e.opens) end\n\
  local since = p.changedAt\n\
  if e.state ~= 'open' then since = math.max(since, e.opens) end\n\
  local half_open = e.state == 'half-open'\n\
  return {\n\
    code = MODES[p.mode] + 4 * STATES[e.state] + 16 * (p.subjectRules or 0),\n\
    from = since,\n\
    untl = e.gliding and 0 or untl,\n\
    since = since,\n\
    accrued = p.accrued,\n\
    rate = e.rate,\n\
    capacity = e.capacity,\n\
    fullCapacity = p.capacity,\n\
    floor = p.floor,\n\
    reserveDefault = half_open and 0 or p.reserveDefault * e.capacity,\n\
    reserveSheddable = half_open and 0 or p.reserveSheddable * e.capacity,\n\
    ttlMs = p.keptMs,\n\
    subjectSince = p.changedAt,\n\
    subjectAccrued = p.subjectAccrued,\n\
    subjectRate = e.subjectRate,\n\
    subjectLowest = p.subjectFollow == 1 and math.min(e.subjectRate, p.subjectRate * p.rate / p.policyRate)\n\
      or e.subjectRate,\n\
    subjectCapacity = e.subjectCapacity,\n\
    subjectFloor = p.subjectFloor,\n\
    subjectTtlMs = p.subjectKeptMs,\n\
    openUntil = p.openUntil * 1000,\n\
    probeRate = p.probeRate,\n\
    tokens = e.tokens,\n\
    subjectTokens = e.subjectTokens,\n\
    text = in_force_text(p, e),\n\
  }\n\
end\n\
local function pack_hot(v)\n\
  return struct.pack(\n\
    '<dddddddddddddddddddd',\n\
    v.code, v.from, v.untl, v.since, v.accrued, v.rate, v.capacity, v.fullCapacity, v.floor,\n\
    v.reserveDefault, v.reserveSheddable, v.ttlMs,\n\
    v.subjectSince, v.subjectAccrued, v.subjectRate, v.subjectCapacity, v.subjectFloor, v.subjectTtlMs,\n\
    v.openUntil, v.probeRate\n\
  ) .. v.text\n\
end\n\
local function lease_of(lease_key)\n\
  return redis.call('MGET', lease_key)[1]\n\
end\n\
local function holds_lease(lease_key, owner, token, fence)\n\
  local number = count(token)\n\
  if not number or number < fence then return false end\n\
  return lease_of(lease_key) == owner .. ':' .. token\n\
end\n\
local function lease_token(lease_key)\n\
  return count(string.match(lease_of(lease_key) or '', ':(%d+)$')) or 0\n\
end\n\
local now = now_us(ARGV[1])\n\
local lease_ms = within(ARGV[4], 1, LEASE_MAX_MS)\n\
if not now or not lease_ms then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID nowUs and leaseMs are numbers, leaseMs 1 or more')\n\
end\n\
local text = string.format('%.0f', now)\n\
local p = read_params(KEYS[1])\n\
if not p then return { 'refused', 'missing', text } end\n\
if not holds_lease(KEYS[2], ARGV[2], ARGV[3], p.fence) then return { 'refused', 'lease', text } end\n\
if now >= glide_start(p) then return { 'refused', 'gliding', text } end\n\
if now < p.changedAt then return { 'refused', 'clock', text } end\n\
p.validUntil = math.floor(now / 1000) + lease_ms\n\
redis.call('HSET', KEYS[1], 'validUntil', string.format('%.0f', p.validUntil), 'hot', pack_hot(view_of(p, now)))\n\
redis.call('PEXPIRE', KEYS[2], string.format('%.0f', lease_ms))\n\
if ARGV[5] ~= '' then redis.call('SET', KEYS[3], ARGV[5], 'PX', '3600000') end\n\
return {\n\
  'ok', text, string.format('%.0f', p.validUntil),\n\
  string.format('%.0f', p.epoch), string.format('%.0f', p.revision),\n\
}\n\
",
};

/** Keys of `inflight`, in order. */
export type InflightKeys = [params: string, shares: string, slots: string];
/** Arguments of `inflight`, in order. */
export type InflightArgs = [nowUs: ScriptArg, process: ScriptArg, need: ScriptArg, reports: ScriptArg, fallback: ScriptArg, exact: ScriptArg, bound: ScriptArg];
/**
 * asks for this process's part of the in-flight cap, once a second and at a new revision. Max-min fair by need, in whole requests; what nobody needs is spread evenly, so one process alone has it all. A share is granted only from what others do not hold, so that shares never pass the cap; a dead process's lapses after 3 s. A cap smaller than the fleet is kept place by place (slots), until it was large enough for 10 s. Shares and places count against one cap, so that a fleet changes from one to the other without passing it.
 * Returns [nowUs, inForce, share, fair, processes, reporting, places]; a share of -1 is no cap; `fair` is what it gets once all others have asked again; `places` 1: take place by place. O(p log p) in the live processes.
 */
export const inflightScript: Script<InflightKeys, InflightArgs> = {
  name: 'inflight',
  sha: '7145865a37f5fe235d6be4a77a5266dbc8c9e08d',
  lua: "-- flyball inflight\n\
local LARGEST = 9007199254740992\n\
local LEASE_MAX_MS = 315360000000\n\
local function finite(text)\n\
  if type(text) ~= 'string' or #text > 32 then return nil end\n\
  if not string.find(text, '^%-?%d+%.?%d*$')\n\
    and not string.find(text, '^%-?%d+%.?%d*[eE][%+%-]?%d+$') then\n\
    return nil\n\
  end\n\
  local n = tonumber(text)\n\
  if not n or n ~= n or n == math.huge or n == -math.huge then return nil end\n\
  return n\n\
end\n\
local function within(text, least, most)\n\
  local n = finite(text)\n\
  if n and n >= least and n <= most then return n end\n\
end\n\
local function count(text)\n\
  local n = within(text, 0, LARGEST)\n\
  if n and n % 1 == 0 then return n end\n\
end\n\
local function exact(n)\n\
  return string.format('%.17g', n)\n\
end\n\
local function now_us(given)\n\
  if given ~= '' then return within(given, -LARGEST, LARGEST) end\n\
  local time = redis.call('TIME')\n\
  return time[1] * 1000000 + time[2]\n\
end\n\
local MODES = { off = 0, shadow = 1, recommend = 2, auto = 3 }\n\
local STATES = { closed = 0, open = 1, ['half-open'] = 2, recovering = 3 }\n\
local TEXT = {\n\
  mode = true, state = true, heldBy = true, policyHash = true, onRedisError = true, subject = true,\n\
  algorithm = true, terms = true, rollout = true, subjectTerms = true, windows = true,\n\
  byPerson = true, canary = true,\n\
}\n\
local NEEDED = {\n\
  'v', 'mode', 'state', 'epoch', 'revision', 'generation', 'rate', 'capacity', 'inFlightMax', 'subjectRate',\n\
  'subjectCapacity', 'subjectFollow', 'policyRate', 'minRate', 'maxRate', 'minCapacity', 'maxCapacity',\n\
  'minInFlight', 'maxInFlight', 'accrued', 'changedAt', 'subjectAccrued', 'floor', 'subjectFloor',\n\
  'openUntil', 'openForMs', 'probeRate', 'validUntil', 'lostAfterMs', 'lostOverMs', 'safeRate',\n\
  'safeInFlight', 'reserveDefault', 'reserveSheddable', 'frozenUntil', 'pinnedUntil', 'holdBreaker',\n\
  'heldBy', 'fence', 'policyHash',\n\
}\n\
local LATER_NUMBERS = { windowMs = true, cells = true, subjectRules = true }\n\
local COUNTS = { 'epoch', 'revision', 'generation', 'fence' }\n\
local NOT_BELOW_ZERO = {\n\
  'rate', 'capacity', 'inFlightMax', 'subjectCapacity', 'policyRate', 'probeRate', 'safeRate', 'safeInFlight',\n\
  'lostAfterMs', 'lostOverMs',\n\
}\n\
local function readable(p)\n\
  for i = 1, #NEEDED do\n\
    if p[NEEDED[i]] == nil then return false end\n\
  end\n\
  if not MODES[p.mode] or not STATES[p.state] then return false end\n\
  for i = 1, #COUNTS do\n\
    local n = p[COUNTS[i]]\n\
    if n < 0 or n > 9007199254740992 or n % 1 ~= 0 then return false end\n\
  end\n\
  for i = 1, #NOT_BELOW_ZERO do\n\
    if p[NOT_BELOW_ZERO[i]] < 0 then return false end\n\
  end\n\
  return true\n\
end\n\
local function read_params(key)\n\
  local flat = redis.call('HGETALL', key)\n\
  if #flat == 0 then return nil end\n\
  local p = {}\n\
  for i = 1, #flat, 2 do\n\
    local field, value = flat[i], flat[i + 1]\n\
    if TEXT[field] then\n\
      p[field] = value\n\
    elseif field ~= 'hot' then\n\
      value = not string.find(value, '[^%d%.eE%+%-]') and tonumber(value)\n\
      if value and value - value == 0 then\n\
        p[field] = value\n\
      elseif LATER_NUMBERS[field] then\n\
        return nil\n\
      end\n\
    end\n\
  end\n\
  for _, field in ipairs({ 'keptMs', 'subjectKeptMs' }) do\n\
    if not p[field] or p[field] < 0 or p[field] % 1 ~= 0 then p[field] = 315360000000 end\n\
  end\n\
  return readable(p) and p or nil\n\
end\n\
local NEVER = 9007199254740992\n\
local function glide_start(p)\n\
  if p.pinnedUntil == -1 or p.frozenUntil == -1 then return NEVER end\n\
  local start = math.max(p.validUntil, p.pinnedUntil, p.frozenUntil)\n\
  if p.state == 'open' then\n\
    if p.openUntil == -1 then return NEVER end\n\
    start = math.max(start, p.openUntil)\n\
  end\n\
  return (start + p.lostAfterMs) * 1000\n\
end\n\
local function is_open(p, now)\n\
  if p.state ~= 'open' then return false end\n\
  if p.openUntil == -1 then return true end\n\
  local left = p.openUntil * 1000 - now\n\
  return left > 0 and left <= p.openForMs * 1000\n\
end\n\
local function paid(base, safe, from, to, opens, glide, over)\n\
  local sum = 0\n\
  local start = math.max(from, opens)\n\
  local stop = math.min(to, glide)\n\
  if stop > start then sum = base * (stop - start) end\n\
  local finish = glide + over\n\
  local left = math.max(from, glide)\n\
  local right = math.min(to, finish)\n\
  if right > left then\n\
    local first = base + (safe - base) * ((left - glide) / over)\n\
    local last = base + (safe - base) * ((right - glide) / over)\n\
    sum = sum + (first + last) / 2 * (right - left)\n\
  end\n\
  local after = math.max(from, finish)\n\
  if to > after then sum = sum + safe * (to - after) end\n\
  return sum / 1000000\n\
end\n\
local function effective(p, now)\n\
  local open = is_open(p, now)\n\
  local probing = not open and (p.state == 'open' or p.state == 'half-open')\n\
  local glide = glide_start(p)\n\
  local over = p.lostOverMs * 1000\n\
  local gliding = now >= glide\n\
  local share = 0\n\
  if gliding then share = now >= glide + over and 1 or (now - glide) / over end\n\
  local stopped = p.state == 'open' or p.state == 'half-open'\n\
  local base = stopped and p.probeRate or p.rate\n\
  local rate = open and 0 or base + (p.safeRate - base) * share\n\
  local capacity = p.capacity\n\
  if probing then\n\
    local narrow = math.min(capacity, math.max(1, p.probeRate))\n\
    capacity = narrow + (capacity - narrow) * share\n\
  end\n\
  local cap = p.inFlightMax\n\
  if cap > 0 and p.safeInFlight > 0 then\n\
    cap = math.floor(cap + (p.safeInFlight - cap) * share + 0.5)\n\
  end\n\
  local scale, safe_scale = 1, 1\n\
  if p.subjectFollow == 1 then\n\
    scale = p.rate / p.policyRate\n\
    safe_scale = p.safeRate / p.policyRate\n\
  end\n\
  local none = p.subjectRate < 0\n\
  local subject_base = none and 0 or p.subjectRate * scale\n\
  local subject_safe = none and 0 or p.subjectRate * safe_scale\n\
  local subject_rate = subject_base + (subject_safe - subject_base) * share\n\
  local opens = 0\n\
  if open then\n\
    opens = p.openUntil == -1 and NEVER or p.openUntil * 1000\n\
  elseif p.state == 'open' and p.openUntil * 1000 <= now then\n\
    opens = p.openUntil * 1000\n\
  end\n\
  local tokens, subject_tokens\n\
  if now < p.changedAt then\n\
    tokens = p.accrued - rate * (p.changedAt - now) / 1000000\n\
    subject_tokens = p.subjectAccrued - subject_rate * (p.changedAt - now) / 1000000\n\
  else\n\
    tokens = p.accrued + paid(base, p.safeRate, p.changedAt, now, opens, glide, over)\n\
    subject_tokens = p.subjectAccrued\n\
      + paid(subject_base, subject_safe, p.changedAt, now, 0, glide, over)\n\
  end\n\
  local state = p.state\n\
  if probing then state = gliding and 'recovering' or 'half-open' end\n\
  return {\n\
    state = state,\n\
    gliding = gliding,\n\
    rate = rate,\n\
    capacity = capacity,\n\
    inFlightMax = cap,\n\
    subjectRate = none and -1 or subject_rate,\n\
    subjectCapacity = p.subjectCapacity,\n\
    tokens = tokens,\n\
    subjectTokens = subject_tokens,\n\
    opens = opens,\n\
    glide = glide,\n\
  }\n\
end\n\
local TTL_MARGIN_MS = 1000\n\
local TTL_MAX_MS = 315360000000\n\
local function lowest_above_zero(...)\n\
  local lowest = math.huge\n\
  for _, rate in ipairs({ ... }) do\n\
    if rate > 0 and rate < lowest then lowest = rate end\n\
  end\n\
  return lowest\n\
end\n\
local function ttl_ms(capacity, rate)\n\
  if not (rate > 0) or rate == math.huge then return TTL_MAX_MS end\n\
  return math.min(TTL_MAX_MS, math.ceil(capacity / rate * 1000) + TTL_MARGIN_MS)\n\
end\n\
local function bucket_ttl_ms(p)\n\
  return ttl_ms(\n\
    math.max(p.capacity, p.maxCapacity),\n\
    lowest_above_zero(p.minRate, p.probeRate, p.safeRate, p.rate)\n\
  )\n\
end\n\
local function subject_ttl_ms(p)\n\
  if p.subjectRate < 0 then return 0 end\n\
  local rate = p.subjectRate\n\
  if p.subjectFollow == 1 then\n\
    rate = rate * lowest_above_zero(p.minRate, p.safeRate, p.rate) / p.policyRate\n\
  end\n\
  return ttl_ms(p.subjectCapacity, rate)\n\
end\n\
local function kept_ms(kept, needed)\n\
  if needed <= kept and kept <= 4 * needed then return kept, false end\n\
  return math.min(TTL_MAX_MS, 2 * needed), needed > kept\n\
end\n\
local function in_force_text(p, e)\n\
  return string.format(\n\
    '1 %.0f %.0f %.0f %s %s %d %.17g %.17g %.17g %.17g %.17g',\n\
    p.epoch, p.revision, p.generation, p.mode, e.state, e.gliding and 1 or 0,\n\
    e.rate, e.capacity, e.inFlightMax, e.subjectRate, e.subjectCapacity\n\
  )\n\
end\n\
local function view_of(p, now)\n\
  local e = effective(p, now)\n\
  local untl = e.glide\n\
  if e.state == 'open' then untl = math.min(untl, e.opens) end\n\
  local since = p.changedAt\n\
  if e.state ~= 'open' then since = math.max(since, e.opens) end\n\
  local half_open = e.state == 'half-open'\n\
  return {\n\
    code = MODES[p.mode] + 4 * STATES[e.state] + 16 * (p.subjectRules or 0),\n\
    from = since,\n\
    untl = e.gliding and 0 or untl,\n\
    since = since,\n\
    accrued = p.accrued,\n\
    rate = e.rate,\n\
    capacity = e.capacity,\n\
    fullCapacity = p.capacity,\n\
    floor = p.floor,\n\
    reserveDefault = half_open and 0 or p.reserveDefault * e.capacity,\n\
    reserveSheddable = half_open and 0 or p.reserveSheddable * e.capacity,\n\
    ttlMs = p.keptMs,\n\
    subjectSince = p.changedAt,\n\
    subjectAccrued = p.subjectAccrued,\n\
    subjectRate = e.subjectRate,\n\
    subjectLowest = p.subjectFollow == 1 and math.min(e.subjectRate, p.subjectRate * p.rate / p.policyRate)\n\
      or e.subjectRate,\n\
    subjectCapacity = e.subjectCapacity,\n\
    subjectFloor = p.subjectFloor,\n\
    subjectTtlMs = p.subjectKeptMs,\n\
    openUntil = p.openUntil * 1000,\n\
    probeRate = p.probeRate,\n\
    tokens = e.tokens,\n\
    subjectTokens = e.subjectTokens,\n\
    text = in_force_text(p, e),\n\
  }\n\
end\n\
local now = now_us(ARGV[1])\n\
local process, need, by_place = ARGV[2], within(ARGV[3], 0, 1000000000), ARGV[4] == '2'\n\
local reports, exact, never = by_place or ARGV[4] == '1', ARGV[6] == '1', ARGV[6] == '-'\n\
local bound = within(ARGV[7] or '0', 0, 1000000000)\n\
local named = process and process ~= '' and #process <= 256 and not string.find(process, '^:')\n\
if not now or not named or not need or not bound or not KEYS[3] or not ARGV[6] then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID inflight wants three keys, a process that does not begin with :, '\n\
    .. 'need and bound of 0 or more, and exact')\n\
end\n\
need, bound = math.ceil(need), math.ceil(bound)\n\
local LAPSE_US, STICK_US = 3000000, 10000000\n\
local cap, text\n\
local p = read_params(KEYS[1])\n\
if p then\n\
  local v = view_of(p, now)\n\
  text = v.text\n\
  cap = effective(p, now).inFlightMax\n\
else\n\
  local rate, capacity, max, subject_rate, subject_capacity =\n\
    string.match(ARGV[5], '^(%S+) (%S+) (%S+) (%S+) (%S+)$')\n\
  cap = within(max, 0, LARGEST)\n\
  if not (cap and within(rate, 0, LARGEST) and within(capacity, 0, LARGEST)\n\
    and within(subject_rate, -1, LARGEST) and within(subject_capacity, 0, LARGEST)) then\n\
    return redis.error_reply('FLYBALL_E_CALL_INVALID fallback is five numbers')\n\
  end\n\
  text = '0 0 0 0 recommend closed 0 ' .. rate .. ' ' .. capacity .. ' ' .. max .. ' ' .. subject_rate\n\
    .. ' ' .. subject_capacity\n\
end\n\
cap = math.floor(cap)\n\
local all, names, held, processes, reporting, mine, placed_at = {}, {}, 0, 1, 0, 0, nil\n\
local flat = redis.call('HGETALL', KEYS[2])\n\
for i = 1, #flat, 2 do\n\
  local name = flat[i]\n\
  local n, share, r, at = string.match(flat[i + 1], '^(%d+) (%-?%d+) ([012]) (%d+)$')\n\
  at = tonumber(at)\n\
  if name == ':places' then\n\
    placed_at = tonumber(flat[i + 1])\n\
  elseif name == process then\n\
    if at and now - at < LAPSE_US then mine = math.max(0, tonumber(share)) end\n\
  elseif name ~= ':sum' then\n\
    if not at or now - at >= LAPSE_US then\n\
      redis.call('HDEL', KEYS[2], name)\n\
    else\n\
      if at > now then\n\
        redis.call('HSET', KEYS[2], name, string.format('%s %s %s %.0f', n, share, r, now))\n\
      end\n\
      processes = processes + 1\n\
      if r ~= '0' then\n\
        reporting = reporting + 1\n\
        held = held + math.max(0, tonumber(share))\n\
      end\n\
      if r == '1' then\n\
        names[#names + 1] = name\n\
        all[name] = tonumber(n)\n\
      end\n\
    end\n\
  end\n\
end\n\
local share, fair, places = -1, -1, false\n\
if reports then\n\
  reporting = reporting + 1\n\
  if cap > 0 then\n\
    if exact or not never and cap < reporting or placed_at and placed_at > now then\n\
      placed_at = now\n\
      redis.call('HSET', KEYS[2], ':places', string.format('%.0f', now))\n\
    end\n\
    places = not never and placed_at and now - placed_at < STICK_US\n\
    local free = math.max(0, cap - redis.call('ZCOUNT', KEYS[3], '(' .. string.format('%.0f', now), '+inf'))\n\
    names[#names + 1] = process\n\
    all[process] = need\n\
    table.sort(names, function(a, b)\n\
      if all[a] ~= all[b] then return all[a] < all[b] end\n\
      return a < b\n\
    end)\n\
    local left, parts = free, {}\n\
    for i = 1, #names do\n\
      local part = math.min(all[names[i]], math.floor(left / (#names - i + 1)))\n\
      parts[i] = part\n\
      left = left - part\n\
    end\n\
    for i = 1, #names do\n\
      local more = math.floor(left / (#names - i + 1))\n\
      parts[i] = parts[i] + more\n\
      left = left - more\n\
      if names[i] == process then fair = parts[i] end\n\
    end\n\
    share = math.max(0, math.min(fair, free - held))\n\
    if by_place then\n\
      share = math.min(mine, need)\n\
      fair = share\n\
    elseif places then\n\
      share, fair = mine, mine\n\
    end\n\
  end\n\
end\n\
local holds = share >= 0 and not by_place and math.max(share, bound) or share\n\
local as = by_place and 2 or reports and 1 or 0\n\
redis.call(\n\
  'HSET', KEYS[2], process, string.format('%.0f %.0f %d %.0f', need, holds, as, now),\n\
  ':sum', string.format('%.0f %.0f', held + math.max(0, holds), now)\n\
)\n\
redis.call('PEXPIRE', KEYS[2], 60000)\n\
return {\n\
  string.format('%.0f', now), text, string.format('%.0f', share), string.format('%.0f', fair),\n\
  string.format('%d', processes), string.format('%d', reporting), places and '1' or '0',\n\
}\n\
",
};

/** Keys of `lease`, in order. */
export type LeaseKeys = [lease: string, params: string];
/** Arguments of `lease`, in order. */
export type LeaseArgs = [nowUs: ScriptArg, op: ScriptArg, owner: ScriptArg, token: ScriptArg, leaseMs: ScriptArg];
/**
 * takes, renews or gives back the right to actuate one limiter. The fencing token only grows: max(last + 1, Redis ms); the last one is kept in the params as well.
 * Returns ['held', owner, token, nowUs], ['other', owner, token, ttlMs, nowUs] or ['released', nowUs]. O(1).
 */
export const leaseScript: Script<LeaseKeys, LeaseArgs> = {
  name: 'lease',
  sha: '87f89549aa57e9404b2ee92ee7bc1deeb3f38de4',
  lua: "-- flyball lease\n\
local LARGEST = 9007199254740992\n\
local LEASE_MAX_MS = 315360000000\n\
local function finite(text)\n\
  if type(text) ~= 'string' or #text > 32 then return nil end\n\
  if not string.find(text, '^%-?%d+%.?%d*$')\n\
    and not string.find(text, '^%-?%d+%.?%d*[eE][%+%-]?%d+$') then\n\
    return nil\n\
  end\n\
  local n = tonumber(text)\n\
  if not n or n ~= n or n == math.huge or n == -math.huge then return nil end\n\
  return n\n\
end\n\
local function within(text, least, most)\n\
  local n = finite(text)\n\
  if n and n >= least and n <= most then return n end\n\
end\n\
local function count(text)\n\
  local n = within(text, 0, LARGEST)\n\
  if n and n % 1 == 0 then return n end\n\
end\n\
local function exact(n)\n\
  return string.format('%.17g', n)\n\
end\n\
local function now_us(given)\n\
  if given ~= '' then return within(given, -LARGEST, LARGEST) end\n\
  local time = redis.call('TIME')\n\
  return time[1] * 1000000 + time[2]\n\
end\n\
local LONGEST_MS = 600000\n\
local now = now_us(ARGV[1])\n\
local op, owner, token, lease_ms = ARGV[2], ARGV[3], ARGV[4], within(ARGV[5], 1, LEASE_MAX_MS)\n\
if not now or not lease_ms or (op ~= 'acquire' and op ~= 'release') or owner == '' then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID lease wants op, owner, leaseMs above 0')\n\
end\n\
local text = string.format('%.0f', now)\n\
local life = string.format('%.0f', math.ceil(lease_ms))\n\
local held = redis.call('MGET', KEYS[1])[1]\n\
local other, others_token = string.match(held or '', '^(.*):(%d+)$')\n\
local ttl = held and redis.call('PTTL', KEYS[1])\n\
if not other or ttl == -1 then held = false end\n\
local mine = held and token ~= '' and held == owner .. ':' .. token\n\
if op == 'release' then\n\
  if mine then redis.call('DEL', KEYS[1]) end\n\
  if mine or not held then return { 'released', text } end\n\
elseif mine then\n\
  redis.call('PEXPIRE', KEYS[1], life)\n\
  return { 'held', owner, token, text }\n\
elseif not held then\n\
  local last = count(redis.call('HGET', KEYS[2], 'fence')) or 0\n\
  local granted = string.format('%.0f', math.max(last + 1, math.floor(now / 1000)))\n\
  redis.call('SET', KEYS[1], owner .. ':' .. granted, 'PX', life)\n\
  if redis.call('EXISTS', KEYS[2]) == 1 then redis.call('HSET', KEYS[2], 'fence', granted) end\n\
  return { 'held', owner, granted, text }\n\
end\n\
if ttl > LONGEST_MS and op == 'acquire' then\n\
  redis.call('PEXPIRE', KEYS[1], life)\n\
  ttl = life\n\
end\n\
return { 'other', other, others_token, tostring(ttl), text }\n\
",
};

/** Keys of `log`, in order. */
export type LogKeys = [params: string, total: string, bucket: string, ...subject: string[]];
/** Arguments of `log`, in order. */
export type LogArgs = [nowUs: ScriptArg, chargeByUs: ScriptArg, shadow: ScriptArg, fallback: ScriptArg, window: ScriptArg, ...take: ScriptArg[]];
/**
 * sliding log: n takes, each only if with it no more than rate × window was taken in the window that ends now. Exact at every moment. A key is a list of entries of 16 bytes (time in µs, sum of all millionths of a token taken so far), oldest first; the first is the one before the window. Takes of one µs share an entry. Denied takes add none, so a key holds at most one entry for each admitted take in the window, and never more than 10,000: beyond it a take joins the newest entry, which only delays its return.
 * Returns [status, nowUs, inForce, then reason, remaining, retryAfterMs of each take]; see docs/contract.md. O(n log e) in the takes and the entries.
 */
export const logScript: Script<LogKeys, LogArgs> = {
  name: 'log',
  sha: 'a9101014182f8c0eb2e57f66792eca78e1ddca0f',
  lua: "-- flyball log\n\
local LARGEST = 9007199254740992\n\
local LEASE_MAX_MS = 315360000000\n\
local function finite(text)\n\
  if type(text) ~= 'string' or #text > 32 then return nil end\n\
  if not string.find(text, '^%-?%d+%.?%d*$')\n\
    and not string.find(text, '^%-?%d+%.?%d*[eE][%+%-]?%d+$') then\n\
    return nil\n\
  end\n\
  local n = tonumber(text)\n\
  if not n or n ~= n or n == math.huge or n == -math.huge then return nil end\n\
  return n\n\
end\n\
local function within(text, least, most)\n\
  local n = finite(text)\n\
  if n and n >= least and n <= most then return n end\n\
end\n\
local function count(text)\n\
  local n = within(text, 0, LARGEST)\n\
  if n and n % 1 == 0 then return n end\n\
end\n\
local function exact(n)\n\
  return string.format('%.17g', n)\n\
end\n\
local function now_us(given)\n\
  if given ~= '' then return within(given, -LARGEST, LARGEST) end\n\
  local time = redis.call('TIME')\n\
  return time[1] * 1000000 + time[2]\n\
end\n\
local MODES = { off = 0, shadow = 1, recommend = 2, auto = 3 }\n\
local STATES = { closed = 0, open = 1, ['half-open'] = 2, recovering = 3 }\n\
local TEXT = {\n\
  mode = true, state = true, heldBy = true, policyHash = true, onRedisError = true, subject = true,\n\
  algorithm = true, terms = true, rollout = true, subjectTerms = true, windows = true,\n\
  byPerson = true, canary = true,\n\
}\n\
local NEEDED = {\n\
  'v', 'mode', 'state', 'epoch', 'revision', 'generation', 'rate', 'capacity', 'inFlightMax', 'subjectRate',\n\
  'subjectCapacity', 'subjectFollow', 'policyRate', 'minRate', 'maxRate', 'minCapacity', 'maxCapacity',\n\
  'minInFlight', 'maxInFlight', 'accrued', 'changedAt', 'subjectAccrued', 'floor', 'subjectFloor',\n\
  'openUntil', 'openForMs', 'probeRate', 'validUntil', 'lostAfterMs', 'lostOverMs', 'safeRate',\n\
  'safeInFlight', 'reserveDefault', 'reserveSheddable', 'frozenUntil', 'pinnedUntil', 'holdBreaker',\n\
  'heldBy', 'fence', 'policyHash',\n\
}\n\
local LATER_NUMBERS = { windowMs = true, cells = true, subjectRules = true }\n\
local COUNTS = { 'epoch', 'revision', 'generation', 'fence' }\n\
local NOT_BELOW_ZERO = {\n\
  'rate', 'capacity', 'inFlightMax', 'subjectCapacity', 'policyRate', 'probeRate', 'safeRate', 'safeInFlight',\n\
  'lostAfterMs', 'lostOverMs',\n\
}\n\
local function readable(p)\n\
  for i = 1, #NEEDED do\n\
    if p[NEEDED[i]] == nil then return false end\n\
  end\n\
  if not MODES[p.mode] or not STATES[p.state] then return false end\n\
  for i = 1, #COUNTS do\n\
    local n = p[COUNTS[i]]\n\
    if n < 0 or n > 9007199254740992 or n % 1 ~= 0 then return false end\n\
  end\n\
  for i = 1, #NOT_BELOW_ZERO do\n\
    if p[NOT_BELOW_ZERO[i]] < 0 then return false end\n\
  end\n\
  return true\n\
end\n\
local function read_params(key)\n\
  local flat = redis.call('HGETALL', key)\n\
  if #flat == 0 then return nil end\n\
  local p = {}\n\
  for i = 1, #flat, 2 do\n\
    local field, value = flat[i], flat[i + 1]\n\
    if TEXT[field] then\n\
      p[field] = value\n\
    elseif field ~= 'hot' then\n\
      value = not string.find(value, '[^%d%.eE%+%-]') and tonumber(value)\n\
      if value and value - value == 0 then\n\
        p[field] = value\n\
      elseif LATER_NUMBERS[field] then\n\
        return nil\n\
      end\n\
    end\n\
  end\n\
  for _, field in ipairs({ 'keptMs', 'subjectKeptMs' }) do\n\
    if not p[field] or p[field] < 0 or p[field] % 1 ~= 0 then p[field] = 315360000000 end\n\
  end\n\
  return readable(p) and p or nil\n\
end\n\
local NEVER = 9007199254740992\n\
local function glide_start(p)\n\
  if p.pinnedUntil == -1 or p.frozenUntil == -1 then return NEVER end\n\
  local start = math.max(p.validUntil, p.pinnedUntil, p.frozenUntil)\n\
  if p.state == 'open' then\n\
    if p.openUntil == -1 then return NEVER end\n\
    start = math.max(start, p.openUntil)\n\
  end\n\
  return (start + p.lostAfterMs) * 1000\n\
end\n\
local function is_open(p, now)\n\
  if p.state ~= 'open' then return false end\n\
  if p.openUntil == -1 then return true end\n\
  local left = p.openUntil * 1000 - now\n\
  return left > 0 and left <= p.openForMs * 1000\n\
end\n\
local function paid(base, safe, from, to, opens, glide, over)\n\
  local sum = 0\n\
  local start = math.max(from, opens)\n\
  local stop = math.min(to, glide)\n\
  if stop > start then sum = base * (stop - start) end\n\
  local finish = glide + over\n\
  local left = math.max(from, glide)\n\
  local right = math.min(to, finish)\n\
  if right > left then\n\
    local first = base + (safe - base) * ((left - glide) / over)\n\
    local last = base + (safe - base) * ((right - glide) / over)\n\
    sum = sum + (first + last) / 2 * (right - left)\n\
  end\n\
  local after = math.max(from, finish)\n\
  if to > after then sum = sum + safe * (to - after) end\n\
  return sum / 1000000\n\
end\n\
local function effective(p, now)\n\
  local open = is_open(p, now)\n\
  local probing = not open and (p.state == 'open' or p.state == 'half-open')\n\
  local glide = glide_start(p)\n\
  local over = p.lostOverMs * 1000\n\
  local gliding = now >= glide\n\
  local share = 0\n\
  if gliding then share = now >= glide + over and 1 or (now - glide) / over end\n\
  local stopped = p.state == 'open' or p.state == 'half-open'\n\
  local base = stopped and p.probeRate or p.rate\n\
  local rate = open and 0 or base + (p.safeRate - base) * share\n\
  local capacity = p.capacity\n\
  if probing then\n\
    local narrow = math.min(capacity, math.max(1, p.probeRate))\n\
    capacity = narrow + (capacity - narrow) * share\n\
  end\n\
  local cap = p.inFlightMax\n\
  if cap > 0 and p.safeInFlight > 0 then\n\
    cap = math.floor(cap + (p.safeInFlight - cap) * share + 0.5)\n\
  end\n\
  local scale, safe_scale = 1, 1\n\
  if p.subjectFollow == 1 then\n\
    scale = p.rate / p.policyRate\n\
    safe_scale = p.safeRate / p.policyRate\n\
  end\n\
  local none = p.subjectRate < 0\n\
  local subject_base = none and 0 or p.subjectRate * scale\n\
  local subject_safe = none and 0 or p.subjectRate * safe_scale\n\
  local subject_rate = subject_base + (subject_safe - subject_base) * share\n\
  local opens = 0\n\
  if open then\n\
    opens = p.openUntil == -1 and NEVER or p.openUntil * 1000\n\
  elseif p.state == 'open' and p.openUntil * 1000 <= now then\n\
    opens = p.openUntil * 1000\n\
  end\n\
  local tokens, subject_tokens\n\
  if now < p.changedAt then\n\
    tokens = p.accrued - rate * (p.changedAt - now) / 1000000\n\
    subject_tokens = p.subjectAccrued - subject_rate * (p.changedAt - now) / 1000000\n\
  else\n\
    tokens = p.accrued + paid(base, p.safeRate, p.changedAt, now, opens, glide, over)\n\
    subject_tokens = p.subjectAccrued\n\
      + paid(subject_base, subject_safe, p.changedAt, now, 0, glide, over)\n\
  end\n\
  local state = p.state\n\
  if probing then state = gliding and 'recovering' or 'half-open' end\n\
  return {\n\
    state = state,\n\
    gliding = gliding,\n\
    rate = rate,\n\
    capacity = capacity,\n\
    inFlightMax = cap,\n\
    subjectRate = none and -1 or subject_rate,\n\
    subjectCapacity = p.subjectCapacity,\n\
    tokens = tokens,\n\
    subjectTokens = subject_tokens,\n\
    opens = opens,\n\
    glide = glide,\n\
  }\n\
end\n\
local TTL_MARGIN_MS = 1000\n\
local TTL_MAX_MS = 315360000000\n\
local function lowest_above_zero(...)\n\
  local lowest = math.huge\n\
  for _, rate in ipairs({ ... }) do\n\
    if rate > 0 and rate < lowest then lowest = rate end\n\
  end\n\
  return lowest\n\
end\n\
local function ttl_ms(capacity, rate)\n\
  if not (rate > 0) or rate == math.huge then return TTL_MAX_MS end\n\
  return math.min(TTL_MAX_MS, math.ceil(capacity / rate * 1000) + TTL_MARGIN_MS)\n\
end\n\
local function bucket_ttl_ms(p)\n\
  return ttl_ms(\n\
    math.max(p.capacity, p.maxCapacity),\n\
    lowest_above_zero(p.minRate, p.probeRate, p.safeRate, p.rate)\n\
  )\n\
end\n\
local function subject_ttl_ms(p)\n\
  if p.subjectRate < 0 then return 0 end\n\
  local rate = p.subjectRate\n\
  if p.subjectFollow == 1 then\n\
    rate = rate * lowest_above_zero(p.minRate, p.safeRate, p.rate) / p.policyRate\n\
  end\n\
  return ttl_ms(p.subjectCapacity, rate)\n\
end\n\
local function kept_ms(kept, needed)\n\
  if needed <= kept and kept <= 4 * needed then return kept, false end\n\
  return math.min(TTL_MAX_MS, 2 * needed), needed > kept\n\
end\n\
local function in_force_text(p, e)\n\
  return string.format(\n\
    '1 %.0f %.0f %.0f %s %s %d %.17g %.17g %.17g %.17g %.17g',\n\
    p.epoch, p.revision, p.generation, p.mode, e.state, e.gliding and 1 or 0,\n\
    e.rate, e.capacity, e.inFlightMax, e.subjectRate, e.subjectCapacity\n\
  )\n\
end\n\
local function view_of(p, now)\n\
  local e = effective(p, now)\n\
  local untl = e.glide\n\
  if e.state == 'open' then untl = math.min(untl, e.opens) end\n\
  local since = p.changedAt\n\
  if e.state ~= 'open' then since = math.max(since, e.opens) end\n\
  local half_open = e.state == 'half-open'\n\
  return {\n\
    code = MODES[p.mode] + 4 * STATES[e.state] + 16 * (p.subjectRules or 0),\n\
    from = since,\n\
    untl = e.gliding and 0 or untl,\n\
    since = since,\n\
    accrued = p.accrued,\n\
    rate = e.rate,\n\
    capacity = e.capacity,\n\
    fullCapacity = p.capacity,\n\
    floor = p.floor,\n\
    reserveDefault = half_open and 0 or p.reserveDefault * e.capacity,\n\
    reserveSheddable = half_open and 0 or p.reserveSheddable * e.capacity,\n\
    ttlMs = p.keptMs,\n\
    subjectSince = p.changedAt,\n\
    subjectAccrued = p.subjectAccrued,\n\
    subjectRate = e.subjectRate,\n\
    subjectLowest = p.subjectFollow == 1 and math.min(e.subjectRate, p.subjectRate * p.rate / p.policyRate)\n\
      or e.subjectRate,\n\
    subjectCapacity = e.subjectCapacity,\n\
    subjectFloor = p.subjectFloor,\n\
    subjectTtlMs = p.subjectKeptMs,\n\
    openUntil = p.openUntil * 1000,\n\
    probeRate = p.probeRate,\n\
    tokens = e.tokens,\n\
    subjectTokens = e.subjectTokens,\n\
    text = in_force_text(p, e),\n\
  }\n\
end\n\
local FIRST, LEADING = 5, 3\n\
local call = redis.call\n\
local takes = #ARGV - FIRST\n\
local rich, shadow = ARGV[3] == '4' or ARGV[3] == '5', ARGV[3] == '1' or ARGV[3] == '5'\n\
local before_subjects = rich and LEADING + 3 or LEADING\n\
if takes < 0 or takes > 512 or #KEYS ~= (rich and takes or 0) + takes + before_subjects then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID one key and one argument for each take, at most 512')\n\
end\n\
local now, charge_by = now_us(ARGV[1]), ARGV[2]\n\
if charge_by ~= '' then charge_by = within(charge_by, -LARGEST, LARGEST) end\n\
if not now or not charge_by then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID nowUs and chargeByUs are µs, or empty')\n\
end\n\
local params_key = KEYS[1]\n\
local NONE = -1e300\n\
local hot = call('HGET', params_key, 'hot')\n\
local managed = hot and #hot > 160\n\
local code, from, untl, since, accrued, rate, capacity, full, floor, reserve_default, reserve_sheddable\n\
local ttl, subject_since, subject_accrued, subject_rate, subject_capacity, subject_floor, subject_ttl\n\
local open_until, probe_rate, text, clock, subject_clock, unmanaged_base\n\
if managed then\n\
  code, from, untl, since, accrued, rate, capacity, full, floor, reserve_default, reserve_sheddable,\n\
    ttl, subject_since, subject_accrued, subject_rate, subject_capacity, subject_floor, subject_ttl,\n\
    open_until, probe_rate = struct.unpack('<dddddddddddddddddddd', hot)\n\
  if now >= from and now < untl then\n\
    text = string.sub(hot, 161)\n\
    clock = accrued + rate * (now - since) / 1000000\n\
    subject_clock = subject_accrued\n\
    if subject_rate > 0 then subject_clock = subject_clock + subject_rate * (now - subject_since) / 1000000 end\n\
  end\n\
end\n\
local subject_lowest = subject_rate\n\
if not text then\n\
  local p = read_params(params_key)\n\
  managed = p and true\n\
  if p then\n\
    local v = view_of(p, now)\n\
    code, rate, capacity, full, text = v.code, v.rate, v.capacity, v.fullCapacity, v.text\n\
    clock, subject_clock, ttl, subject_ttl = v.tokens, v.subjectTokens, v.ttlMs, v.subjectTtlMs\n\
    reserve_default, reserve_sheddable = v.reserveDefault, v.reserveSheddable\n\
    subject_rate, subject_capacity = v.subjectRate, v.subjectCapacity\n\
    open_until, probe_rate = v.openUntil, v.probeRate\n\
    floor, subject_floor = v.floor, v.subjectFloor\n\
    subject_since, subject_lowest = v.subjectSince, v.subjectLowest\n\
  else\n\
    local number = '(%d+%.?%d*[eE]?[%+%-]?%d*)'\n\
    local r, c, f, sr, sc = string.match(\n\
      ARGV[4],\n\
      '^' .. number .. ' ' .. number .. ' ' .. number .. ' (%-?%d+%.?%d*[eE]?[%+%-]?%d*) ' .. number .. '$'\n\
    )\n\
    rate, capacity, subject_rate, subject_capacity = tonumber(r), tonumber(c), tonumber(sr), tonumber(sc)\n\
    local cap = tonumber(f)\n\
    local sum = rate and capacity and cap and subject_rate and subject_capacity\n\
      and rate + capacity + cap + subject_rate + subject_capacity\n\
    if not sum or sum > 9007199254740992 then\n\
      return redis.error_reply('FLYBALL_E_CALL_INVALID fallback is five numbers: ' .. ARGV[4])\n\
    end\n\
    code = (ARGV[3] == '1' or ARGV[3] == '3') and 1 or 2\n\
    full, floor, subject_floor = capacity, NONE, NONE\n\
    clock, subject_clock = 0, 0\n\
    reserve_default, reserve_sheddable, open_until, probe_rate = 0, 0, 0, 0\n\
    local function life(most, per_second)\n\
      if not (per_second > 0) then return 86400000 end\n\
      return math.min(86400000 * 3650, math.ceil(most / per_second * 1000) + 1000)\n\
    end\n\
    ttl, subject_ttl = life(capacity, rate), life(subject_capacity, subject_rate)\n\
    text = string.format(\n\
      '0 0 0 0 %s closed 0 %.17g %.17g %.17g %.17g %.17g',\n\
      code == 1 and 'shadow' or 'recommend', rate, capacity, cap, subject_rate, subject_capacity\n\
    )\n\
    function unmanaged_base(mark, per_second)\n\
      local held, at = string.match(mark, '^u:(%d+%.?%d*[eE]?[%+%-]?%d*):(%d+)$')\n\
      held, at = tonumber(held), tonumber(at)\n\
      if not held or not at then return 0, true end\n\
      return -(held + per_second * math.max(0, now - at) / 1000000), at > now\n\
    end\n\
  end\n\
end\n\
if charge_by ~= '' and now > charge_by then return { 1, now, text } end\n\
if (managed and code >= 16 or false) ~= rich then return { 3, now, text } end\n\
code = code % 16\n\
local mode = code % 4\n\
if managed and mode ~= 0 and (mode == 1) ~= shadow then return { 2, now, text } end\n\
local state = (code - mode) / 4\n\
local open, probing = state == 1, state == 2\n\
local total_key = KEYS[2]\n\
local reply = { 0, now, text }\n\
local costs, reserves\n\
local function whole_ms(us)\n\
  if not us or us > 315360000000000 then return -1 end\n\
  return math.max(1, math.ceil(us / 1000))\n\
end\n\
local LONGEST_MS = 31622400000\n\
local window_text, cells_text = string.match(ARGV[5], '^(%d+) ?(%d*)$')\n\
local window_us, cells = tonumber(window_text or ''), tonumber(cells_text or '') or 0\n\
if not window_us or window_us < 1 or window_us > LONGEST_MS or cells > 1000 then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID window is `windowMs` or `windowMs cells`: ' .. ARGV[5])\n\
end\n\
window_us = window_us * 1000\n\
local MOST, ALL, BEGIN = 10000, 4503599627370496, -9007199254740992\n\
local strange\n\
local function entry(key, index)\n\
  local text = call('LINDEX', key, index)\n\
  if #text ~= 16 then\n\
    strange = true\n\
    return BEGIN, 0\n\
  end\n\
  return struct.unpack('<dd', text)\n\
end\n\
local function first_after(key, n, t)\n\
  local low, high = 0, n\n\
  for _ = 1, 32 do\n\
    if low >= high then break end\n\
    local middle = math.floor((low + high) / 2)\n\
    if entry(key, middle) > t then high = middle else low = middle + 1 end\n\
  end\n\
  return low\n\
end\n\
local function open_window(key)\n\
  local w = { key = key, n = call('LLEN', key), used = 0, sum = 0, base = 0, live = 1, keep = 1 }\n\
  if w.n == 0 then\n\
    w.fresh = true\n\
    return w\n\
  end\n\
  strange = false\n\
  w.newest, w.sum = entry(key, w.n - 1)\n\
  w.live = math.max(1, first_after(key, w.n, now - window_us))\n\
  local _, base = entry(key, w.live - 1)\n\
  w.base, w.used = base, (w.sum - base) % ALL\n\
  if strange or not (w.used >= 0 and w.sum < ALL) then\n\
    return { key = key, n = 0, used = 0, sum = 0, base = 0, live = 1, keep = 1, fresh = true, strange = true }\n\
  end\n\
  if w.newest > now then w.ahead, w.keep = true, math.max(1, first_after(key, w.n, now)) end\n\
  return w\n\
end\n\
local function charge(w, micros)\n\
  w.sum, w.used, w.changed = (w.sum + micros) % ALL, w.used + micros, true\n\
end\n\
local function wait_us(w, micros)\n\
  if micros > w.used then return nil end\n\
  local low, high = w.live, w.n\n\
  for _ = 1, 32 do\n\
    if low >= high then break end\n\
    local middle = math.floor((low + high) / 2)\n\
    local _, sum = entry(w.key, middle)\n\
    if (sum - w.base) % ALL >= micros then high = middle else low = middle + 1 end\n\
  end\n\
  local t = low < w.n and entry(w.key, low) or now\n\
  return math.min(t, now) + window_us - now\n\
end\n\
local function save(w)\n\
  local last = struct.pack('<dd', now, w.sum)\n\
  if w.n == 0 then\n\
    if w.strange then call('LTRIM', w.key, 1, 0) end\n\
    call('RPUSH', w.key, struct.pack('<dd', BEGIN, 0), last)\n\
  elseif w.ahead then\n\
    call('LTRIM', w.key, 0, w.keep - 1)\n\
    call('RPUSH', w.key, last)\n\
  elseif w.live < w.n and (w.newest == now or w.n - w.live >= MOST) then\n\
    call('LSET', w.key, -1, last)\n\
  else\n\
    call('RPUSH', w.key, last)\n\
  end\n\
  if w.live > 1 then call('LTRIM', w.key, w.live - 1, -1) end\n\
  call('PEXPIRE', w.key, window_us / 1000 + 1000)\n\
end\n\
local MOST_RATE, MOST_CAPACITY = 1000000, 1000000000\n\
local function part_of(text, most)\n\
  return within(text, 1e-9, most)\n\
end\n\
local function override_of(text, now)\n\
  local kind, ends, rate, capacity = string.match(text or '', '^(%l+) (%-?%d+) (%S+) (%S+)')\n\
  ends = within(ends, -1, LARGEST)\n\
  if not ends or ends ~= -1 and ends * 1000 <= now then return nil end\n\
  rate, capacity = part_of(rate, MOST_RATE), part_of(capacity, MOST_CAPACITY)\n\
  if kind == 'limit' and not rate and not capacity or kind ~= 'limit' and kind ~= 'block' and kind ~= 'exempt' then\n\
    return nil\n\
  end\n\
  return { kind = kind, ends = ends, rate = rate, capacity = capacity, numbers = kind == 'limit' }\n\
end\n\
local function steps_of(terms)\n\
  local steps = {}\n\
  for times, capacity, rate in string.gmatch(terms, 'step=(%d+):([^: ]+):([^: ]+)') do\n\
    steps[#steps + 1] = {\n\
      kind = 'tier', times = tonumber(times), ends = 0, rate = part_of(rate, MOST_RATE),\n\
      capacity = part_of(capacity, MOST_CAPACITY),\n\
      numbers = true,\n\
    }\n\
  end\n\
  return steps\n\
end\n\
local function tier_of(steps, streak)\n\
  local tier = 0\n\
  for i = 1, #steps do\n\
    if streak and streak >= steps[i].times then tier = i end\n\
  end\n\
  return tier\n\
end\n\
local overrides_key, index_key, shared_key = KEYS[LEADING + 1], KEYS[LEADING + 2], KEYS[LEADING + 3]\n\
local terms = rich and call('HGET', KEYS[1], 'subjectTerms') or ''\n\
local most = tonumber(string.match(terms, 'max=(%d+)') or '')\n\
local steps = steps_of(terms)\n\
local rules = {}\n\
local function rule_of(i)\n\
  local key = KEYS[before_subjects + i]\n\
  local rule = rules[key]\n\
  if rule ~= nil then return rule end\n\
  rule = override_of(call('HGET', overrides_key, string.sub(key, #total_key + 2)), now)\n\
  if not rule and steps[1] then\n\
    rule = steps[tier_of(steps, tonumber(call('GET', KEYS[before_subjects + takes + i]) or ''))]\n\
  end\n\
  rules[key] = rule or false\n\
  return rules[key]\n\
end\n\
local live\n\
local function room_for(life_ms, tidy)\n\
  live = live or call('ZCARD', index_key)\n\
  if live < most or not tidy then return live < most end\n\
  local due = call('ZRANGEBYSCORE', index_key, '-inf', string.format('%.0f', now / 1000), 'LIMIT', 0, 8)\n\
  for j = 1, #due do\n\
    if call('EXISTS', total_key .. ':' .. due[j]) == 1 then\n\
      call('ZADD', index_key, string.format('%.0f', now / 1000 + life_ms), due[j])\n\
    else\n\
      call('ZREM', index_key, due[j])\n\
      live = live - 1\n\
    end\n\
  end\n\
  return live < most\n\
end\n\
local function came(key, life_ms)\n\
  live = live or call('ZCARD', index_key)\n\
  live = live + call('ZADD', index_key, string.format('%.0f', now / 1000 + life_ms), string.sub(key, #total_key + 2))\n\
  call('PEXPIRE', index_key, string.format('%.0f', math.min(315360000000, math.max(86400000, 4 * life_ms))))\n\
end\n\
local window_life_ms = window_us / 500 + 1000\n\
local LARGEST_LIMIT = 2251799813685248\n\
local function micros(tokens)\n\
  return math.min(LARGEST_LIMIT, math.floor(tokens * 1000000 + 0.5))\n\
end\n\
local window_s = window_us / 1000000\n\
local limit = micros(rate * window_s)\n\
local subject_limit = subject_rate >= 0 and micros(subject_rate * window_s)\n\
local opened, order = {}, {}\n\
local function window_of(key)\n\
  local w = opened[key]\n\
  if not w then\n\
    w = open_window(key)\n\
    opened[key] = w\n\
    order[#order + 1] = w\n\
  end\n\
  return w\n\
end\n\
local probe_base, probed\n\
local slack = 0.0000005 + (clock > 0 and clock or 0) * 4.4408920985006262e-16\n\
if probing then\n\
  probe_base = clock - capacity\n\
  if floor > probe_base and floor <= clock + slack then probe_base = floor end\n\
  local mark = call('GET', KEYS[3])\n\
  if mark then\n\
    mark = tonumber(mark)\n\
    probe_base = mark and mark <= clock + slack and math.max(mark, probe_base) or clock\n\
  end\n\
end\n\
for i = 1, takes do\n\
  local arg, key = ARGV[FIRST + i], KEYS[before_subjects + i]\n\
  local cost, reserve = 1, reserve_default\n\
  if arg ~= '1' then\n\
    cost = costs and costs[arg]\n\
    if not cost then\n\
      costs = costs or {}\n\
      reserves = reserves or {}\n\
      local digits, priority = string.match(arg, '^(%d+%.?%d*) ?(%l*)$')\n\
      cost = -1\n\
      reserves[arg] = 0\n\
      if digits and #digits <= 16 and #arg == #digits + #priority + (priority == '' and 0 or 1)\n\
        and (priority == '' or priority == 'critical' or priority == 'sheddable') then\n\
        if digits == '0' or string.find(digits, '^[1-9]%d*$')\n\
          or (string.find(digits, '^%d+%.%d%d?%d?%d?%d?%d?$') and not string.find(digits, '^0%d')\n\
            and tonumber(digits) > 0) then\n\
          cost = tonumber(digits)\n\
        end\n\
        if priority == '' then\n\
          reserves[arg] = reserve_default\n\
        elseif priority == 'sheddable' then\n\
          reserves[arg] = reserve_sheddable\n\
        end\n\
      end\n\
      costs[arg] = cost\n\
    end\n\
    reserve = reserves[arg]\n\
  end\n\
  local rule = rich and mode > 0 and key ~= total_key and rule_of(i) or nil\n\
  local kind, own_limit, shared = rule and rule.kind, subject_limit, false\n\
  if rule and rule.rate then own_limit = micros(rule.rate * window_s) end\n\
  local exempt = kind == 'exempt' and not probing\n\
  local reason, retry, left = 0, 0, limit\n\
  if cost < 0 then\n\
    reason, retry, left = 8, -1, 0\n\
  elseif mode == 0 then\n\
    reason = 1\n\
  elseif kind == 'block' then\n\
    reason, left = 9, 0\n\
    retry = rule.ends == -1 and -1 or whole_ms(rule.ends * 1000 - now)\n\
  elseif open then\n\
    reason, left = 4, 0\n\
    retry = open_until < 0 and -1 or whole_ms(open_until - now)\n\
  else\n\
    local need = cost * 1000000 < LARGEST_LIMIT and micros(cost) or math.huge\n\
    local total = window_of(total_key)\n\
    local own = own_limit and kind ~= 'exempt' and key ~= total_key and window_of(key)\n\
    if own and most and not rule and own.fresh and not own.came and not room_for(window_life_ms, cost > 0) then\n\
      own, shared = window_of(shared_key), true\n\
    end\n\
    local keep = capacity > 0 and micros(limit / 1000000 * reserve / capacity) or 0\n\
    if probing then\n\
      left = math.max(0, math.floor((clock - probe_base + slack) * 1000000))\n\
    else\n\
      left = limit - total.used\n\
    end\n\
    if cost > 0 then\n\
      total.touched = true\n\
      if own then own.touched = true end\n\
    end\n\
    if not exempt and need > (probing and micros(full) or limit) or own and need > own_limit then\n\
      reason, retry = not probing and limit == 0 and 2 or own and own_limit == 0 and 3 or 7, -1\n\
    else\n\
      local us = 0\n\
      if probing and cost - (clock - probe_base) > slack then\n\
        reason = 5\n\
        us = rate > 0 and cost <= capacity and (cost - (clock - probe_base)) / rate * 1000000\n\
      elseif not probing and not exempt and need + keep > left then\n\
        reason = need <= left and 6 or 2\n\
        us = wait_us(total, need + keep - left)\n\
      end\n\
      if own and need > own_limit - own.used then\n\
        local more = wait_us(own, need - (own_limit - own.used))\n\
        reason, us = 3, us and more and math.max(us, more)\n\
      end\n\
      if reason > 0 then retry = whole_ms(us) end\n\
    end\n\
    if reason == 0 and cost > 0 then\n\
      charge(total, exempt and math.max(0, math.min(need, limit - total.used)) or need)\n\
      if own then charge(own, need) end\n\
      if own and most and not rule and own.fresh and not shared and not own.came then\n\
        own.came = true\n\
        came(key, window_life_ms)\n\
      end\n\
      if probing then probe_base, probed = probe_base + cost, true end\n\
      left = left - need\n\
    end\n\
    if own then left = math.min(left, own_limit - own.used) end\n\
  end\n\
  if exempt and reason == 0 then reason = 10 end\n\
  local at = 3 * i + 1\n\
  reply[at], reply[at + 1] = reason + (shared and 32 or 0), math.max(0, math.floor(left / 1000000))\n\
  reply[at + 2] = retry\n\
end\n\
for i = 1, #order do\n\
  local w = order[i]\n\
  if w.changed or w.ahead and w.touched then save(w) end\n\
end\n\
if probed then call('SET', KEYS[3], string.format('%.17g', probe_base), 'PX', ttl) end\n\
return reply\n\
",
};

/** Keys of `look`, in order. */
export type LookKeys = [...looked: string[]];
/** Arguments of `look`, in order. */
export type LookArgs = [...mark: ScriptArg[]];
/**
 * what a status shows of limiters beside their params: who leads, what they told, what came to the log, traffic.
 * Returns [nowUs, then of each key: lease and status (nil: none, or known), fields and values of f, at most a hundred entries after the one known, of a second nil as last read, empty: not there, else a line each: its mark, off, adm, n, inf, processes and those that report completions (tabs between), fields and counts of what was denied]. O(fields of seconds that are returned).
 */
export const lookScript: Script<LookKeys, LookArgs> = {
  name: 'look',
  sha: '70820db620f6d28ebf220ffc74985172632e4c6b',
  lua: "-- flyball look\n\
local function second_mark(key)\n\
  local counts = redis.call('HMGET', key, 'n', 'off')\n\
  if not counts[1] then return '' end\n\
  return counts[1] .. ' ' .. redis.call('HLEN', key) .. ' ' .. (counts[2] or '')\n\
end\n\
local EACH = 9\n\
local MOST_ENTRIES = 100\n\
local FIRST = { [97] = true, [100] = true, [105] = true, [110] = true, [111] = true, [112] = true, [115] = true }\n\
local function traffic_of(key)\n\
  local all = redis.call('HGETALL', key)\n\
  local plain = { off = '0', adm = '0', n = '0', inf = '0' }\n\
  local named = { ['p:'] = {}, ['pr:'] = {} }\n\
  local denied = {}\n\
  for i = 1, #all, 2 do\n\
    local field = all[i]\n\
    if plain[field] then\n\
      plain[field] = all[i + 1]\n\
    elseif FIRST[string.byte(field)] then\n\
      local kind = string.match(field, '^%a+:')\n\
      local names = named[kind or '']\n\
      if names then\n\
        names[#names + 1] = string.sub(field, #kind + 1)\n\
      elseif kind == 'd:' or kind == 'sd:' then\n\
        denied[#denied + 1] = '\\n\
' .. field .. '\\n\
' .. all[i + 1]\n\
      end\n\
    end\n\
  end\n\
  local lines = {\n\
    plain.off, plain.adm, plain.n, plain.inf,\n\
    table.concat(named['p:'], '\\t'), table.concat(named['pr:'], '\\t'),\n\
  }\n\
  return table.concat(lines, '\\n\
') .. table.concat(denied)\n\
end\n\
local out = {}\n\
for i = 1, #KEYS, EACH do\n\
  local told = redis.call('MGET', KEYS[i], KEYS[i + 1])\n\
  local lease, status = told[1], told[2]\n\
  if lease and lease == ARGV[i + 1] then status = false end\n\
  out[i + 1] = lease\n\
  out[i + 2] = status\n\
  out[i + 3] = redis.call('HGETALL', KEYS[i + 2])\n\
  out[i + 4] = false\n\
  local newest = ARGV[i + 3]\n\
  if newest ~= '' and redis.call('TYPE', KEYS[i + 3]).ok == 'stream' then\n\
    out[i + 4] = redis.call('XRANGE', KEYS[i + 3], '(' .. newest, '+', 'COUNT', MOST_ENTRIES)\n\
  end\n\
  for at = i + 4, i + EACH - 1 do\n\
    local mark = second_mark(KEYS[at])\n\
    if mark == ARGV[at] then\n\
      out[at + 1] = false\n\
    elseif mark == '' then\n\
      out[at + 1] = ''\n\
    else\n\
      out[at + 1] = mark .. '\\n\
' .. traffic_of(KEYS[at])\n\
    end\n\
  end\n\
end\n\
local time = redis.call('TIME')\n\
out[1] = string.format('%.0f', time[1] * 1000000 + time[2])\n\
return out\n\
",
};

/** Keys of `note`, in order. */
export type NoteKeys = [audit: string, params: string];
/** Arguments of `note`, in order. */
export type NoteArgs = [prev: ScriptArg, hash: ScriptArg, body: ScriptArg, trim: ScriptArg, trimHash: ScriptArg];
/**
 * appends a note to the audit log: a refusal, a recommendation, drift, a trim, which it carries out too. Changes nothing else, needs no lease.
 * Returns ['ok', streamId], or ['refused', 'head', head], or ['refused', 'trim', head] when that entry is not there. O(1), and O(entries trimmed).
 */
export const noteScript: Script<NoteKeys, NoteArgs> = {
  name: 'note',
  sha: '0999319a81cc23171a923311f7cd5ce051da99ce',
  lua: "-- flyball note\n\
local LARGEST = 9007199254740992\n\
local LEASE_MAX_MS = 315360000000\n\
local function finite(text)\n\
  if type(text) ~= 'string' or #text > 32 then return nil end\n\
  if not string.find(text, '^%-?%d+%.?%d*$')\n\
    and not string.find(text, '^%-?%d+%.?%d*[eE][%+%-]?%d+$') then\n\
    return nil\n\
  end\n\
  local n = tonumber(text)\n\
  if not n or n ~= n or n == math.huge or n == -math.huge then return nil end\n\
  return n\n\
end\n\
local function within(text, least, most)\n\
  local n = finite(text)\n\
  if n and n >= least and n <= most then return n end\n\
end\n\
local function count(text)\n\
  local n = within(text, 0, LARGEST)\n\
  if n and n % 1 == 0 then return n end\n\
end\n\
local function exact(n)\n\
  return string.format('%.17g', n)\n\
end\n\
local GENESIS = string.rep('0', 64)\n\
local function audit_head(key)\n\
  local newest = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]\n\
  if not newest then return GENESIS, 0 end\n\
  local hash, epoch = GENESIS, 0\n\
  for i = 1, #newest[2], 2 do\n\
    if newest[2][i] == 'hash' then hash = newest[2][i + 1] end\n\
    if newest[2][i] == 'epoch' then epoch = count(newest[2][i + 1]) or 0 end\n\
  end\n\
  return hash, epoch\n\
end\n\
local function append(key, kind, epoch, revision, hash, prev, body)\n\
  return redis.call('XADD', key, 'MAXLEN', '~', '100000', '*', 'kind', kind,\n\
    'epoch', string.format('%.0f', epoch), 'revision', string.format('%.0f', revision),\n\
    'hash', hash, 'prev', prev, 'body', body)\n\
end\n\
local function holds(key, id, wanted)\n\
  if not string.match(id, '^%d+%-%d+$') then return false end\n\
  local entry = redis.call('XRANGE', key, id, id)[1]\n\
  if not entry then return false end\n\
  for i = 1, #entry[2], 2 do\n\
    if entry[2][i] == 'hash' then return entry[2][i + 1] == wanted end\n\
  end\n\
  return false\n\
end\n\
local prev, hash, body = ARGV[1], ARGV[2], ARGV[3]\n\
local through, through_hash = ARGV[4], ARGV[5]\n\
local head = audit_head(KEYS[1])\n\
if prev ~= head then return { 'refused', 'head', head } end\n\
if through ~= '' and not holds(KEYS[1], through, through_hash) then return { 'refused', 'trim', head } end\n\
local at = redis.call('HMGET', KEYS[2], 'epoch', 'revision')\n\
local id = append(KEYS[1], 'note', count(at[1]) or 0, count(at[2]) or 0, hash, prev, body)\n\
if through ~= '' then\n\
  redis.call('XTRIM', KEYS[1], 'MINID', through)\n\
  redis.call('XDEL', KEYS[1], through)\n\
end\n\
return { 'ok', id }\n\
",
};

/** Keys of `outcome`, in order. */
export type OutcomeKeys = [params: string, standing: string, seen: string, overrides: string, bucket: string, shadow: string];
/** Arguments of `outcome`, in order. */
export type OutcomeArgs = [nowUs: ScriptArg, name: ScriptArg, subject: ScriptArg];
/**
 * counts how something ended for one subject, once: so many in a row raise its tier, one of the others brings it back. The tier's numbers hold from this moment on; a later take reads them in its own call.
 * Returns [status, inARow, tier, rate, capacity]; status 1 counted, 0 counted before, 2 no tier knows the name, 3 no tiers; tier 0: the policy's numbers; a rate of -1: none. O(1).
 */
export const outcomeScript: Script<OutcomeKeys, OutcomeArgs> = {
  name: 'outcome',
  sha: 'c8939c2550430a8bcc2bd7bfd46c39a74ca23c05',
  lua: "-- flyball outcome\n\
local LARGEST = 9007199254740992\n\
local LEASE_MAX_MS = 315360000000\n\
local function finite(text)\n\
  if type(text) ~= 'string' or #text > 32 then return nil end\n\
  if not string.find(text, '^%-?%d+%.?%d*$')\n\
    and not string.find(text, '^%-?%d+%.?%d*[eE][%+%-]?%d+$') then\n\
    return nil\n\
  end\n\
  local n = tonumber(text)\n\
  if not n or n ~= n or n == math.huge or n == -math.huge then return nil end\n\
  return n\n\
end\n\
local function within(text, least, most)\n\
  local n = finite(text)\n\
  if n and n >= least and n <= most then return n end\n\
end\n\
local function count(text)\n\
  local n = within(text, 0, LARGEST)\n\
  if n and n % 1 == 0 then return n end\n\
end\n\
local function exact(n)\n\
  return string.format('%.17g', n)\n\
end\n\
local function now_us(given)\n\
  if given ~= '' then return within(given, -LARGEST, LARGEST) end\n\
  local time = redis.call('TIME')\n\
  return time[1] * 1000000 + time[2]\n\
end\n\
local MODES = { off = 0, shadow = 1, recommend = 2, auto = 3 }\n\
local STATES = { closed = 0, open = 1, ['half-open'] = 2, recovering = 3 }\n\
local TEXT = {\n\
  mode = true, state = true, heldBy = true, policyHash = true, onRedisError = true, subject = true,\n\
  algorithm = true, terms = true, rollout = true, subjectTerms = true, windows = true,\n\
  byPerson = true, canary = true,\n\
}\n\
local NEEDED = {\n\
  'v', 'mode', 'state', 'epoch', 'revision', 'generation', 'rate', 'capacity', 'inFlightMax', 'subjectRate',\n\
  'subjectCapacity', 'subjectFollow', 'policyRate', 'minRate', 'maxRate', 'minCapacity', 'maxCapacity',\n\
  'minInFlight', 'maxInFlight', 'accrued', 'changedAt', 'subjectAccrued', 'floor', 'subjectFloor',\n\
  'openUntil', 'openForMs', 'probeRate', 'validUntil', 'lostAfterMs', 'lostOverMs', 'safeRate',\n\
  'safeInFlight', 'reserveDefault', 'reserveSheddable', 'frozenUntil', 'pinnedUntil', 'holdBreaker',\n\
  'heldBy', 'fence', 'policyHash',\n\
}\n\
local LATER_NUMBERS = { windowMs = true, cells = true, subjectRules = true }\n\
local COUNTS = { 'epoch', 'revision', 'generation', 'fence' }\n\
local NOT_BELOW_ZERO = {\n\
  'rate', 'capacity', 'inFlightMax', 'subjectCapacity', 'policyRate', 'probeRate', 'safeRate', 'safeInFlight',\n\
  'lostAfterMs', 'lostOverMs',\n\
}\n\
local function readable(p)\n\
  for i = 1, #NEEDED do\n\
    if p[NEEDED[i]] == nil then return false end\n\
  end\n\
  if not MODES[p.mode] or not STATES[p.state] then return false end\n\
  for i = 1, #COUNTS do\n\
    local n = p[COUNTS[i]]\n\
    if n < 0 or n > 9007199254740992 or n % 1 ~= 0 then return false end\n\
  end\n\
  for i = 1, #NOT_BELOW_ZERO do\n\
    if p[NOT_BELOW_ZERO[i]] < 0 then return false end\n\
  end\n\
  return true\n\
end\n\
local function read_params(key)\n\
  local flat = redis.call('HGETALL', key)\n\
  if #flat == 0 then return nil end\n\
  local p = {}\n\
  for i = 1, #flat, 2 do\n\
    local field, value = flat[i], flat[i + 1]\n\
    if TEXT[field] then\n\
      p[field] = value\n\
    elseif field ~= 'hot' then\n\
      value = not string.find(value, '[^%d%.eE%+%-]') and tonumber(value)\n\
      if value and value - value == 0 then\n\
        p[field] = value\n\
      elseif LATER_NUMBERS[field] then\n\
        return nil\n\
      end\n\
    end\n\
  end\n\
  for _, field in ipairs({ 'keptMs', 'subjectKeptMs' }) do\n\
    if not p[field] or p[field] < 0 or p[field] % 1 ~= 0 then p[field] = 315360000000 end\n\
  end\n\
  return readable(p) and p or nil\n\
end\n\
local NEVER = 9007199254740992\n\
local function glide_start(p)\n\
  if p.pinnedUntil == -1 or p.frozenUntil == -1 then return NEVER end\n\
  local start = math.max(p.validUntil, p.pinnedUntil, p.frozenUntil)\n\
  if p.state == 'open' then\n\
    if p.openUntil == -1 then return NEVER end\n\
    start = math.max(start, p.openUntil)\n\
  end\n\
  return (start + p.lostAfterMs) * 1000\n\
end\n\
local function is_open(p, now)\n\
  if p.state ~= 'open' then return false end\n\
  if p.openUntil == -1 then return true end\n\
  local left = p.openUntil * 1000 - now\n\
  return left > 0 and left <= p.openForMs * 1000\n\
end\n\
local function paid(base, safe, from, to, opens, glide, over)\n\
  local sum = 0\n\
  local start = math.max(from, opens)\n\
  local stop = math.min(to, glide)\n\
  if stop > start then sum = base * (stop - start) end\n\
  local finish = glide + over\n\
  local left = math.max(from, glide)\n\
  local right = math.min(to, finish)\n\
  if right > left then\n\
    local first = base + (safe - base) * ((left - glide) / over)\n\
    local last = base + (safe - base) * ((right - glide) / over)\n\
    sum = sum + (first + last) / 2 * (right - left)\n\
  end\n\
  local after = math.max(from, finish)\n\
  if to > after then sum = sum + safe * (to - after) end\n\
  return sum / 1000000\n\
end\n\
local function effective(p, now)\n\
  local open = is_open(p, now)\n\
  local probing = not open and (p.state == 'open' or p.state == 'half-open')\n\
  local glide = glide_start(p)\n\
  local over = p.lostOverMs * 1000\n\
  local gliding = now >= glide\n\
  local share = 0\n\
  if gliding then share = now >= glide + over and 1 or (now - glide) / over end\n\
  local stopped = p.state == 'open' or p.state == 'half-open'\n\
  local base = stopped and p.probeRate or p.rate\n\
  local rate = open and 0 or base + (p.safeRate - base) * share\n\
  local capacity = p.capacity\n\
  if probing then\n\
    local narrow = math.min(capacity, math.max(1, p.probeRate))\n\
    capacity = narrow + (capacity - narrow) * share\n\
  end\n\
  local cap = p.inFlightMax\n\
  if cap > 0 and p.safeInFlight > 0 then\n\
    cap = math.floor(cap + (p.safeInFlight - cap) * share + 0.5)\n\
  end\n\
  local scale, safe_scale = 1, 1\n\
  if p.subjectFollow == 1 then\n\
    scale = p.rate / p.policyRate\n\
    safe_scale = p.safeRate / p.policyRate\n\
  end\n\
  local none = p.subjectRate < 0\n\
  local subject_base = none and 0 or p.subjectRate * scale\n\
  local subject_safe = none and 0 or p.subjectRate * safe_scale\n\
  local subject_rate = subject_base + (subject_safe - subject_base) * share\n\
  local opens = 0\n\
  if open then\n\
    opens = p.openUntil == -1 and NEVER or p.openUntil * 1000\n\
  elseif p.state == 'open' and p.openUntil * 1000 <= now then\n\
    opens = p.openUntil * 1000\n\
  end\n\
  local tokens, subject_tokens\n\
  if now < p.changedAt then\n\
    tokens = p.accrued - rate * (p.changedAt - now) / 1000000\n\
    subject_tokens = p.subjectAccrued - subject_rate * (p.changedAt - now) / 1000000\n\
  else\n\
    tokens = p.accrued + paid(base, p.safeRate, p.changedAt, now, opens, glide, over)\n\
    subject_tokens = p.subjectAccrued\n\
      + paid(subject_base, subject_safe, p.changedAt, now, 0, glide, over)\n\
  end\n\
  local state = p.state\n\
  if probing then state = gliding and 'recovering' or 'half-open' end\n\
  return {\n\
    state = state,\n\
    gliding = gliding,\n\
    rate = rate,\n\
    capacity = capacity,\n\
    inFlightMax = cap,\n\
    subjectRate = none and -1 or subject_rate,\n\
    subjectCapacity = p.subjectCapacity,\n\
    tokens = tokens,\n\
    subjectTokens = subject_tokens,\n\
    opens = opens,\n\
    glide = glide,\n\
  }\n\
end\n\
local TTL_MARGIN_MS = 1000\n\
local TTL_MAX_MS = 315360000000\n\
local function lowest_above_zero(...)\n\
  local lowest = math.huge\n\
  for _, rate in ipairs({ ... }) do\n\
    if rate > 0 and rate < lowest then lowest = rate end\n\
  end\n\
  return lowest\n\
end\n\
local function ttl_ms(capacity, rate)\n\
  if not (rate > 0) or rate == math.huge then return TTL_MAX_MS end\n\
  return math.min(TTL_MAX_MS, math.ceil(capacity / rate * 1000) + TTL_MARGIN_MS)\n\
end\n\
local function bucket_ttl_ms(p)\n\
  return ttl_ms(\n\
    math.max(p.capacity, p.maxCapacity),\n\
    lowest_above_zero(p.minRate, p.probeRate, p.safeRate, p.rate)\n\
  )\n\
end\n\
local function subject_ttl_ms(p)\n\
  if p.subjectRate < 0 then return 0 end\n\
  local rate = p.subjectRate\n\
  if p.subjectFollow == 1 then\n\
    rate = rate * lowest_above_zero(p.minRate, p.safeRate, p.rate) / p.policyRate\n\
  end\n\
  return ttl_ms(p.subjectCapacity, rate)\n\
end\n\
local function kept_ms(kept, needed)\n\
  if needed <= kept and kept <= 4 * needed then return kept, false end\n\
  return math.min(TTL_MAX_MS, 2 * needed), needed > kept\n\
end\n\
local function in_force_text(p, e)\n\
  return string.format(\n\
    '1 %.0f %.0f %.0f %s %s %d %.17g %.17g %.17g %.17g %.17g',\n\
    p.epoch, p.revision, p.generation, p.mode, e.state, e.gliding and 1 or 0,\n\
    e.rate, e.capacity, e.inFlightMax, e.subjectRate, e.subjectCapacity\n\
  )\n\
end\n\
local function view_of(p, now)\n\
  local e = effective(p, now)\n\
  local untl = e.glide\n\
  if e.state == 'open' then untl = math.min(untl, e.opens) end\n\
  local since = p.changedAt\n\
  if e.state ~= 'open' then since = math.max(since, e.opens) end\n\
  local half_open = e.state == 'half-open'\n\
  return {\n\
    code = MODES[p.mode] + 4 * STATES[e.state] + 16 * (p.subjectRules or 0),\n\
    from = since,\n\
    untl = e.gliding and 0 or untl,\n\
    since = since,\n\
    accrued = p.accrued,\n\
    rate = e.rate,\n\
    capacity = e.capacity,\n\
    fullCapacity = p.capacity,\n\
    floor = p.floor,\n\
    reserveDefault = half_open and 0 or p.reserveDefault * e.capacity,\n\
    reserveSheddable = half_open and 0 or p.reserveSheddable * e.capacity,\n\
    ttlMs = p.keptMs,\n\
    subjectSince = p.changedAt,\n\
    subjectAccrued = p.subjectAccrued,\n\
    subjectRate = e.subjectRate,\n\
    subjectLowest = p.subjectFollow == 1 and math.min(e.subjectRate, p.subjectRate * p.rate / p.policyRate)\n\
      or e.subjectRate,\n\
    subjectCapacity = e.subjectCapacity,\n\
    subjectFloor = p.subjectFloor,\n\
    subjectTtlMs = p.subjectKeptMs,\n\
    openUntil = p.openUntil * 1000,\n\
    probeRate = p.probeRate,\n\
    tokens = e.tokens,\n\
    subjectTokens = e.subjectTokens,\n\
    text = in_force_text(p, e),\n\
  }\n\
end\n\
local OWN_LONGEST_MS = 315360000000\n\
local UNKNOWN_LIFE_MS = 86400000\n\
local OWN = '^o:(%-?%d[^:]*):(%d+):(%-?%d[^:]*):([^:]+):(%d[^:]*):(%-?%d+)$'\n\
local function room_of(rule, s)\n\
  return rule and rule.capacity or s.capacity\n\
end\n\
local function whole(rule, s)\n\
  if rule and rule.numbers and s.rate < 0 and not (rule.rate and rule.capacity) then return nil end\n\
  return rule\n\
end\n\
local function after_own(t, at, v, r, c, ends, now, s, tier_rate)\n\
  local stop = math.max(at, ends)\n\
  local edge = math.min(now, math.max(stop, s.since))\n\
  local v_edge = s.clock - math.max(0, s.lowest) * (now - edge) / 1000000\n\
  local first = r and r * (stop - at) / 1000000 or math.max(0, v_edge - v)\n\
  return math.min(c, t + first) + (tier_rate and tier_rate * (now - edge) / 1000000 or s.clock - v_edge)\n\
end\n\
local function held(text, rule, now, s)\n\
  local room = room_of(rule, s)\n\
  if not text then\n\
    if rule and rule.rate then return room, false end\n\
    return math.min(room, s.clock - s.floor), false\n\
  end\n\
  local mark = tonumber(text)\n\
  if mark then\n\
    if not (mark <= s.clock + s.slack) then return 0, true end\n\
    return math.min(room, s.clock - math.max(mark, s.floor)), false\n\
  end\n\
  local t, at, v, r, c, ends = string.match(text, OWN)\n\
  t, at, v, c, ends = tonumber(t or ''), tonumber(at or ''), tonumber(v or ''), tonumber(c or ''), tonumber(ends or '')\n\
  if not (t and at and v and c and ends) then\n\
    return math.min(room, tonumber(string.match(text, '^u:(%d+%.?%d*):') or '') or 0), true\n\
  end\n\
  local ahead = at > now or v > s.clock + s.slack\n\
  t, r, ends = math.max(t, -1), tonumber(r), ends * 1000\n\
  local elapsed = math.max(0, now - at)\n\
  local paid = math.max(0, s.clock - v)\n\
  local by_text = r and r * elapsed / 1000000 or paid\n\
  if ends > 0 and ends <= now then\n\
    local tokens = after_own(t, at, v, r, c, ends, now, s, rule and rule.rate)\n\
    if not rule or s.since > ends then tokens = math.min(tokens, s.clock - s.floor) end\n\
    return math.min(room, tokens), ahead\n\
  end\n\
  if rule then\n\
    local by_rule = rule.rate and rule.rate * elapsed / 1000000 or paid\n\
    return math.min(c, room, t + math.min(by_text, by_rule)), ahead\n\
  end\n\
  return math.min(c, room, t + math.min(by_text, paid)), ahead\n\
end\n\
local function own_text(tokens, rule, now, s)\n\
  return string.format('o:%.17g:%.0f:%.17g:%s:%.17g:%.0f', tokens, now, s.clock,\n\
    rule.rate and string.format('%.17g', rule.rate) or '-', room_of(rule, s), rule.ends)\n\
end\n\
local function own_life(rule, now, s)\n\
  local room, life = room_of(rule, s), s.ttl\n\
  if rule.rate then\n\
    life = math.max(life, math.ceil(room / rule.rate * 1000) + 1000)\n\
  elseif s.capacity > 0 then\n\
    life = life * math.max(1, room / s.capacity)\n\
  end\n\
  if rule.ends == -1 then life = OWN_LONGEST_MS end\n\
  local past = s.rate < 0 and UNKNOWN_LIFE_MS or s.ttl\n\
  if rule.ends > 0 then life = math.max(life, rule.ends - now / 1000 + past + 1000) end\n\
  return string.format('%.0f', math.min(OWN_LONGEST_MS, math.ceil(life)))\n\
end\n\
local function change_one(key, before, after, now, s, on)\n\
  local text = redis.call('MGET', key)[1]\n\
  local bound = before or s.rate >= 0\n\
  if after and (text or on) then\n\
    local tokens = bound and held(text, before, now, s) or room_of(after, s)\n\
    redis.call('SET', key, own_text(math.min(room_of(after, s), tokens), after, now, s), 'PX', own_life(after, now, s))\n\
  elseif after then\n\
    return\n\
  elseif text and s.rate < 0 then\n\
    redis.call('DEL', key)\n\
  elseif text then\n\
    local tokens = math.min(s.capacity, (held(text, before, now, s)))\n\
    redis.call('SET', key, string.format('%.17g', s.clock - tokens), 'PX', string.format('%.0f', math.max(1, s.ttl)))\n\
  end\n\
end\n\
local function change_numbers(p, bucket, shadow, before, after, now, s)\n\
  if p.algorithm and p.algorithm ~= '' and p.algorithm ~= 'token-bucket' then return end\n\
  before, after = whole(before, s), whole(after, s)\n\
  change_one(bucket, before, after, now, s, p.mode ~= 'shadow')\n\
  change_one(shadow, before, after, now, s, p.mode == 'shadow')\n\
end\n\
local function subjects_of(v)\n\
  local slack = 0.0000005 + math.max(0, v.subjectTokens) * 4.4408920985006262e-16\n\
  local floor = v.subjectFloor\n\
  if floor > v.subjectTokens + slack then floor = -1e300 end\n\
  return {\n\
    clock = v.subjectTokens, slack = slack, rate = v.subjectRate, capacity = v.subjectCapacity, floor = floor,\n\
    ttl = v.subjectTtlMs, since = v.subjectSince, lowest = v.subjectLowest,\n\
  }\n\
end\n\
local MOST_RATE, MOST_CAPACITY = 1000000, 1000000000\n\
local function part_of(text, most)\n\
  return within(text, 1e-9, most)\n\
end\n\
local function override_of(text, now)\n\
  local kind, ends, rate, capacity = string.match(text or '', '^(%l+) (%-?%d+) (%S+) (%S+)')\n\
  ends = within(ends, -1, LARGEST)\n\
  if not ends or ends ~= -1 and ends * 1000 <= now then return nil end\n\
  rate, capacity = part_of(rate, MOST_RATE), part_of(capacity, MOST_CAPACITY)\n\
  if kind == 'limit' and not rate and not capacity or kind ~= 'limit' and kind ~= 'block' and kind ~= 'exempt' then\n\
    return nil\n\
  end\n\
  return { kind = kind, ends = ends, rate = rate, capacity = capacity, numbers = kind == 'limit' }\n\
end\n\
local function steps_of(terms)\n\
  local steps = {}\n\
  for times, capacity, rate in string.gmatch(terms, 'step=(%d+):([^: ]+):([^: ]+)') do\n\
    steps[#steps + 1] = {\n\
      kind = 'tier', times = tonumber(times), ends = 0, rate = part_of(rate, MOST_RATE),\n\
      capacity = part_of(capacity, MOST_CAPACITY),\n\
      numbers = true,\n\
    }\n\
  end\n\
  return steps\n\
end\n\
local function tier_of(steps, streak)\n\
  local tier = 0\n\
  for i = 1, #steps do\n\
    if streak and streak >= steps[i].times then tier = i end\n\
  end\n\
  return tier\n\
end\n\
local SEEN_MS = 86400000\n\
local now, name, field = now_us(ARGV[1]), ARGV[2], ARGV[3]\n\
if not now or not KEYS[6] or not field or not string.find(name, '^[%w._%-]+$') or #name > 64 then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID outcome wants six keys, a name of 1 to 64 of A-Z, a-z, 0-9, ., _, -, and a subject')\n\
end\n\
local p = read_params(KEYS[1])\n\
local terms = p and p.subjectTerms or ''\n\
local steps = steps_of(terms)\n\
local keep = within(string.match(terms, 'keep=(%d+)'), 1, LEASE_MAX_MS)\n\
if not steps[1] or not keep then return { 3, 0, 0, '-1', '0' } end\n\
local before = tonumber(redis.call('GET', KEYS[2]) or '') or 0\n\
local s = subjects_of(view_of(p, now))\n\
local function answer(status, streak)\n\
  local tier = tier_of(steps, streak)\n\
  local rule = whole(steps[tier], s)\n\
  return { status, streak, tier, exact(rule and rule.rate or s.rate), exact(room_of(rule, s)) }\n\
end\n\
local good = name == string.match(terms, 'on=(%S+)')\n\
local bad = string.find(',' .. (string.match(terms, 'reset=(%S+)') or '') .. ',', ',' .. name .. ',', 1, true)\n\
if not good and not bad then return answer(2, before) end\n\
if not redis.call('SET', KEYS[3], '1', 'PX', SEEN_MS, 'NX') then return answer(0, before) end\n\
local after = good and math.min(before + 1, steps[#steps].times) or 0\n\
local was, is = steps[tier_of(steps, before)], steps[tier_of(steps, after)]\n\
if was ~= is then\n\
  local override = override_of(redis.call('HGET', KEYS[4], field), now)\n\
  if not (override and override.numbers) then change_numbers(p, KEYS[5], KEYS[6], was, is, now, s) end\n\
end\n\
if after > 0 then\n\
  redis.call('SET', KEYS[2], string.format('%.0f', after), 'PX', keep)\n\
else\n\
  redis.call('DEL', KEYS[2])\n\
end\n\
return answer(1, after)\n\
",
};

/** Keys of `override`, in order. */
export type OverrideKeys = [params: string, audit: string, overrides: string, bucket: string, shadow: string, standing: string];
/** Arguments of `override`, in order. */
export type OverrideArgs = [nowUs: ScriptArg, epoch: ScriptArg, revision: ScriptArg, prev: ScriptArg, hash: ScriptArg, body: ScriptArg, channel: ScriptArg, limiter: ScriptArg, subject: ScriptArg, value: ScriptArg];
/**
 * what a person says of one subject, or takes back: it is stored or removed, with exactly one audit entry and a new revision; or refused, and nothing is written. The subject's buckets take its new numbers from this moment on. Overrides whose time is over are removed on the way; once none is left and no policy speaks of single subjects, takes go by the plain script again.
 * Returns ['ok', nowUs, epoch, revision, streamId] or ['refused', reason, detail, nowUs, epoch, revision, head]. O(o) in the overrides, at most 1,000.
 */
export const overrideScript: Script<OverrideKeys, OverrideArgs> = {
  name: 'override',
  sha: '6616e99419a1fc571d3f1bd5469ee2464a3cf7f5',
  lua: "-- flyball override\n\
local LARGEST = 9007199254740992\n\
local LEASE_MAX_MS = 315360000000\n\
local function finite(text)\n\
  if type(text) ~= 'string' or #text > 32 then return nil end\n\
  if not string.find(text, '^%-?%d+%.?%d*$')\n\
    and not string.find(text, '^%-?%d+%.?%d*[eE][%+%-]?%d+$') then\n\
    return nil\n\
  end\n\
  local n = tonumber(text)\n\
  if not n or n ~= n or n == math.huge or n == -math.huge then return nil end\n\
  return n\n\
end\n\
local function within(text, least, most)\n\
  local n = finite(text)\n\
  if n and n >= least and n <= most then return n end\n\
end\n\
local function count(text)\n\
  local n = within(text, 0, LARGEST)\n\
  if n and n % 1 == 0 then return n end\n\
end\n\
local function exact(n)\n\
  return string.format('%.17g', n)\n\
end\n\
local function now_us(given)\n\
  if given ~= '' then return within(given, -LARGEST, LARGEST) end\n\
  local time = redis.call('TIME')\n\
  return time[1] * 1000000 + time[2]\n\
end\n\
local MODES = { off = 0, shadow = 1, recommend = 2, auto = 3 }\n\
local STATES = { closed = 0, open = 1, ['half-open'] = 2, recovering = 3 }\n\
local TEXT = {\n\
  mode = true, state = true, heldBy = true, policyHash = true, onRedisError = true, subject = true,\n\
  algorithm = true, terms = true, rollout = true, subjectTerms = true, windows = true,\n\
  byPerson = true, canary = true,\n\
}\n\
local NEEDED = {\n\
  'v', 'mode', 'state', 'epoch', 'revision', 'generation', 'rate', 'capacity', 'inFlightMax', 'subjectRate',\n\
  'subjectCapacity', 'subjectFollow', 'policyRate', 'minRate', 'maxRate', 'minCapacity', 'maxCapacity',\n\
  'minInFlight', 'maxInFlight', 'accrued', 'changedAt', 'subjectAccrued', 'floor', 'subjectFloor',\n\
  'openUntil', 'openForMs', 'probeRate', 'validUntil', 'lostAfterMs', 'lostOverMs', 'safeRate',\n\
  'safeInFlight', 'reserveDefault', 'reserveSheddable', 'frozenUntil', 'pinnedUntil', 'holdBreaker',\n\
  'heldBy', 'fence', 'policyHash',\n\
}\n\
local LATER_NUMBERS = { windowMs = true, cells = true, subjectRules = true }\n\
local COUNTS = { 'epoch', 'revision', 'generation', 'fence' }\n\
local NOT_BELOW_ZERO = {\n\
  'rate', 'capacity', 'inFlightMax', 'subjectCapacity', 'policyRate', 'probeRate', 'safeRate', 'safeInFlight',\n\
  'lostAfterMs', 'lostOverMs',\n\
}\n\
local function readable(p)\n\
  for i = 1, #NEEDED do\n\
    if p[NEEDED[i]] == nil then return false end\n\
  end\n\
  if not MODES[p.mode] or not STATES[p.state] then return false end\n\
  for i = 1, #COUNTS do\n\
    local n = p[COUNTS[i]]\n\
    if n < 0 or n > 9007199254740992 or n % 1 ~= 0 then return false end\n\
  end\n\
  for i = 1, #NOT_BELOW_ZERO do\n\
    if p[NOT_BELOW_ZERO[i]] < 0 then return false end\n\
  end\n\
  return true\n\
end\n\
local function read_params(key)\n\
  local flat = redis.call('HGETALL', key)\n\
  if #flat == 0 then return nil end\n\
  local p = {}\n\
  for i = 1, #flat, 2 do\n\
    local field, value = flat[i], flat[i + 1]\n\
    if TEXT[field] then\n\
      p[field] = value\n\
    elseif field ~= 'hot' then\n\
      value = not string.find(value, '[^%d%.eE%+%-]') and tonumber(value)\n\
      if value and value - value == 0 then\n\
        p[field] = value\n\
      elseif LATER_NUMBERS[field] then\n\
        return nil\n\
      end\n\
    end\n\
  end\n\
  for _, field in ipairs({ 'keptMs', 'subjectKeptMs' }) do\n\
    if not p[field] or p[field] < 0 or p[field] % 1 ~= 0 then p[field] = 315360000000 end\n\
  end\n\
  return readable(p) and p or nil\n\
end\n\
local NEVER = 9007199254740992\n\
local function glide_start(p)\n\
  if p.pinnedUntil == -1 or p.frozenUntil == -1 then return NEVER end\n\
  local start = math.max(p.validUntil, p.pinnedUntil, p.frozenUntil)\n\
  if p.state == 'open' then\n\
    if p.openUntil == -1 then return NEVER end\n\
    start = math.max(start, p.openUntil)\n\
  end\n\
  return (start + p.lostAfterMs) * 1000\n\
end\n\
local function is_open(p, now)\n\
  if p.state ~= 'open' then return false end\n\
  if p.openUntil == -1 then return true end\n\
  local left = p.openUntil * 1000 - now\n\
  return left > 0 and left <= p.openForMs * 1000\n\
end\n\
local function paid(base, safe, from, to, opens, glide, over)\n\
  local sum = 0\n\
  local start = math.max(from, opens)\n\
  local stop = math.min(to, glide)\n\
  if stop > start then sum = base * (stop - start) end\n\
  local finish = glide + over\n\
  local left = math.max(from, glide)\n\
  local right = math.min(to, finish)\n\
  if right > left then\n\
    local first = base + (safe - base) * ((left - glide) / over)\n\
    local last = base + (safe - base) * ((right - glide) / over)\n\
    sum = sum + (first + last) / 2 * (right - left)\n\
  end\n\
  local after = math.max(from, finish)\n\
  if to > after then sum = sum + safe * (to - after) end\n\
  return sum / 1000000\n\
end\n\
local function effective(p, now)\n\
  local open = is_open(p, now)\n\
  local probing = not open and (p.state == 'open' or p.state == 'half-open')\n\
  local glide = glide_start(p)\n\
  local over = p.lostOverMs * 1000\n\
  local gliding = now >= glide\n\
  local share = 0\n\
  if gliding then share = now >= glide + over and 1 or (now - glide) / over end\n\
  local stopped = p.state == 'open' or p.state == 'half-open'\n\
  local base = stopped and p.probeRate or p.rate\n\
  local rate = open and 0 or base + (p.safeRate - base) * share\n\
  local capacity = p.capacity\n\
  if probing then\n\
    local narrow = math.min(capacity, math.max(1, p.probeRate))\n\
    capacity = narrow + (capacity - narrow) * share\n\
  end\n\
  local cap = p.inFlightMax\n\
  if cap > 0 and p.safeInFlight > 0 then\n\
    cap = math.floor(cap + (p.safeInFlight - cap) * share + 0.5)\n\
  end\n\
  local scale, safe_scale = 1, 1\n\
  if p.subjectFollow == 1 then\n\
    scale = p.rate / p.policyRate\n\
    safe_scale = p.safeRate / p.policyRate\n\
  end\n\
  local none = p.subjectRate < 0\n\
  local subject_base = none and 0 or p.subjectRate * scale\n\
  local subject_safe = none and 0 or p.subjectRate * safe_scale\n\
  local subject_rate = subject_base + (subject_safe - subject_base) * share\n\
  local opens = 0\n\
  if open then\n\
    opens = p.openUntil == -1 and NEVER or p.openUntil * 1000\n\
  elseif p.state == 'open' and p.openUntil * 1000 <= now then\n\
    opens = p.openUntil * 1000\n\
  end\n\
  local tokens, subject_tokens\n\
  if now < p.changedAt then\n\
    tokens = p.accrued - rate * (p.changedAt - now) / 1000000\n\
    subject_tokens = p.subjectAccrued - subject_rate * (p.changedAt - now) / 1000000\n\
  else\n\
    tokens = p.accrued + paid(base, p.safeRate, p.changedAt, now, opens, glide, over)\n\
    subject_tokens = p.subjectAccrued\n\
      + paid(subject_base, subject_safe, p.changedAt, now, 0, glide, over)\n\
  end\n\
  local state = p.state\n\
  if probing then state = gliding and 'recovering' or 'half-open' end\n\
  return {\n\
    state = state,\n\
    gliding = gliding,\n\
    rate = rate,\n\
    capacity = capacity,\n\
    inFlightMax = cap,\n\
    subjectRate = none and -1 or subject_rate,\n\
    subjectCapacity = p.subjectCapacity,\n\
    tokens = tokens,\n\
    subjectTokens = subject_tokens,\n\
    opens = opens,\n\
    glide = glide,\n\
  }\n\
end\n\
local TTL_MARGIN_MS = 1000\n\
local TTL_MAX_MS = 315360000000\n\
local function lowest_above_zero(...)\n\
  local lowest = math.huge\n\
  for _, rate in ipairs({ ... }) do\n\
    if rate > 0 and rate < lowest then lowest = rate end\n\
  end\n\
  return lowest\n\
end\n\
local function ttl_ms(capacity, rate)\n\
  if not (rate > 0) or rate == math.huge then return TTL_MAX_MS end\n\
  return math.min(TTL_MAX_MS, math.ceil(capacity / rate * 1000) + TTL_MARGIN_MS)\n\
end\n\
local function bucket_ttl_ms(p)\n\
  return ttl_ms(\n\
    math.max(p.capacity, p.maxCapacity),\n\
    lowest_above_zero(p.minRate, p.probeRate, p.safeRate, p.rate)\n\
  )\n\
end\n\
local function subject_ttl_ms(p)\n\
  if p.subjectRate < 0 then return 0 end\n\
  local rate = p.subjectRate\n\
  if p.subjectFollow == 1 then\n\
    rate = rate * lowest_above_zero(p.minRate, p.safeRate, p.rate) / p.policyRate\n\
  end\n\
  return ttl_ms(p.subjectCapacity, rate)\n\
end\n\
local function kept_ms(kept, needed)\n\
  if needed <= kept and kept <= 4 * needed then return kept, false end\n\
  return math.min(TTL_MAX_MS, 2 * needed), needed > kept\n\
end\n\
local function in_force_text(p, e)\n\
  return string.format(\n\
    '1 %.0f %.0f %.0f %s %s %d %.17g %.17g %.17g %.17g %.17g',\n\
    p.epoch, p.revision, p.generation, p.mode, e.state, e.gliding and 1 or 0,\n\
    e.rate, e.capacity, e.inFlightMax, e.subjectRate, e.subjectCapacity\n\
  )\n\
end\n\
local function view_of(p, now)\n\
  local e = effective(p, now)\n\
  local untl = e.glide\n\
  if e.state == 'open' then untl = math.min(untl, e.opens) end\n\
  local since = p.changedAt\n\
  if e.state ~= 'open' then since = math.max(since, e.opens) end\n\
  local half_open = e.state == 'half-open'\n\
  return {\n\
    code = MODES[p.mode] + 4 * STATES[e.state] + 16 * (p.subjectRules or 0),\n\
    from = since,\n\
    untl = e.gliding and 0 or untl,\n\
    since = since,\n\
    accrued = p.accrued,\n\
    rate = e.rate,\n\
    capacity = e.capacity,\n\
    fullCapacity = p.capacity,\n\
    floor = p.floor,\n\
    reserveDefault = half_open and 0 or p.reserveDefault * e.capacity,\n\
    reserveSheddable = half_open and 0 or p.reserveSheddable * e.capacity,\n\
    ttlMs = p.keptMs,\n\
    subjectSince = p.changedAt,\n\
    subjectAccrued = p.subjectAccrued,\n\
    subjectRate = e.subjectRate,\n\
    subjectLowest = p.subjectFollow == 1 and math.min(e.subjectRate, p.subjectRate * p.rate / p.policyRate)\n\
      or e.subjectRate,\n\
    subjectCapacity = e.subjectCapacity,\n\
    subjectFloor = p.subjectFloor,\n\
    subjectTtlMs = p.subjectKeptMs,\n\
    openUntil = p.openUntil * 1000,\n\
    probeRate = p.probeRate,\n\
    tokens = e.tokens,\n\
    subjectTokens = e.subjectTokens,\n\
    text = in_force_text(p, e),\n\
  }\n\
end\n\
local function pack_hot(v)\n\
  return struct.pack(\n\
    '<dddddddddddddddddddd',\n\
    v.code, v.from, v.untl, v.since, v.accrued, v.rate, v.capacity, v.fullCapacity, v.floor,\n\
    v.reserveDefault, v.reserveSheddable, v.ttlMs,\n\
    v.subjectSince, v.subjectAccrued, v.subjectRate, v.subjectCapacity, v.subjectFloor, v.subjectTtlMs,\n\
    v.openUntil, v.probeRate\n\
  ) .. v.text\n\
end\n\
local GENESIS = string.rep('0', 64)\n\
local function audit_head(key)\n\
  local newest = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]\n\
  if not newest then return GENESIS, 0 end\n\
  local hash, epoch = GENESIS, 0\n\
  for i = 1, #newest[2], 2 do\n\
    if newest[2][i] == 'hash' then hash = newest[2][i + 1] end\n\
    if newest[2][i] == 'epoch' then epoch = count(newest[2][i + 1]) or 0 end\n\
  end\n\
  return hash, epoch\n\
end\n\
local function append(key, kind, epoch, revision, hash, prev, body)\n\
  return redis.call('XADD', key, 'MAXLEN', '~', '100000', '*', 'kind', kind,\n\
    'epoch', string.format('%.0f', epoch), 'revision', string.format('%.0f', revision),\n\
    'hash', hash, 'prev', prev, 'body', body)\n\
end\n\
local OWN_LONGEST_MS = 315360000000\n\
local UNKNOWN_LIFE_MS = 86400000\n\
local OWN = '^o:(%-?%d[^:]*):(%d+):(%-?%d[^:]*):([^:]+):(%d[^:]*):(%-?%d+)$'\n\
local function room_of(rule, s)\n\
  return rule and rule.capacity or s.capacity\n\
end\n\
local function whole(rule, s)\n\
  if rule and rule.numbers and s.rate < 0 and not (rule.rate and rule.capacity) then return nil end\n\
  return rule\n\
end\n\
local function after_own(t, at, v, r, c, ends, now, s, tier_rate)\n\
  local stop = math.max(at, ends)\n\
  local edge = math.min(now, math.max(stop, s.since))\n\
  local v_edge = s.clock - math.max(0, s.lowest) * (now - edge) / 1000000\n\
  local first = r and r * (stop - at) / 1000000 or math.max(0, v_edge - v)\n\
  return math.min(c, t + first) + (tier_rate and tier_rate * (now - edge) / 1000000 or s.clock - v_edge)\n\
end\n\
local function held(text, rule, now, s)\n\
  local room = room_of(rule, s)\n\
  if not text then\n\
    if rule and rule.rate then return room, false end\n\
    return math.min(room, s.clock - s.floor), false\n\
  end\n\
  local mark = tonumber(text)\n\
  if mark then\n\
    if not (mark <= s.clock + s.slack) then return 0, true end\n\
    return math.min(room, s.clock - math.max(mark, s.floor)), false\n\
  end\n\
  local t, at, v, r, c, ends = string.match(text, OWN)\n\
  t, at, v, c, ends = tonumber(t or ''), tonumber(at or ''), tonumber(v or ''), tonumber(c or ''), tonumber(ends or '')\n\
  if not (t and at and v and c and ends) then\n\
    return math.min(room, tonumber(string.match(text, '^u:(%d+%.?%d*):') or '') or 0), true\n\
  end\n\
  local ahead = at > now or v > s.clock + s.slack\n\
  t, r, ends = math.max(t, -1), tonumber(r), ends * 1000\n\
  local elapsed = math.max(0, now - at)\n\
  local paid = math.max(0, s.clock - v)\n\
  local by_text = r and r * elapsed / 1000000 or paid\n\
  if ends > 0 and ends <= now then\n\
    local tokens = after_own(t, at, v, r, c, ends, now, s, rule and rule.rate)\n\
    if not rule or s.since > ends then tokens = math.min(tokens, s.clock - s.floor) end\n\
    return math.min(room, tokens), ahead\n\
  end\n\
  if rule then\n\
    local by_rule = rule.rate and rule.rate * elapsed / 1000000 or paid\n\
    return math.min(c, room, t + math.min(by_text, by_rule)), ahead\n\
  end\n\
  return math.min(c, room, t + math.min(by_text, paid)), ahead\n\
end\n\
local function own_text(tokens, rule, now, s)\n\
  return string.format('o:%.17g:%.0f:%.17g:%s:%.17g:%.0f', tokens, now, s.clock,\n\
    rule.rate and string.format('%.17g', rule.rate) or '-', room_of(rule, s), rule.ends)\n\
end\n\
local function own_life(rule, now, s)\n\
  local room, life = room_of(rule, s), s.ttl\n\
  if rule.rate then\n\
    life = math.max(life, math.ceil(room / rule.rate * 1000) + 1000)\n\
  elseif s.capacity > 0 then\n\
    life = life * math.max(1, room / s.capacity)\n\
  end\n\
  if rule.ends == -1 then life = OWN_LONGEST_MS end\n\
  local past = s.rate < 0 and UNKNOWN_LIFE_MS or s.ttl\n\
  if rule.ends > 0 then life = math.max(life, rule.ends - now / 1000 + past + 1000) end\n\
  return string.format('%.0f', math.min(OWN_LONGEST_MS, math.ceil(life)))\n\
end\n\
local function change_one(key, before, after, now, s, on)\n\
  local text = redis.call('MGET', key)[1]\n\
  local bound = before or s.rate >= 0\n\
  if after and (text or on) then\n\
    local tokens = bound and held(text, before, now, s) or room_of(after, s)\n\
    redis.call('SET', key, own_text(math.min(room_of(after, s), tokens), after, now, s), 'PX', own_life(after, now, s))\n\
  elseif after then\n\
    return\n\
  elseif text and s.rate < 0 then\n\
    redis.call('DEL', key)\n\
  elseif text then\n\
    local tokens = math.min(s.capacity, (held(text, before, now, s)))\n\
    redis.call('SET', key, string.format('%.17g', s.clock - tokens), 'PX', string.format('%.0f', math.max(1, s.ttl)))\n\
  end\n\
end\n\
local function change_numbers(p, bucket, shadow, before, after, now, s)\n\
  if p.algorithm and p.algorithm ~= '' and p.algorithm ~= 'token-bucket' then return end\n\
  before, after = whole(before, s), whole(after, s)\n\
  change_one(bucket, before, after, now, s, p.mode ~= 'shadow')\n\
  change_one(shadow, before, after, now, s, p.mode == 'shadow')\n\
end\n\
local function subjects_of(v)\n\
  local slack = 0.0000005 + math.max(0, v.subjectTokens) * 4.4408920985006262e-16\n\
  local floor = v.subjectFloor\n\
  if floor > v.subjectTokens + slack then floor = -1e300 end\n\
  return {\n\
    clock = v.subjectTokens, slack = slack, rate = v.subjectRate, capacity = v.subjectCapacity, floor = floor,\n\
    ttl = v.subjectTtlMs, since = v.subjectSince, lowest = v.subjectLowest,\n\
  }\n\
end\n\
local MOST_RATE, MOST_CAPACITY = 1000000, 1000000000\n\
local function part_of(text, most)\n\
  return within(text, 1e-9, most)\n\
end\n\
local function override_of(text, now)\n\
  local kind, ends, rate, capacity = string.match(text or '', '^(%l+) (%-?%d+) (%S+) (%S+)')\n\
  ends = within(ends, -1, LARGEST)\n\
  if not ends or ends ~= -1 and ends * 1000 <= now then return nil end\n\
  rate, capacity = part_of(rate, MOST_RATE), part_of(capacity, MOST_CAPACITY)\n\
  if kind == 'limit' and not rate and not capacity or kind ~= 'limit' and kind ~= 'block' and kind ~= 'exempt' then\n\
    return nil\n\
  end\n\
  return { kind = kind, ends = ends, rate = rate, capacity = capacity, numbers = kind == 'limit' }\n\
end\n\
local function steps_of(terms)\n\
  local steps = {}\n\
  for times, capacity, rate in string.gmatch(terms, 'step=(%d+):([^: ]+):([^: ]+)') do\n\
    steps[#steps + 1] = {\n\
      kind = 'tier', times = tonumber(times), ends = 0, rate = part_of(rate, MOST_RATE),\n\
      capacity = part_of(capacity, MOST_CAPACITY),\n\
      numbers = true,\n\
    }\n\
  end\n\
  return steps\n\
end\n\
local function tier_of(steps, streak)\n\
  local tier = 0\n\
  for i = 1, #steps do\n\
    if streak and streak >= steps[i].times then tier = i end\n\
  end\n\
  return tier\n\
end\n\
local MOST, LONGEST = 1000, 2048\n\
local now = now_us(ARGV[1])\n\
local epoch, revision = count(ARGV[2]), count(ARGV[3])\n\
local prev, hash, body = ARGV[4], ARGV[5], ARGV[6]\n\
local channel, limiter, field, value = ARGV[7], ARGV[8], ARGV[9], ARGV[10]\n\
local p = read_params(KEYS[1])\n\
local head = audit_head(KEYS[2])\n\
local function integer(n)\n\
  return string.format('%.0f', n)\n\
end\n\
local function refuse(reason, detail)\n\
  local at = p or { epoch = 0, revision = 0 }\n\
  return { 'refused', reason, detail, integer(now or 0), integer(at.epoch), integer(at.revision), head }\n\
end\n\
if not now or not epoch or not revision or not KEYS[6] or not value or field == '' or #field > 64 then\n\
  return refuse('invalid', 'nowUs, epoch and revision are numbers, subject is encoded')\n\
end\n\
if not p then return refuse('invalid', 'the params are missing: create them') end\n\
if epoch ~= p.epoch or revision ~= p.revision then\n\
  return refuse('revision', 'in force is ' .. integer(p.epoch) .. '/' .. integer(p.revision))\n\
end\n\
if prev ~= head then return refuse('head', 'the newest audit entry is another one') end\n\
local rule = value ~= '' and override_of(value, now) or nil\n\
if value ~= '' then\n\
  if #value > LONGEST then return refuse('invalid', 'an override is at most ' .. LONGEST .. ' bytes') end\n\
  if not rule then return refuse('invalid', 'an override says block, exempt or limit, and ends later than now') end\n\
  if rule.rate and not (rule.rate > 0 and rule.rate <= 1000000)\n\
    or rule.capacity and not (rule.capacity > 0 and rule.capacity <= 1000000000) then\n\
    return refuse('invalid', 'rate is 0 to 1000000, capacity 0 to 1000000000, both above 0')\n\
  end\n\
  local windowed = p.windowMs and p.windowMs > 0\n\
  if rule.numbers and p.subjectRate < 0 and not (rule.rate and (rule.capacity or windowed)) then\n\
    return refuse('invalid', 'the policy has no numbers for subjects: give rate and capacity')\n\
  end\n\
end\n\
local kind = redis.call('TYPE', KEYS[3])['ok']\n\
local foreign = kind ~= 'hash' and kind ~= 'none'\n\
local flat = foreign and {} or redis.call('HGETALL', KEYS[3])\n\
local over, left, found = {}, 0, nil\n\
for i = 1, #flat, 2 do\n\
  if flat[i] == field then found = flat[i + 1] end\n\
  if not override_of(flat[i + 1], now) then\n\
    over[#over + 1] = flat[i]\n\
  elseif flat[i] ~= field then\n\
    left = left + 1\n\
  end\n\
end\n\
if rule and left >= MOST then return refuse('full', 'there are ' .. left .. ' overrides; ' .. MOST .. ' is the most') end\n\
local standing = redis.call('MGET', KEYS[6])[1]\n\
p.revision = p.revision + 1\n\
p.subjectRules = (rule or left > 0 or p.subjectTerms and p.subjectTerms ~= '') and 1 or 0\n\
local v = view_of(p, now)\n\
redis.call('PUBLISH', channel, limiter .. ' ' .. integer(p.epoch) .. ' ' .. integer(p.revision))\n\
local id = append(KEYS[2], 'change', p.epoch, p.revision, hash, prev, body)\n\
redis.call('HSET', KEYS[1], 'revision', integer(p.revision), 'subjectRules', integer(p.subjectRules), 'hot', pack_hot(v))\n\
local s = subjects_of(v)\n\
local before = override_of(found, now)\n\
local steps = steps_of(p.subjectTerms or '')\n\
local tier = steps[tier_of(steps, tonumber(standing or ''))]\n\
local was, is = before and before.numbers and before or tier, rule and rule.numbers and rule or tier\n\
if was ~= is then change_numbers(p, KEYS[4], KEYS[5], was, is, now, s) end\n\
if foreign then redis.call('DEL', KEYS[3]) end\n\
for i = 1, #over do redis.call('HDEL', KEYS[3], over[i]) end\n\
if rule then redis.call('HSET', KEYS[3], field, value) else redis.call('HDEL', KEYS[3], field) end\n\
return { 'ok', integer(now), integer(p.epoch), integer(p.revision), id }\n\
",
};

/** Keys of `pace`, in order. */
export type PaceKeys = [params: string, total: string, ...subject: string[]];
/** Arguments of `pace`, in order. */
export type PaceArgs = [nowUs: ScriptArg, chargeByUs: ScriptArg, shadow: ScriptArg, fallback: ScriptArg, ...take: ScriptArg[]];
/**
 * leaky bucket for pacing: admits n takes up to `capacity` waiting, and says when each may proceed. What proceeds is never closer than the rate allows, after a rest too. A key is one mark on the token clock: what waits is mark - V, and a take proceeds once that has leaked at the rate in force. A denied take writes nothing, except to bring back a mark that lies further ahead than its capacity: the clock was set back.
 * Returns [status, nowUs, inForce, then reason, remaining, delayMs or retryAfterMs of each take]; see docs/contract.md. O(n) in the takes.
 */
export const paceScript: Script<PaceKeys, PaceArgs> = {
  name: 'pace',
  sha: '917dd271eb2d3c2e6e404ab2e5cf74f0462f64a0',
  lua: "-- flyball pace\n\
local LARGEST = 9007199254740992\n\
local LEASE_MAX_MS = 315360000000\n\
local function finite(text)\n\
  if type(text) ~= 'string' or #text > 32 then return nil end\n\
  if not string.find(text, '^%-?%d+%.?%d*$')\n\
    and not string.find(text, '^%-?%d+%.?%d*[eE][%+%-]?%d+$') then\n\
    return nil\n\
  end\n\
  local n = tonumber(text)\n\
  if not n or n ~= n or n == math.huge or n == -math.huge then return nil end\n\
  return n\n\
end\n\
local function within(text, least, most)\n\
  local n = finite(text)\n\
  if n and n >= least and n <= most then return n end\n\
end\n\
local function count(text)\n\
  local n = within(text, 0, LARGEST)\n\
  if n and n % 1 == 0 then return n end\n\
end\n\
local function exact(n)\n\
  return string.format('%.17g', n)\n\
end\n\
local function now_us(given)\n\
  if given ~= '' then return within(given, -LARGEST, LARGEST) end\n\
  local time = redis.call('TIME')\n\
  return time[1] * 1000000 + time[2]\n\
end\n\
local MODES = { off = 0, shadow = 1, recommend = 2, auto = 3 }\n\
local STATES = { closed = 0, open = 1, ['half-open'] = 2, recovering = 3 }\n\
local TEXT = {\n\
  mode = true, state = true, heldBy = true, policyHash = true, onRedisError = true, subject = true,\n\
  algorithm = true, terms = true, rollout = true, subjectTerms = true, windows = true,\n\
  byPerson = true, canary = true,\n\
}\n\
local NEEDED = {\n\
  'v', 'mode', 'state', 'epoch', 'revision', 'generation', 'rate', 'capacity', 'inFlightMax', 'subjectRate',\n\
  'subjectCapacity', 'subjectFollow', 'policyRate', 'minRate', 'maxRate', 'minCapacity', 'maxCapacity',\n\
  'minInFlight', 'maxInFlight', 'accrued', 'changedAt', 'subjectAccrued', 'floor', 'subjectFloor',\n\
  'openUntil', 'openForMs', 'probeRate', 'validUntil', 'lostAfterMs', 'lostOverMs', 'safeRate',\n\
  'safeInFlight', 'reserveDefault', 'reserveSheddable', 'frozenUntil', 'pinnedUntil', 'holdBreaker',\n\
  'heldBy', 'fence', 'policyHash',\n\
}\n\
local LATER_NUMBERS = { windowMs = true, cells = true, subjectRules = true }\n\
local COUNTS = { 'epoch', 'revision', 'generation', 'fence' }\n\
local NOT_BELOW_ZERO = {\n\
  'rate', 'capacity', 'inFlightMax', 'subjectCapacity', 'policyRate', 'probeRate', 'safeRate', 'safeInFlight',\n\
  'lostAfterMs', 'lostOverMs',\n\
}\n\
local function readable(p)\n\
  for i = 1, #NEEDED do\n\
    if p[NEEDED[i]] == nil then return false end\n\
  end\n\
  if not MODES[p.mode] or not STATES[p.state] then return false end\n\
  for i = 1, #COUNTS do\n\
    local n = p[COUNTS[i]]\n\
    if n < 0 or n > 9007199254740992 or n % 1 ~= 0 then return false end\n\
  end\n\
  for i = 1, #NOT_BELOW_ZERO do\n\
    if p[NOT_BELOW_ZERO[i]] < 0 then return false end\n\
  end\n\
  return true\n\
end\n\
local function read_params(key)\n\
  local flat = redis.call('HGETALL', key)\n\
  if #flat == 0 then return nil end\n\
  local p = {}\n\
  for i = 1, #flat, 2 do\n\
    local field, value = flat[i], flat[i + 1]\n\
    if TEXT[field] then\n\
      p[field] = value\n\
    elseif field ~= 'hot' then\n\
      value = not string.find(value, '[^%d%.eE%+%-]') and tonumber(value)\n\
      if value and value - value == 0 then\n\
        p[field] = value\n\
      elseif LATER_NUMBERS[field] then\n\
        return nil\n\
      end\n\
    end\n\
  end\n\
  for _, field in ipairs({ 'keptMs', 'subjectKeptMs' }) do\n\
    if not p[field] or p[field] < 0 or p[field] % 1 ~= 0 then p[field] = 315360000000 end\n\
  end\n\
  return readable(p) and p or nil\n\
end\n\
local NEVER = 9007199254740992\n\
local function glide_start(p)\n\
  if p.pinnedUntil == -1 or p.frozenUntil == -1 then return NEVER end\n\
  local start = math.max(p.validUntil, p.pinnedUntil, p.frozenUntil)\n\
  if p.state == 'open' then\n\
    if p.openUntil == -1 then return NEVER end\n\
    start = math.max(start, p.openUntil)\n\
  end\n\
  return (start + p.lostAfterMs) * 1000\n\
end\n\
local function is_open(p, now)\n\
  if p.state ~= 'open' then return false end\n\
  if p.openUntil == -1 then return true end\n\
  local left = p.openUntil * 1000 - now\n\
  return left > 0 and left <= p.openForMs * 1000\n\
end\n\
local function paid(base, safe, from, to, opens, glide, over)\n\
  local sum = 0\n\
  local start = math.max(from, opens)\n\
  local stop = math.min(to, glide)\n\
  if stop > start then sum = base * (stop - start) end\n\
  local finish = glide + over\n\
  local left = math.max(from, glide)\n\
  local right = math.min(to, finish)\n\
  if right > left then\n\
    local first = base + (safe - base) * ((left - glide) / over)\n\
    local last = base + (safe - base) * ((right - glide) / over)\n\
    sum = sum + (first + last) / 2 * (right - left)\n\
  end\n\
  local after = math.max(from, finish)\n\
  if to > after then sum = sum + safe * (to - after) end\n\
  return sum / 1000000\n\
end\n\
local function effective(p, now)\n\
  local open = is_open(p, now)\n\
  local probing = not open and (p.state == 'open' or p.state == 'half-open')\n\
  local glide = glide_start(p)\n\
  local over = p.lostOverMs * 1000\n\
  local gliding = now >= glide\n\
  local share = 0\n\
  if gliding then share = now >= glide + over and 1 or (now - glide) / over end\n\
  local stopped = p.state == 'open' or p.state == 'half-open'\n\
  local base = stopped and p.probeRate or p.rate\n\
  local rate = open and 0 or base + (p.safeRate - base) * share\n\
  local capacity = p.capacity\n\
  if probing then\n\
    local narrow = math.min(capacity, math.max(1, p.probeRate))\n\
    capacity = narrow + (capacity - narrow) * share\n\
  end\n\
  local cap = p.inFlightMax\n\
  if cap > 0 and p.safeInFlight > 0 then\n\
    cap = math.floor(cap + (p.safeInFlight - cap) * share + 0.5)\n\
  end\n\
  local scale, safe_scale = 1, 1\n\
  if p.subjectFollow == 1 then\n\
    scale = p.rate / p.policyRate\n\
    safe_scale = p.safeRate / p.policyRate\n\
  end\n\
  local none = p.subjectRate < 0\n\
  local subject_base = none and 0 or p.subjectRate * scale\n\
  local subject_safe = none and 0 or p.subjectRate * safe_scale\n\
  local subject_rate = subject_base + (subject_safe - subject_base) * share\n\
  local opens = 0\n\
  if open then\n\
    opens = p.openUntil == -1 and NEVER or p.openUntil * 1000\n\
  elseif p.state == 'open' and p.openUntil * 1000 <= now then\n\
    opens = p.openUntil * 1000\n\
  end\n\
  local tokens, subject_tokens\n\
  if now < p.changedAt then\n\
    tokens = p.accrued - rate * (p.changedAt - now) / 1000000\n\
    subject_tokens = p.subjectAccrued - subject_rate * (p.changedAt - now) / 1000000\n\
  else\n\
    tokens = p.accrued + paid(base, p.safeRate, p.changedAt, now, opens, glide, over)\n\
    subject_tokens = p.subjectAccrued\n\
      + paid(subject_base, subject_safe, p.changedAt, now, 0, glide, over)\n\
  end\n\
  local state = p.state\n\
  if probing then state = gliding and 'recovering' or 'half-open' end\n\
  return {\n\
    state = state,\n\
    gliding = gliding,\n\
    rate = rate,\n\
    capacity = capacity,\n\
    inFlightMax = cap,\n\
    subjectRate = none and -1 or subject_rate,\n\
    subjectCapacity = p.subjectCapacity,\n\
    tokens = tokens,\n\
    subjectTokens = subject_tokens,\n\
    opens = opens,\n\
    glide = glide,\n\
  }\n\
end\n\
local TTL_MARGIN_MS = 1000\n\
local TTL_MAX_MS = 315360000000\n\
local function lowest_above_zero(...)\n\
  local lowest = math.huge\n\
  for _, rate in ipairs({ ... }) do\n\
    if rate > 0 and rate < lowest then lowest = rate end\n\
  end\n\
  return lowest\n\
end\n\
local function ttl_ms(capacity, rate)\n\
  if not (rate > 0) or rate == math.huge then return TTL_MAX_MS end\n\
  return math.min(TTL_MAX_MS, math.ceil(capacity / rate * 1000) + TTL_MARGIN_MS)\n\
end\n\
local function bucket_ttl_ms(p)\n\
  return ttl_ms(\n\
    math.max(p.capacity, p.maxCapacity),\n\
    lowest_above_zero(p.minRate, p.probeRate, p.safeRate, p.rate)\n\
  )\n\
end\n\
local function subject_ttl_ms(p)\n\
  if p.subjectRate < 0 then return 0 end\n\
  local rate = p.subjectRate\n\
  if p.subjectFollow == 1 then\n\
    rate = rate * lowest_above_zero(p.minRate, p.safeRate, p.rate) / p.policyRate\n\
  end\n\
  return ttl_ms(p.subjectCapacity, rate)\n\
end\n\
local function kept_ms(kept, needed)\n\
  if needed <= kept and kept <= 4 * needed then return kept, false end\n\
  return math.min(TTL_MAX_MS, 2 * needed), needed > kept\n\
end\n\
local function in_force_text(p, e)\n\
  return string.format(\n\
    '1 %.0f %.0f %.0f %s %s %d %.17g %.17g %.17g %.17g %.17g',\n\
    p.epoch, p.revision, p.generation, p.mode, e.state, e.gliding and 1 or 0,\n\
    e.rate, e.capacity, e.inFlightMax, e.subjectRate, e.subjectCapacity\n\
  )\n\
end\n\
local function view_of(p, now)\n\
  local e = effective(p, now)\n\
  local untl = e.glide\n\
  if e.state == 'open' then untl = math.min(untl, e.opens) end\n\
  local since = p.changedAt\n\
  if e.state ~= 'open' then since = math.max(since, e.opens) end\n\
  local half_open = e.state == 'half-open'\n\
  return {\n\
    code = MODES[p.mode] + 4 * STATES[e.state] + 16 * (p.subjectRules or 0),\n\
    from = since,\n\
    untl = e.gliding and 0 or untl,\n\
    since = since,\n\
    accrued = p.accrued,\n\
    rate = e.rate,\n\
    capacity = e.capacity,\n\
    fullCapacity = p.capacity,\n\
    floor = p.floor,\n\
    reserveDefault = half_open and 0 or p.reserveDefault * e.capacity,\n\
    reserveSheddable = half_open and 0 or p.reserveSheddable * e.capacity,\n\
    ttlMs = p.keptMs,\n\
    subjectSince = p.changedAt,\n\
    subjectAccrued = p.subjectAccrued,\n\
    subjectRate = e.subjectRate,\n\
    subjectLowest = p.subjectFollow == 1 and math.min(e.subjectRate, p.subjectRate * p.rate / p.policyRate)\n\
      or e.subjectRate,\n\
    subjectCapacity = e.subjectCapacity,\n\
    subjectFloor = p.subjectFloor,\n\
    subjectTtlMs = p.subjectKeptMs,\n\
    openUntil = p.openUntil * 1000,\n\
    probeRate = p.probeRate,\n\
    tokens = e.tokens,\n\
    subjectTokens = e.subjectTokens,\n\
    text = in_force_text(p, e),\n\
  }\n\
end\n\
local FIRST, LEADING = 4, 2\n\
local call = redis.call\n\
local takes = #ARGV - FIRST\n\
local rich, shadow = ARGV[3] == '4' or ARGV[3] == '5', ARGV[3] == '1' or ARGV[3] == '5'\n\
local before_subjects = rich and LEADING + 3 or LEADING\n\
if takes < 0 or takes > 512 or #KEYS ~= (rich and takes or 0) + takes + before_subjects then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID one key and one argument for each take, at most 512')\n\
end\n\
local now, charge_by = now_us(ARGV[1]), ARGV[2]\n\
if charge_by ~= '' then charge_by = within(charge_by, -LARGEST, LARGEST) end\n\
if not now or not charge_by then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID nowUs and chargeByUs are µs, or empty')\n\
end\n\
local params_key = KEYS[1]\n\
local NONE = -1e300\n\
local hot = call('HGET', params_key, 'hot')\n\
local managed = hot and #hot > 160\n\
local code, from, untl, since, accrued, rate, capacity, full, floor, reserve_default, reserve_sheddable\n\
local ttl, subject_since, subject_accrued, subject_rate, subject_capacity, subject_floor, subject_ttl\n\
local open_until, probe_rate, text, clock, subject_clock, unmanaged_base\n\
if managed then\n\
  code, from, untl, since, accrued, rate, capacity, full, floor, reserve_default, reserve_sheddable,\n\
    ttl, subject_since, subject_accrued, subject_rate, subject_capacity, subject_floor, subject_ttl,\n\
    open_until, probe_rate = struct.unpack('<dddddddddddddddddddd', hot)\n\
  if now >= from and now < untl then\n\
    text = string.sub(hot, 161)\n\
    clock = accrued + rate * (now - since) / 1000000\n\
    subject_clock = subject_accrued\n\
    if subject_rate > 0 then subject_clock = subject_clock + subject_rate * (now - subject_since) / 1000000 end\n\
  end\n\
end\n\
local subject_lowest = subject_rate\n\
if not text then\n\
  local p = read_params(params_key)\n\
  managed = p and true\n\
  if p then\n\
    local v = view_of(p, now)\n\
    code, rate, capacity, full, text = v.code, v.rate, v.capacity, v.fullCapacity, v.text\n\
    clock, subject_clock, ttl, subject_ttl = v.tokens, v.subjectTokens, v.ttlMs, v.subjectTtlMs\n\
    reserve_default, reserve_sheddable = v.reserveDefault, v.reserveSheddable\n\
    subject_rate, subject_capacity = v.subjectRate, v.subjectCapacity\n\
    open_until, probe_rate = v.openUntil, v.probeRate\n\
    floor, subject_floor = v.floor, v.subjectFloor\n\
    subject_since, subject_lowest = v.subjectSince, v.subjectLowest\n\
  else\n\
    local number = '(%d+%.?%d*[eE]?[%+%-]?%d*)'\n\
    local r, c, f, sr, sc = string.match(\n\
      ARGV[4],\n\
      '^' .. number .. ' ' .. number .. ' ' .. number .. ' (%-?%d+%.?%d*[eE]?[%+%-]?%d*) ' .. number .. '$'\n\
    )\n\
    rate, capacity, subject_rate, subject_capacity = tonumber(r), tonumber(c), tonumber(sr), tonumber(sc)\n\
    local cap = tonumber(f)\n\
    local sum = rate and capacity and cap and subject_rate and subject_capacity\n\
      and rate + capacity + cap + subject_rate + subject_capacity\n\
    if not sum or sum > 9007199254740992 then\n\
      return redis.error_reply('FLYBALL_E_CALL_INVALID fallback is five numbers: ' .. ARGV[4])\n\
    end\n\
    code = (ARGV[3] == '1' or ARGV[3] == '3') and 1 or 2\n\
    full, floor, subject_floor = capacity, NONE, NONE\n\
    clock, subject_clock = 0, 0\n\
    reserve_default, reserve_sheddable, open_until, probe_rate = 0, 0, 0, 0\n\
    local function life(most, per_second)\n\
      if not (per_second > 0) then return 86400000 end\n\
      return math.min(86400000 * 3650, math.ceil(most / per_second * 1000) + 1000)\n\
    end\n\
    ttl, subject_ttl = life(capacity, rate), life(subject_capacity, subject_rate)\n\
    text = string.format(\n\
      '0 0 0 0 %s closed 0 %.17g %.17g %.17g %.17g %.17g',\n\
      code == 1 and 'shadow' or 'recommend', rate, capacity, cap, subject_rate, subject_capacity\n\
    )\n\
    function unmanaged_base(mark, per_second)\n\
      local held, at = string.match(mark, '^u:(%d+%.?%d*[eE]?[%+%-]?%d*):(%d+)$')\n\
      held, at = tonumber(held), tonumber(at)\n\
      if not held or not at then return 0, true end\n\
      return -(held + per_second * math.max(0, now - at) / 1000000), at > now\n\
    end\n\
  end\n\
end\n\
if charge_by ~= '' and now > charge_by then return { 1, now, text } end\n\
if (managed and code >= 16 or false) ~= rich then return { 3, now, text } end\n\
code = code % 16\n\
local mode = code % 4\n\
if managed and mode ~= 0 and (mode == 1) ~= shadow then return { 2, now, text } end\n\
local state = (code - mode) / 4\n\
local open, probing = state == 1, state == 2\n\
local total_key = KEYS[2]\n\
local reply = { 0, now, text }\n\
local costs, reserves\n\
local function whole_ms(us)\n\
  if not us or us > 315360000000000 then return -1 end\n\
  return math.max(1, math.ceil(us / 1000))\n\
end\n\
local MOST_RATE, MOST_CAPACITY = 1000000, 1000000000\n\
local function part_of(text, most)\n\
  return within(text, 1e-9, most)\n\
end\n\
local function override_of(text, now)\n\
  local kind, ends, rate, capacity = string.match(text or '', '^(%l+) (%-?%d+) (%S+) (%S+)')\n\
  ends = within(ends, -1, LARGEST)\n\
  if not ends or ends ~= -1 and ends * 1000 <= now then return nil end\n\
  rate, capacity = part_of(rate, MOST_RATE), part_of(capacity, MOST_CAPACITY)\n\
  if kind == 'limit' and not rate and not capacity or kind ~= 'limit' and kind ~= 'block' and kind ~= 'exempt' then\n\
    return nil\n\
  end\n\
  return { kind = kind, ends = ends, rate = rate, capacity = capacity, numbers = kind == 'limit' }\n\
end\n\
local function steps_of(terms)\n\
  local steps = {}\n\
  for times, capacity, rate in string.gmatch(terms, 'step=(%d+):([^: ]+):([^: ]+)') do\n\
    steps[#steps + 1] = {\n\
      kind = 'tier', times = tonumber(times), ends = 0, rate = part_of(rate, MOST_RATE),\n\
      capacity = part_of(capacity, MOST_CAPACITY),\n\
      numbers = true,\n\
    }\n\
  end\n\
  return steps\n\
end\n\
local function tier_of(steps, streak)\n\
  local tier = 0\n\
  for i = 1, #steps do\n\
    if streak and streak >= steps[i].times then tier = i end\n\
  end\n\
  return tier\n\
end\n\
local overrides_key, index_key, shared_key = KEYS[LEADING + 1], KEYS[LEADING + 2], KEYS[LEADING + 3]\n\
local terms = rich and call('HGET', KEYS[1], 'subjectTerms') or ''\n\
local most = tonumber(string.match(terms, 'max=(%d+)') or '')\n\
local steps = steps_of(terms)\n\
local rules = {}\n\
local function rule_of(i)\n\
  local key = KEYS[before_subjects + i]\n\
  local rule = rules[key]\n\
  if rule ~= nil then return rule end\n\
  rule = override_of(call('HGET', overrides_key, string.sub(key, #total_key + 2)), now)\n\
  if not rule and steps[1] then\n\
    rule = steps[tier_of(steps, tonumber(call('GET', KEYS[before_subjects + takes + i]) or ''))]\n\
  end\n\
  rules[key] = rule or false\n\
  return rules[key]\n\
end\n\
local live\n\
local function room_for(life_ms, tidy)\n\
  live = live or call('ZCARD', index_key)\n\
  if live < most or not tidy then return live < most end\n\
  local due = call('ZRANGEBYSCORE', index_key, '-inf', string.format('%.0f', now / 1000), 'LIMIT', 0, 8)\n\
  for j = 1, #due do\n\
    if call('EXISTS', total_key .. ':' .. due[j]) == 1 then\n\
      call('ZADD', index_key, string.format('%.0f', now / 1000 + life_ms), due[j])\n\
    else\n\
      call('ZREM', index_key, due[j])\n\
      live = live - 1\n\
    end\n\
  end\n\
  return live < most\n\
end\n\
local function came(key, life_ms)\n\
  live = live or call('ZCARD', index_key)\n\
  live = live + call('ZADD', index_key, string.format('%.0f', now / 1000 + life_ms), string.sub(key, #total_key + 2))\n\
  call('PEXPIRE', index_key, string.format('%.0f', math.min(315360000000, math.max(86400000, 4 * life_ms))))\n\
end\n\
local function slack_at(v)\n\
  return 0.0000005 + (v > 0 and v or 0) * 4.4408920985006262e-16\n\
end\n\
local function open_queue(key, v, per_second, most, life)\n\
  local q = { key = key, v = v, rate = per_second, most = most, life = life, level = 0, slack = slack_at(v) }\n\
  local stored = call('GET', key)\n\
  if not stored then\n\
    q.fresh = true\n\
    return q\n\
  end\n\
  local level, at = string.match(stored, '^u:(%d+%.?%d*[eE]?[%+%-]?%d*):(%d+)$')\n\
  level = tonumber(level)\n\
  if level then\n\
    level = level - per_second * math.max(0, now - tonumber(at)) / 1000000\n\
    q.ahead = tonumber(at) > now\n\
  elseif managed then\n\
    level = tonumber(stored)\n\
    level = level and level - v\n\
  end\n\
  if not level or not (level <= most + q.slack) then level, q.ahead = most, true end\n\
  q.level = math.max(0, level)\n\
  return q\n\
end\n\
local opened, order = {}, {}\n\
local function queue_of(key, ...)\n\
  local q = opened[key]\n\
  if not q then\n\
    q = open_queue(key, ...)\n\
    opened[key] = q\n\
    order[#order + 1] = q\n\
  end\n\
  return q\n\
end\n\
local function leak_us(q, tokens)\n\
  if tokens <= q.slack then return 0 end\n\
  return q.rate > 0 and tokens / q.rate * 1000000 or nil\n\
end\n\
for i = 1, takes do\n\
  local arg, key = ARGV[FIRST + i], KEYS[before_subjects + i]\n\
  local cost, reserve = 1, reserve_default\n\
  if arg ~= '1' then\n\
    cost = costs and costs[arg]\n\
    if not cost then\n\
      costs = costs or {}\n\
      reserves = reserves or {}\n\
      local digits, priority = string.match(arg, '^(%d+%.?%d*) ?(%l*)$')\n\
      cost = -1\n\
      reserves[arg] = 0\n\
      if digits and #digits <= 16 and #arg == #digits + #priority + (priority == '' and 0 or 1)\n\
        and (priority == '' or priority == 'critical' or priority == 'sheddable') then\n\
        if digits == '0' or string.find(digits, '^[1-9]%d*$')\n\
          or (string.find(digits, '^%d+%.%d%d?%d?%d?%d?%d?$') and not string.find(digits, '^0%d')\n\
            and tonumber(digits) > 0) then\n\
          cost = tonumber(digits)\n\
        end\n\
        if priority == '' then\n\
          reserves[arg] = reserve_default\n\
        elseif priority == 'sheddable' then\n\
          reserves[arg] = reserve_sheddable\n\
        end\n\
      end\n\
      costs[arg] = cost\n\
    end\n\
    reserve = reserves[arg]\n\
  end\n\
  local rule = rich and mode > 0 and key ~= total_key and rule_of(i) or nil\n\
  local kind, shared = rule and rule.kind, false\n\
  local exempt = kind == 'exempt' and not probing\n\
  local reason, ms, left = 0, 0, capacity\n\
  if cost < 0 then\n\
    reason, ms, left = 8, -1, 0\n\
  elseif mode == 0 then\n\
    reason = 1\n\
  elseif kind == 'block' then\n\
    reason, left = 9, 0\n\
    ms = rule.ends == -1 and -1 or whole_ms(rule.ends * 1000 - now)\n\
  elseif open then\n\
    reason, left = 4, 0\n\
    ms = open_until < 0 and -1 or whole_ms(open_until - now)\n\
  else\n\
    local total = queue_of(total_key, clock, rate, capacity, ttl)\n\
    local own = subject_rate >= 0 and key ~= total_key and kind ~= 'exempt'\n\
      and queue_of(key, subject_clock, subject_rate, subject_capacity, subject_ttl)\n\
    if own and most and not rule and own.fresh and not own.came and not room_for(subject_ttl, cost > 0) then\n\
      own = queue_of(shared_key, subject_clock, subject_rate, subject_capacity, subject_ttl)\n\
      shared = true\n\
    end\n\
    left = capacity - total.level\n\
    if cost > 0 then\n\
      total.touched = true\n\
      if own then own.touched = true end\n\
    end\n\
    if not exempt and cost > full or own and cost > subject_capacity then\n\
      reason, ms = 7, -1\n\
    else\n\
      local us = 0\n\
      local short = cost + reserve - left\n\
      if not exempt and (short > total.slack or cost > 0 and rate <= 0) then\n\
        reason = cost - left <= total.slack and rate > 0 and 6 or probing and 5 or 2\n\
        us = rate > 0 and cost + reserve <= capacity + total.slack and leak_us(total, short)\n\
      end\n\
      short = own and cost + own.level - subject_capacity or 0\n\
      if own and (short > own.slack or cost > 0 and subject_rate <= 0) then\n\
        local more = subject_rate > 0 and leak_us(own, short)\n\
        reason, us = 3, us and more and math.max(us, more)\n\
      end\n\
      if reason > 0 then ms = whole_ms(us) end\n\
    end\n\
    if reason == 0 and cost > 0 then\n\
      local us = leak_us(total, total.level) or 0\n\
      if own then us = math.max(us, leak_us(own, own.level)) end\n\
      if us > 0 then ms = math.ceil(us / 1000) end\n\
      total.level = total.level + (exempt and math.max(0, math.min(cost, capacity - total.level)) or cost)\n\
      total.changed = true\n\
      if own then own.level, own.changed = own.level + cost, true end\n\
      if own and most and not rule and own.fresh and not shared and not own.came then\n\
        own.came = true\n\
        came(key, subject_ttl)\n\
      end\n\
      left = left - cost\n\
    end\n\
    if own then left = math.min(left, subject_capacity - own.level) end\n\
  end\n\
  if exempt and reason == 0 then reason = 10 end\n\
  local at = 3 * i + 1\n\
  reply[at], reply[at + 1] = reason + (shared and 32 or 0), math.max(0, math.floor(left + 0.0000005))\n\
  reply[at + 2] = ms\n\
end\n\
for i = 1, #order do\n\
  local q = order[i]\n\
  if q.changed or q.ahead and q.touched then\n\
    local mark = managed and string.format('%.17g', q.v + q.level) or string.format('u:%.17g:%.0f', q.level, now)\n\
    call('SET', q.key, mark, 'PX', q.life)\n\
  end\n\
end\n\
return reply\n\
",
};

/** Keys of `refund`, in order. */
export type RefundKeys = [params: string, ...key: string[]];
/** Arguments of `refund`, in order. */
export type RefundArgs = [nowUs: ScriptArg, dueUs: ScriptArg, shadow: ScriptArg, fallback: ScriptArg, ...refund: ScriptArg[]];
/**
 * gives back what takes took, each once, never above the capacity; nothing when too late to know what it was. A refund is dropped an hour after its take, and in another epoch. A bucket gets nothing that its take took before it was emptied (a trip, a reset, a rate of 0), nor the total anything while the breaker is not closed: what was probed stays probed. A window gets back only what it still counts. The total and the subject are told apart in this.
 * Returns [status, nowUs, then for each: 0 given back, 1 was so before, 2 too late, 3 moved on]; status 0, or 1: late. O(n) in the refunds; for a log also in the entries since the take, at most 2,000,
  and 20,000 in all.
 */
export const refundScript: Script<RefundKeys, RefundArgs> = {
  name: 'refund',
  sha: '3d99f9d28858567d467326d1f324e8c18a19954b',
  lua: "-- flyball refund\n\
local LARGEST = 9007199254740992\n\
local LEASE_MAX_MS = 315360000000\n\
local function finite(text)\n\
  if type(text) ~= 'string' or #text > 32 then return nil end\n\
  if not string.find(text, '^%-?%d+%.?%d*$')\n\
    and not string.find(text, '^%-?%d+%.?%d*[eE][%+%-]?%d+$') then\n\
    return nil\n\
  end\n\
  local n = tonumber(text)\n\
  if not n or n ~= n or n == math.huge or n == -math.huge then return nil end\n\
  return n\n\
end\n\
local function within(text, least, most)\n\
  local n = finite(text)\n\
  if n and n >= least and n <= most then return n end\n\
end\n\
local function count(text)\n\
  local n = within(text, 0, LARGEST)\n\
  if n and n % 1 == 0 then return n end\n\
end\n\
local function exact(n)\n\
  return string.format('%.17g', n)\n\
end\n\
local function now_us(given)\n\
  if given ~= '' then return within(given, -LARGEST, LARGEST) end\n\
  local time = redis.call('TIME')\n\
  return time[1] * 1000000 + time[2]\n\
end\n\
local MODES = { off = 0, shadow = 1, recommend = 2, auto = 3 }\n\
local STATES = { closed = 0, open = 1, ['half-open'] = 2, recovering = 3 }\n\
local TEXT = {\n\
  mode = true, state = true, heldBy = true, policyHash = true, onRedisError = true, subject = true,\n\
  algorithm = true, terms = true, rollout = true, subjectTerms = true, windows = true,\n\
  byPerson = true, canary = true,\n\
}\n\
local NEEDED = {\n\
  'v', 'mode', 'state', 'epoch', 'revision', 'generation', 'rate', 'capacity', 'inFlightMax', 'subjectRate',\n\
  'subjectCapacity', 'subjectFollow', 'policyRate', 'minRate', 'maxRate', 'minCapacity', 'maxCapacity',\n\
  'minInFlight', 'maxInFlight', 'accrued', 'changedAt', 'subjectAccrued', 'floor', 'subjectFloor',\n\
  'openUntil', 'openForMs', 'probeRate', 'validUntil', 'lostAfterMs', 'lostOverMs', 'safeRate',\n\
  'safeInFlight', 'reserveDefault', 'reserveSheddable', 'frozenUntil', 'pinnedUntil', 'holdBreaker',\n\
  'heldBy', 'fence', 'policyHash',\n\
}\n\
local LATER_NUMBERS = { windowMs = true, cells = true, subjectRules = true }\n\
local COUNTS = { 'epoch', 'revision', 'generation', 'fence' }\n\
local NOT_BELOW_ZERO = {\n\
  'rate', 'capacity', 'inFlightMax', 'subjectCapacity', 'policyRate', 'probeRate', 'safeRate', 'safeInFlight',\n\
  'lostAfterMs', 'lostOverMs',\n\
}\n\
local function readable(p)\n\
  for i = 1, #NEEDED do\n\
    if p[NEEDED[i]] == nil then return false end\n\
  end\n\
  if not MODES[p.mode] or not STATES[p.state] then return false end\n\
  for i = 1, #COUNTS do\n\
    local n = p[COUNTS[i]]\n\
    if n < 0 or n > 9007199254740992 or n % 1 ~= 0 then return false end\n\
  end\n\
  for i = 1, #NOT_BELOW_ZERO do\n\
    if p[NOT_BELOW_ZERO[i]] < 0 then return false end\n\
  end\n\
  return true\n\
end\n\
local function read_params(key)\n\
  local flat = redis.call('HGETALL', key)\n\
  if #flat == 0 then return nil end\n\
  local p = {}\n\
  for i = 1, #flat, 2 do\n\
    local field, value = flat[i], flat[i + 1]\n\
    if TEXT[field] then\n\
      p[field] = value\n\
    elseif field ~= 'hot' then\n\
      value = not string.find(value, '[^%d%.eE%+%-]') and tonumber(value)\n\
      if value and value - value == 0 then\n\
        p[field] = value\n\
      elseif LATER_NUMBERS[field] then\n\
        return nil\n\
      end\n\
    end\n\
  end\n\
  for _, field in ipairs({ 'keptMs', 'subjectKeptMs' }) do\n\
    if not p[field] or p[field] < 0 or p[field] % 1 ~= 0 then p[field] = 315360000000 end\n\
  end\n\
  return readable(p) and p or nil\n\
end\n\
local NEVER = 9007199254740992\n\
local function glide_start(p)\n\
  if p.pinnedUntil == -1 or p.frozenUntil == -1 then return NEVER end\n\
  local start = math.max(p.validUntil, p.pinnedUntil, p.frozenUntil)\n\
  if p.state == 'open' then\n\
    if p.openUntil == -1 then return NEVER end\n\
    start = math.max(start, p.openUntil)\n\
  end\n\
  return (start + p.lostAfterMs) * 1000\n\
end\n\
local function is_open(p, now)\n\
  if p.state ~= 'open' then return false end\n\
  if p.openUntil == -1 then return true end\n\
  local left = p.openUntil * 1000 - now\n\
  return left > 0 and left <= p.openForMs * 1000\n\
end\n\
local function paid(base, safe, from, to, opens, glide, over)\n\
  local sum = 0\n\
  local start = math.max(from, opens)\n\
  local stop = math.min(to, glide)\n\
  if stop > start then sum = base * (stop - start) end\n\
  local finish = glide + over\n\
  local left = math.max(from, glide)\n\
  local right = math.min(to, finish)\n\
  if right > left then\n\
    local first = base + (safe - base) * ((left - glide) / over)\n\
    local last = base + (safe - base) * ((right - glide) / over)\n\
    sum = sum + (first + last) / 2 * (right - left)\n\
  end\n\
  local after = math.max(from, finish)\n\
  if to > after then sum = sum + safe * (to - after) end\n\
  return sum / 1000000\n\
end\n\
local function effective(p, now)\n\
  local open = is_open(p, now)\n\
  local probing = not open and (p.state == 'open' or p.state == 'half-open')\n\
  local glide = glide_start(p)\n\
  local over = p.lostOverMs * 1000\n\
  local gliding = now >= glide\n\
  local share = 0\n\
  if gliding then share = now >= glide + over and 1 or (now - glide) / over end\n\
  local stopped = p.state == 'open' or p.state == 'half-open'\n\
  local base = stopped and p.probeRate or p.rate\n\
  local rate = open and 0 or base + (p.safeRate - base) * share\n\
  local capacity = p.capacity\n\
  if probing then\n\
    local narrow = math.min(capacity, math.max(1, p.probeRate))\n\
    capacity = narrow + (capacity - narrow) * share\n\
  end\n\
  local cap = p.inFlightMax\n\
  if cap > 0 and p.safeInFlight > 0 then\n\
    cap = math.floor(cap + (p.safeInFlight - cap) * share + 0.5)\n\
  end\n\
  local scale, safe_scale = 1, 1\n\
  if p.subjectFollow == 1 then\n\
    scale = p.rate / p.policyRate\n\
    safe_scale = p.safeRate / p.policyRate\n\
  end\n\
  local none = p.subjectRate < 0\n\
  local subject_base = none and 0 or p.subjectRate * scale\n\
  local subject_safe = none and 0 or p.subjectRate * safe_scale\n\
  local subject_rate = subject_base + (subject_safe - subject_base) * share\n\
  local opens = 0\n\
  if open then\n\
    opens = p.openUntil == -1 and NEVER or p.openUntil * 1000\n\
  elseif p.state == 'open' and p.openUntil * 1000 <= now then\n\
    opens = p.openUntil * 1000\n\
  end\n\
  local tokens, subject_tokens\n\
  if now < p.changedAt then\n\
    tokens = p.accrued - rate * (p.changedAt - now) / 1000000\n\
    subject_tokens = p.subjectAccrued - subject_rate * (p.changedAt - now) / 1000000\n\
  else\n\
    tokens = p.accrued + paid(base, p.safeRate, p.changedAt, now, opens, glide, over)\n\
    subject_tokens = p.subjectAccrued\n\
      + paid(subject_base, subject_safe, p.changedAt, now, 0, glide, over)\n\
  end\n\
  local state = p.state\n\
  if probing then state = gliding and 'recovering' or 'half-open' end\n\
  return {\n\
    state = state,\n\
    gliding = gliding,\n\
    rate = rate,\n\
    capacity = capacity,\n\
    inFlightMax = cap,\n\
    subjectRate = none and -1 or subject_rate,\n\
    subjectCapacity = p.subjectCapacity,\n\
    tokens = tokens,\n\
    subjectTokens = subject_tokens,\n\
    opens = opens,\n\
    glide = glide,\n\
  }\n\
end\n\
local TTL_MARGIN_MS = 1000\n\
local TTL_MAX_MS = 315360000000\n\
local function lowest_above_zero(...)\n\
  local lowest = math.huge\n\
  for _, rate in ipairs({ ... }) do\n\
    if rate > 0 and rate < lowest then lowest = rate end\n\
  end\n\
  return lowest\n\
end\n\
local function ttl_ms(capacity, rate)\n\
  if not (rate > 0) or rate == math.huge then return TTL_MAX_MS end\n\
  return math.min(TTL_MAX_MS, math.ceil(capacity / rate * 1000) + TTL_MARGIN_MS)\n\
end\n\
local function bucket_ttl_ms(p)\n\
  return ttl_ms(\n\
    math.max(p.capacity, p.maxCapacity),\n\
    lowest_above_zero(p.minRate, p.probeRate, p.safeRate, p.rate)\n\
  )\n\
end\n\
local function subject_ttl_ms(p)\n\
  if p.subjectRate < 0 then return 0 end\n\
  local rate = p.subjectRate\n\
  if p.subjectFollow == 1 then\n\
    rate = rate * lowest_above_zero(p.minRate, p.safeRate, p.rate) / p.policyRate\n\
  end\n\
  return ttl_ms(p.subjectCapacity, rate)\n\
end\n\
local function kept_ms(kept, needed)\n\
  if needed <= kept and kept <= 4 * needed then return kept, false end\n\
  return math.min(TTL_MAX_MS, 2 * needed), needed > kept\n\
end\n\
local function in_force_text(p, e)\n\
  return string.format(\n\
    '1 %.0f %.0f %.0f %s %s %d %.17g %.17g %.17g %.17g %.17g',\n\
    p.epoch, p.revision, p.generation, p.mode, e.state, e.gliding and 1 or 0,\n\
    e.rate, e.capacity, e.inFlightMax, e.subjectRate, e.subjectCapacity\n\
  )\n\
end\n\
local function view_of(p, now)\n\
  local e = effective(p, now)\n\
  local untl = e.glide\n\
  if e.state == 'open' then untl = math.min(untl, e.opens) end\n\
  local since = p.changedAt\n\
  if e.state ~= 'open' then since = math.max(since, e.opens) end\n\
  local half_open = e.state == 'half-open'\n\
  return {\n\
    code = MODES[p.mode] + 4 * STATES[e.state] + 16 * (p.subjectRules or 0),\n\
    from = since,\n\
    untl = e.gliding and 0 or untl,\n\
    since = since,\n\
    accrued = p.accrued,\n\
    rate = e.rate,\n\
    capacity = e.capacity,\n\
    fullCapacity = p.capacity,\n\
    floor = p.floor,\n\
    reserveDefault = half_open and 0 or p.reserveDefault * e.capacity,\n\
    reserveSheddable = half_open and 0 or p.reserveSheddable * e.capacity,\n\
    ttlMs = p.keptMs,\n\
    subjectSince = p.changedAt,\n\
    subjectAccrued = p.subjectAccrued,\n\
    subjectRate = e.subjectRate,\n\
    subjectLowest = p.subjectFollow == 1 and math.min(e.subjectRate, p.subjectRate * p.rate / p.policyRate)\n\
      or e.subjectRate,\n\
    subjectCapacity = e.subjectCapacity,\n\
    subjectFloor = p.subjectFloor,\n\
    subjectTtlMs = p.subjectKeptMs,\n\
    openUntil = p.openUntil * 1000,\n\
    probeRate = p.probeRate,\n\
    tokens = e.tokens,\n\
    subjectTokens = e.subjectTokens,\n\
    text = in_force_text(p, e),\n\
  }\n\
end\n\
local call = redis.call\n\
local refunds = #ARGV - 4\n\
if refunds < 0 or refunds > 128 or #KEYS ~= 3 * refunds + 1 then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID three keys and one argument for each refund, at most 128')\n\
end\n\
local now, due = now_us(ARGV[1]), ARGV[2]\n\
if due ~= '' then due = within(due, -LARGEST, LARGEST) end\n\
if not now or not due then return redis.error_reply('FLYBALL_E_CALL_INVALID nowUs and dueUs are µs, or empty') end\n\
if due ~= '' and now > due then return { 1, now } end\n\
local LIFE_US, AHEAD_US = 3600000000, 1000000\n\
local NONE = -1e300\n\
local p = read_params(KEYS[1])\n\
local managed = p and true\n\
local code, rate, capacity, full, floor, subject_floor, clock, subject_clock, ttl, subject_ttl, text\n\
local subject_rate, subject_capacity, reserve_default, reserve_sheddable, open_until, probe_rate, unmanaged_base\n\
local epoch, generation, closed = 0, 0, true\n\
if p then\n\
  local v = view_of(p, now)\n\
  local e = effective(p, now)\n\
  rate, capacity, floor, clock, ttl = v.rate, v.capacity, v.floor, v.tokens, v.ttlMs\n\
  subject_rate, subject_capacity, subject_floor = v.subjectRate, v.subjectCapacity, v.subjectFloor\n\
  subject_clock, subject_ttl = v.subjectTokens, v.subjectTtlMs\n\
  epoch, generation, closed = p.epoch, p.generation, e.state == 'closed' or e.state == 'recovering'\n\
else\n\
  local number = '(%d+%.?%d*[eE]?[%+%-]?%d*)'\n\
  local r, c, f, sr, sc = string.match(\n\
    ARGV[4],\n\
    '^' .. number .. ' ' .. number .. ' ' .. number .. ' (%-?%d+%.?%d*[eE]?[%+%-]?%d*) ' .. number .. '$'\n\
  )\n\
  rate, capacity, subject_rate, subject_capacity = tonumber(r), tonumber(c), tonumber(sr), tonumber(sc)\n\
  local cap = tonumber(f)\n\
  local sum = rate and capacity and cap and subject_rate and subject_capacity\n\
    and rate + capacity + cap + subject_rate + subject_capacity\n\
  if not sum or sum > 9007199254740992 then\n\
    return redis.error_reply('FLYBALL_E_CALL_INVALID fallback is five numbers: ' .. ARGV[4])\n\
  end\n\
  code = (ARGV[3] == '1' or ARGV[3] == '3') and 1 or 2\n\
  full, floor, subject_floor = capacity, NONE, NONE\n\
  clock, subject_clock = 0, 0\n\
  reserve_default, reserve_sheddable, open_until, probe_rate = 0, 0, 0, 0\n\
  local function life(most, per_second)\n\
    if not (per_second > 0) then return 86400000 end\n\
    return math.min(86400000 * 3650, math.ceil(most / per_second * 1000) + 1000)\n\
  end\n\
  ttl, subject_ttl = life(capacity, rate), life(subject_capacity, subject_rate)\n\
  text = string.format(\n\
    '0 0 0 0 %s closed 0 %.17g %.17g %.17g %.17g %.17g',\n\
    code == 1 and 'shadow' or 'recommend', rate, capacity, cap, subject_rate, subject_capacity\n\
  )\n\
  function unmanaged_base(mark, per_second)\n\
    local held, at = string.match(mark, '^u:(%d+%.?%d*[eE]?[%+%-]?%d*):(%d+)$')\n\
    held, at = tonumber(held), tonumber(at)\n\
    if not held or not at then return 0, true end\n\
    return -(held + per_second * math.max(0, now - at) / 1000000), at > now\n\
  end\n\
end\n\
local function kept_since(at, accrued, its_floor, most)\n\
  return not p or at >= p.changedAt or its_floor <= accrued - most * (p.changedAt - at) / 1000000\n\
end\n\
local function nothing_more() end\n\
local function bucket(key, v, per_second, most, its_floor, life, cost)\n\
  local mark = call('GET', key)\n\
  local bound = per_second >= 0\n\
  if not mark then return bound and nothing_more or nil end\n\
  local slack = 0.0000005 + (v > 0 and v or 0) * 4.4408920985006262e-16\n\
  local base, skewed\n\
  local held, numbers, room = string.match(mark, '^o:(%-?%d[^:]*)(:%d+:%-?%d[^:]*:[^:]+:(%d[^:]*):%-?%d+)$')\n\
  if managed and held and tonumber(held) and tonumber(room) then\n\
    local tokens = math.max(tonumber(held), math.min(tonumber(room), held + cost))\n\
    return function() call('SET', key, 'o:' .. exact(tokens) .. numbers, 'KEEPTTL') end\n\
  end\n\
  if not bound then return nil end\n\
  if managed then\n\
    base = tonumber(mark)\n\
    if not base or not (base <= v + slack) then return nil end\n\
    if its_floor > v + slack then its_floor = NONE end\n\
  else\n\
    base, skewed = unmanaged_base(mark, per_second)\n\
    if skewed then return nil end\n\
  end\n\
  local back = math.max(base - cost, v - most, its_floor)\n\
  if back >= base then return nothing_more end\n\
  return function()\n\
    local text_of = managed and '%.17g' or 'u:%.17g:%.0f'\n\
    call('SET', key, string.format(text_of, managed and back or -back, now), 'PX', life)\n\
  end\n\
end\n\
local function fixed_window(key, r)\n\
  local stop, used = string.match(call('GET', key) or '', '^(%d+) (%d+)$')\n\
  stop, used = tonumber(stop), tonumber(used)\n\
  if not stop or stop <= now or r.at >= stop or r.at < stop - r.window or used < r.micros or used > LARGEST then\n\
    return nil\n\
  end\n\
  return function()\n\
    call('SET', key, string.format('%.0f %.0f', stop, used - r.micros), 'KEEPTTL')\n\
  end\n\
end\n\
local function cell_window(key, r)\n\
  local stored = call('GET', key)\n\
  if not stored or r.cells < 1 or #stored ~= 8 * (r.cells + 3) then return nil end\n\
  local newest, width = struct.unpack('<dd', stored)\n\
  local cell = math.floor(r.at / width)\n\
  local from = 8 * (newest - cell) + 16\n\
  if width ~= math.ceil(r.window / r.cells) or newest % 1 ~= 0 or cell > newest or from >= #stored\n\
    or math.floor(now / width) - cell > r.cells or newest * width > now then\n\
    return nil\n\
  end\n\
  local taken = struct.unpack('<d', stored, from + 1)\n\
  if not (taken >= r.micros and taken <= LARGEST) then return nil end\n\
  return function()\n\
    local left = struct.pack('<d', taken - r.micros)\n\
    call('SET', key, string.sub(stored, 1, from) .. left .. string.sub(stored, from + 9), 'KEEPTTL')\n\
  end\n\
end\n\
local MOST, ALL = 2000, 4503599627370496\n\
local MOST_OF_CALL, read = 20000, 0\n\
local earliest, logs = {}, {}\n\
local strange\n\
local function read_entry(text)\n\
  if #text == 16 then return struct.unpack('<dd', text) end\n\
  strange = true\n\
  return 0, 0\n\
end\n\
local function entry(key, index)\n\
  return read_entry(call('LINDEX', key, index))\n\
end\n\
local function open_log(key)\n\
  local log = { from = 1, times = {}, sums = {}, cut = {}, n = 0 }\n\
  logs[key] = log\n\
  local n = call('LLEN', key)\n\
  strange = false\n\
  if n < 2 or entry(key, n - 1) > now then return log end\n\
  local low, high = math.max(1, n - MOST), n\n\
  for _ = 1, 32 do\n\
    if low >= high then break end\n\
    local middle = math.floor((low + high) / 2)\n\
    if entry(key, middle) >= earliest[key] then high = middle else low = middle + 1 end\n\
  end\n\
  if read + n - low > MOST_OF_CALL then return log end\n\
  read = read + n - low\n\
  local _, before = entry(key, low - 1)\n\
  log.from, log.sums[0] = low, before\n\
  local raw = call('LRANGE', key, low, -1)\n\
  for i = 1, #raw do log.times[i], log.sums[i] = read_entry(raw[i]) end\n\
  if strange then return log end\n\
  log.n = #raw\n\
  log.since = low > 1 and entry(key, low - 1) or NONE\n\
  return log\n\
end\n\
local function log_window(key, r)\n\
  local log = logs[key] or open_log(key)\n\
  if log.n == 0 or r.at <= log.since or r.at <= now - r.window then return nil end\n\
  local low, high = 1, log.n + 1\n\
  for _ = 1, 32 do\n\
    if low >= high then break end\n\
    local middle = math.floor((low + high) / 2)\n\
    if log.times[middle] >= r.at then high = middle else low = middle + 1 end\n\
  end\n\
  if low > log.n then return nil end\n\
  local cut = log.cut[low] or 0\n\
  if not ((log.sums[low] - log.sums[low - 1]) % ALL - cut >= r.micros) then return nil end\n\
  return function()\n\
    log.cut[low], log.changed = cut + r.micros, true\n\
  end\n\
end\n\
local function save_log(key, log)\n\
  local out, cut = {}, 0\n\
  for i = 1, log.n do\n\
    cut = cut + (log.cut[i] or 0)\n\
    out[i] = struct.pack('<dd', log.times[i], (log.sums[i] - cut) % ALL)\n\
  end\n\
  call('LTRIM', key, 0, log.from - 1)\n\
  call('RPUSH', key, unpack(out))\n\
end\n\
local WINDOWS = { wf = fixed_window, wc = cell_window, wl = log_window }\n\
local parsed = {}\n\
for i = 1, refunds do\n\
  local kind, at, its_epoch, its_generation, cost, window, cells, marked =\n\
    string.match(ARGV[4 + i], '^(%l%l?) (%d+) (%d+) (%d+) (%d+%.?%d*) (%d+) (%d+) ([01])$')\n\
  local r = {\n\
    at = tonumber(at), epoch = tonumber(its_epoch), generation = tonumber(its_generation), cost = tonumber(cost),\n\
    window = (tonumber(window) or 0) * 1000, cells = tonumber(cells), marked = marked == '1', kind = kind,\n\
  }\n\
  if not kind or not (kind == 'b' or WINDOWS[kind]) or r.at > LARGEST or not (r.cost > 0 and r.cost <= 1000000000) then\n\
    return redis.error_reply(\n\
      'FLYBALL_E_CALL_INVALID a refund is `kind atUs epoch generation cost windowMs cells marked`'\n\
    )\n\
  end\n\
  r.micros = math.floor(r.cost * 1000000 + 0.5)\n\
  parsed[i] = r\n\
  if kind == 'wl' then\n\
    for k = 3 * i, 3 * i + 1 do earliest[KEYS[k]] = math.min(earliest[KEYS[k]] or r.at, r.at) end\n\
  end\n\
end\n\
local reply = { 0, now }\n\
for i = 1, refunds do\n\
  local r = parsed[i]\n\
  local mark, total_key, subject_key = KEYS[3 * i - 1], KEYS[3 * i], KEYS[3 * i + 1]\n\
  local answer, give_total, give_own = 3, nil, nil\n\
  if now - r.at > LIFE_US then\n\
    answer = 2\n\
  elseif r.marked and call('GET', mark) then\n\
    answer = 1\n\
  elseif r.at - now <= AHEAD_US and r.epoch == epoch then\n\
    if r.kind ~= 'b' then\n\
      give_total = WINDOWS[r.kind](total_key, r)\n\
      if subject_key ~= total_key then give_own = WINDOWS[r.kind](subject_key, r) end\n\
    else\n\
      local most = p and math.max(p.rate, p.maxRate, p.safeRate, p.probeRate)\n\
      if closed and r.generation == generation and kept_since(r.at, p and p.accrued, floor, most) then\n\
        give_total = bucket(total_key, clock, rate, capacity, floor, ttl, r.cost)\n\
      end\n\
      if subject_key ~= total_key and (subject_rate >= 0 or p and p.subjectRules == 1) then\n\
        local follow = p and p.subjectFollow == 1 and most / p.policyRate or 1\n\
        local own_most = p and math.max(0, p.subjectRate) * follow\n\
        if kept_since(r.at, p and p.subjectAccrued, subject_floor, own_most) then\n\
          give_own = bucket(\n\
            subject_key, subject_clock, subject_rate, subject_capacity, subject_floor, subject_ttl, r.cost\n\
          )\n\
        end\n\
      end\n\
    end\n\
    if give_total or give_own then\n\
      answer = 0\n\
      local life = string.format('%.0f', math.ceil((LIFE_US + r.at - now) / 1000) + 1000)\n\
      if r.marked then call('SET', mark, '1', 'PX', life) end\n\
      if give_total then give_total() end\n\
      if give_own then give_own() end\n\
    end\n\
  end\n\
  reply[2 + i] = answer\n\
end\n\
for key, log in pairs(logs) do\n\
  if log.changed then save_log(key, log) end\n\
end\n\
return reply\n\
",
};

/** Keys of `report`, in order. */
export type ReportKeys = [second: string];
/** Arguments of `report`, in order. */
export type ReportArgs = [keptMs: ScriptArg, counts: ScriptArg];
/**
 * adds what a process counted since its last report to a telemetry second, all of it or nothing.
 * Returns how many fields were added to. O(fields).
 */
export const reportScript: Script<ReportKeys, ReportArgs> = {
  name: 'report',
  sha: '61a87bb114bea6bbaf3dbea89e4e66c4fed629ea',
  lua: "-- flyball report\n\
local added = 0\n\
for field, count in string.gmatch(ARGV[2], '([^\\n\
]+)\\n\
(%d+)') do\n\
  redis.call('HINCRBY', KEYS[1], field, count)\n\
  added = added + 1\n\
end\n\
redis.call('PEXPIRE', KEYS[1], ARGV[1])\n\
return added\n\
",
};

/** Keys of `reread`, in order. */
export type RereadKeys = [...params: string[]];
/** Arguments of `reread`, in order. */
export type RereadArgs = [...mark: ScriptArg[]];
/**
 * params as stored, of those limiters whose params are not as they were last read.
 * Returns [nowUs, then of each three: validUntil, mark (both empty: missing), fields and values (nil: as marked)]. O(fields of all).
 */
export const rereadScript: Script<RereadKeys, RereadArgs> = {
  name: 'reread',
  sha: '6891e41c695650e5c08a3122dbbca59ba3ad37f6',
  lua: "-- flyball reread\n\
local out = {}\n\
for i = 1, #KEYS do\n\
  local all = redis.call('HGETALL', KEYS[i])\n\
  local kept = {}\n\
  local valid = ''\n\
  for j = 1, #all, 2 do\n\
    if all[j] == 'validUntil' then\n\
      valid = all[j + 1]\n\
    elseif all[j] ~= 'hot' then\n\
      kept[#kept + 1] = all[j]\n\
      kept[#kept + 1] = all[j + 1]\n\
    end\n\
  end\n\
  local mark = ''\n\
  if #kept > 0 then mark = redis.sha1hex(table.concat(kept, '\\n\
')) end\n\
  local at = 3 * i - 1\n\
  out[at] = valid\n\
  out[at + 1] = mark\n\
  if mark == '' or mark == ARGV[i] then\n\
    out[at + 2] = false\n\
  else\n\
    out[at + 2] = kept\n\
  end\n\
end\n\
local time = redis.call('TIME')\n\
out[1] = string.format('%.0f', time[1] * 1000000 + time[2])\n\
return out\n\
",
};

/** Keys of `seconds`, in order. */
export type SecondsKeys = [...second: string[]];
/** Arguments of `seconds`, in order. */
export type SecondsArgs = [...mark: ScriptArg[]];
/**
 * telemetry seconds as text, of those to which flushes were added since they were last read.
 * Returns [nowUs, then of each: nil when nothing was added; empty: not there; else its mark, then its fields and counts, a line each]. O(fields of what is returned).
 */
export const secondsScript: Script<SecondsKeys, SecondsArgs> = {
  name: 'seconds',
  sha: 'db8d204f7520bb8a0c0c55084e5baef6886c5a18',
  lua: "-- flyball seconds\n\
local function second_mark(key)\n\
  local counts = redis.call('HMGET', key, 'n', 'off')\n\
  if not counts[1] then return '' end\n\
  return counts[1] .. ' ' .. redis.call('HLEN', key) .. ' ' .. (counts[2] or '')\n\
end\n\
local out = {}\n\
for i = 1, #KEYS do\n\
  local mark = second_mark(KEYS[i])\n\
  if mark == ARGV[i] then\n\
    out[i + 1] = false\n\
  elseif mark == '' then\n\
    out[i + 1] = ''\n\
  else\n\
    out[i + 1] = mark .. '\\n\
' .. table.concat(redis.call('HGETALL', KEYS[i]), '\\n\
')\n\
  end\n\
end\n\
local time = redis.call('TIME')\n\
out[1] = string.format('%.0f', time[1] * 1000000 + time[2])\n\
return out\n\
",
};

/** Keys of `slots`, in order. */
export type SlotsKeys = [params: string, slots: string, shares: string];
/** Arguments of `slots`, in order. */
export type SlotsArgs = [nowUs: ScriptArg, fallback: ScriptArg, op: ScriptArg, ...id: ScriptArg[]];
/**
 * holds or returns places under the in-flight cap, one by one: exact for caps smaller than the fleet. A slot is held for 5 s and renewed each second by its process; a dead holder's returns by time. An id is known to its holder only, so nobody returns another's. What processes hold as shares counts too. A denied call writes nothing.
 * Returns [nowUs, cap, held, then 1 or 0 for each id: held (hold), was held (release)]; a cap of 0 is no cap. O(i log s) in the ids and the slots.
 */
export const slotsScript: Script<SlotsKeys, SlotsArgs> = {
  name: 'slots',
  sha: '3796e9c7bbf348a845477ec30d8c2a2b5a8cb13c',
  lua: "-- flyball slots\n\
local LARGEST = 9007199254740992\n\
local LEASE_MAX_MS = 315360000000\n\
local function finite(text)\n\
  if type(text) ~= 'string' or #text > 32 then return nil end\n\
  if not string.find(text, '^%-?%d+%.?%d*$')\n\
    and not string.find(text, '^%-?%d+%.?%d*[eE][%+%-]?%d+$') then\n\
    return nil\n\
  end\n\
  local n = tonumber(text)\n\
  if not n or n ~= n or n == math.huge or n == -math.huge then return nil end\n\
  return n\n\
end\n\
local function within(text, least, most)\n\
  local n = finite(text)\n\
  if n and n >= least and n <= most then return n end\n\
end\n\
local function count(text)\n\
  local n = within(text, 0, LARGEST)\n\
  if n and n % 1 == 0 then return n end\n\
end\n\
local function exact(n)\n\
  return string.format('%.17g', n)\n\
end\n\
local function now_us(given)\n\
  if given ~= '' then return within(given, -LARGEST, LARGEST) end\n\
  local time = redis.call('TIME')\n\
  return time[1] * 1000000 + time[2]\n\
end\n\
local MODES = { off = 0, shadow = 1, recommend = 2, auto = 3 }\n\
local STATES = { closed = 0, open = 1, ['half-open'] = 2, recovering = 3 }\n\
local TEXT = {\n\
  mode = true, state = true, heldBy = true, policyHash = true, onRedisError = true, subject = true,\n\
  algorithm = true, terms = true, rollout = true, subjectTerms = true, windows = true,\n\
  byPerson = true, canary = true,\n\
}\n\
local NEEDED = {\n\
  'v', 'mode', 'state', 'epoch', 'revision', 'generation', 'rate', 'capacity', 'inFlightMax', 'subjectRate',\n\
  'subjectCapacity', 'subjectFollow', 'policyRate', 'minRate', 'maxRate', 'minCapacity', 'maxCapacity',\n\
  'minInFlight', 'maxInFlight', 'accrued', 'changedAt', 'subjectAccrued', 'floor', 'subjectFloor',\n\
  'openUntil', 'openForMs', 'probeRate', 'validUntil', 'lostAfterMs', 'lostOverMs', 'safeRate',\n\
  'safeInFlight', 'reserveDefault', 'reserveSheddable', 'frozenUntil', 'pinnedUntil', 'holdBreaker',\n\
  'heldBy', 'fence', 'policyHash',\n\
}\n\
local LATER_NUMBERS = { windowMs = true, cells = true, subjectRules = true }\n\
local COUNTS = { 'epoch', 'revision', 'generation', 'fence' }\n\
local NOT_BELOW_ZERO = {\n\
  'rate', 'capacity', 'inFlightMax', 'subjectCapacity', 'policyRate', 'probeRate', 'safeRate', 'safeInFlight',\n\
  'lostAfterMs', 'lostOverMs',\n\
}\n\
local function readable(p)\n\
  for i = 1, #NEEDED do\n\
    if p[NEEDED[i]] == nil then return false end\n\
  end\n\
  if not MODES[p.mode] or not STATES[p.state] then return false end\n\
  for i = 1, #COUNTS do\n\
    local n = p[COUNTS[i]]\n\
    if n < 0 or n > 9007199254740992 or n % 1 ~= 0 then return false end\n\
  end\n\
  for i = 1, #NOT_BELOW_ZERO do\n\
    if p[NOT_BELOW_ZERO[i]] < 0 then return false end\n\
  end\n\
  return true\n\
end\n\
local function read_params(key)\n\
  local flat = redis.call('HGETALL', key)\n\
  if #flat == 0 then return nil end\n\
  local p = {}\n\
  for i = 1, #flat, 2 do\n\
    local field, value = flat[i], flat[i + 1]\n\
    if TEXT[field] then\n\
      p[field] = value\n\
    elseif field ~= 'hot' then\n\
      value = not string.find(value, '[^%d%.eE%+%-]') and tonumber(value)\n\
      if value and value - value == 0 then\n\
        p[field] = value\n\
      elseif LATER_NUMBERS[field] then\n\
        return nil\n\
      end\n\
    end\n\
  end\n\
  for _, field in ipairs({ 'keptMs', 'subjectKeptMs' }) do\n\
    if not p[field] or p[field] < 0 or p[field] % 1 ~= 0 then p[field] = 315360000000 end\n\
  end\n\
  return readable(p) and p or nil\n\
end\n\
local NEVER = 9007199254740992\n\
local function glide_start(p)\n\
  if p.pinnedUntil == -1 or p.frozenUntil == -1 then return NEVER end\n\
  local start = math.max(p.validUntil, p.pinnedUntil, p.frozenUntil)\n\
  if p.state == 'open' then\n\
    if p.openUntil == -1 then return NEVER end\n\
    start = math.max(start, p.openUntil)\n\
  end\n\
  return (start + p.lostAfterMs) * 1000\n\
end\n\
local function is_open(p, now)\n\
  if p.state ~= 'open' then return false end\n\
  if p.openUntil == -1 then return true end\n\
  local left = p.openUntil * 1000 - now\n\
  return left > 0 and left <= p.openForMs * 1000\n\
end\n\
local function paid(base, safe, from, to, opens, glide, over)\n\
  local sum = 0\n\
  local start = math.max(from, opens)\n\
  local stop = math.min(to, glide)\n\
  if stop > start then sum = base * (stop - start) end\n\
  local finish = glide + over\n\
  local left = math.max(from, glide)\n\
  local right = math.min(to, finish)\n\
  if right > left then\n\
    local first = base + (safe - base) * ((left - glide) / over)\n\
    local last = base + (safe - base) * ((right - glide) / over)\n\
    sum = sum + (first + last) / 2 * (right - left)\n\
  end\n\
  local after = math.max(from, finish)\n\
  if to > after then sum = sum + safe * (to - after) end\n\
  return sum / 1000000\n\
end\n\
local function effective(p, now)\n\
  local open = is_open(p, now)\n\
  local probing = not open and (p.state == 'open' or p.state == 'half-open')\n\
  local glide = glide_start(p)\n\
  local over = p.lostOverMs * 1000\n\
  local gliding = now >= glide\n\
  local share = 0\n\
  if gliding then share = now >= glide + over and 1 or (now - glide) / over end\n\
  local stopped = p.state == 'open' or p.state == 'half-open'\n\
  local base = stopped and p.probeRate or p.rate\n\
  local rate = open and 0 or base + (p.safeRate - base) * share\n\
  local capacity = p.capacity\n\
  if probing then\n\
    local narrow = math.min(capacity, math.max(1, p.probeRate))\n\
    capacity = narrow + (capacity - narrow) * share\n\
  end\n\
  local cap = p.inFlightMax\n\
  if cap > 0 and p.safeInFlight > 0 then\n\
    cap = math.floor(cap + (p.safeInFlight - cap) * share + 0.5)\n\
  end\n\
  local scale, safe_scale = 1, 1\n\
  if p.subjectFollow == 1 then\n\
    scale = p.rate / p.policyRate\n\
    safe_scale = p.safeRate / p.policyRate\n\
  end\n\
  local none = p.subjectRate < 0\n\
  local subject_base = none and 0 or p.subjectRate * scale\n\
  local subject_safe = none and 0 or p.subjectRate * safe_scale\n\
  local subject_rate = subject_base + (subject_safe - subject_base) * share\n\
  local opens = 0\n\
  if open then\n\
    opens = p.openUntil == -1 and NEVER or p.openUntil * 1000\n\
  elseif p.state == 'open' and p.openUntil * 1000 <= now then\n\
    opens = p.openUntil * 1000\n\
  end\n\
  local tokens, subject_tokens\n\
  if now < p.changedAt then\n\
    tokens = p.accrued - rate * (p.changedAt - now) / 1000000\n\
    subject_tokens = p.subjectAccrued - subject_rate * (p.changedAt - now) / 1000000\n\
  else\n\
    tokens = p.accrued + paid(base, p.safeRate, p.changedAt, now, opens, glide, over)\n\
    subject_tokens = p.subjectAccrued\n\
      + paid(subject_base, subject_safe, p.changedAt, now, 0, glide, over)\n\
  end\n\
  local state = p.state\n\
  if probing then state = gliding and 'recovering' or 'half-open' end\n\
  return {\n\
    state = state,\n\
    gliding = gliding,\n\
    rate = rate,\n\
    capacity = capacity,\n\
    inFlightMax = cap,\n\
    subjectRate = none and -1 or subject_rate,\n\
    subjectCapacity = p.subjectCapacity,\n\
    tokens = tokens,\n\
    subjectTokens = subject_tokens,\n\
    opens = opens,\n\
    glide = glide,\n\
  }\n\
end\n\
local call = redis.call\n\
local now = now_us(ARGV[1])\n\
local LEASE_US = 5000000\n\
local op = ARGV[3]\n\
if not now or not KEYS[3] or (op ~= 'hold' and op ~= 'release') then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID slots wants three keys, and op hold or release')\n\
end\n\
local function text(n)\n\
  return string.format('%.0f', n)\n\
end\n\
local p = read_params(KEYS[1])\n\
local cap\n\
if p then\n\
  cap = effective(p, now).inFlightMax\n\
else\n\
  cap = within(string.match(ARGV[2], '^%S+ %S+ (%S+) %S+ %S+$'), 0, LARGEST)\n\
  if not cap then return redis.error_reply('FLYBALL_E_CALL_INVALID fallback is five numbers') end\n\
end\n\
cap = math.floor(cap)\n\
local reply = { text(now), text(cap), 0 }\n\
local until_us = text(now + LEASE_US)\n\
if op == 'hold' then\n\
  local ahead = call('ZRANGEBYSCORE', KEYS[2], '(' .. until_us, '+inf', 'LIMIT', 0, 1000)\n\
  for i = 1, #ahead do call('ZADD', KEYS[2], until_us, ahead[i]) end\n\
end\n\
local held = call('ZCOUNT', KEYS[2], '(' .. text(now), '+inf')\n\
local shares, at = string.match(op == 'hold' and call('HGET', KEYS[3], ':sum') or '', '^(%d+) (%d+)$')\n\
local room = cap - (shares and now - tonumber(at) < 3000000 and tonumber(shares) or 0)\n\
local wrote = false\n\
for i = 4, #ARGV do\n\
  local id, done = ARGV[i], 0\n\
  if op == 'release' then\n\
    local score = tonumber(call('ZSCORE', KEYS[2], id) or '')\n\
    if score then call('ZREM', KEYS[2], id) end\n\
    if score and score > now then done, held = 1, held - 1 end\n\
  elseif cap == 0 then\n\
    done = 1\n\
  else\n\
    local score = tonumber(call('ZSCORE', KEYS[2], id) or '')\n\
    local mine = score and score > now\n\
    if mine or held < room then\n\
      if not wrote then call('ZREMRANGEBYSCORE', KEYS[2], '-inf', text(now)) end\n\
      call('ZADD', KEYS[2], until_us, id)\n\
      done, wrote = 1, true\n\
      if not mine then held = held + 1 end\n\
    end\n\
  end\n\
  reply[i] = done\n\
end\n\
if wrote then call('PEXPIRE', KEYS[2], 2 * LEASE_US / 1000) end\n\
reply[3] = held\n\
return reply\n\
",
};

/** Keys of `source`, in order. */
export type SourceKeys = [sources: string];
/** Arguments of `source`, in order. */
export type SourceArgs = [hash: ScriptArg, meta: ScriptArg, most: ScriptArg];
/**
 * keeps the source of a policy that was adopted, each once, and as many as are asked for; the newest last.
 * Returns [hash...] of those that fell out. O(most).
 */
export const sourceScript: Script<SourceKeys, SourceArgs> = {
  name: 'source',
  sha: 'b6ac31cfaaa834a4e9ef3d9938b906d20c558419',
  lua: "-- flyball source\n\
local LARGEST = 9007199254740992\n\
local LEASE_MAX_MS = 315360000000\n\
local function finite(text)\n\
  if type(text) ~= 'string' or #text > 32 then return nil end\n\
  if not string.find(text, '^%-?%d+%.?%d*$')\n\
    and not string.find(text, '^%-?%d+%.?%d*[eE][%+%-]?%d+$') then\n\
    return nil\n\
  end\n\
  local n = tonumber(text)\n\
  if not n or n ~= n or n == math.huge or n == -math.huge then return nil end\n\
  return n\n\
end\n\
local function within(text, least, most)\n\
  local n = finite(text)\n\
  if n and n >= least and n <= most then return n end\n\
end\n\
local function count(text)\n\
  local n = within(text, 0, LARGEST)\n\
  if n and n % 1 == 0 then return n end\n\
end\n\
local function exact(n)\n\
  return string.format('%.17g', n)\n\
end\n\
local hash, meta, most = ARGV[1], ARGV[2], within(ARGV[3], 1, 1000)\n\
if hash == '' or not most then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID source wants a hash, and most from 1 to 1000')\n\
end\n\
local kind = redis.call('TYPE', KEYS[1])['ok']\n\
if kind ~= 'stream' and kind ~= 'none' then redis.call('DEL', KEYS[1]) end\n\
local kept = redis.call('XRANGE', KEYS[1], '-', '+')\n\
local function hash_of(entry)\n\
  for i = 1, #entry[2], 2 do\n\
    if entry[2][i] == 'hash' then return entry[2][i + 1] end\n\
  end\n\
end\n\
if #kept > 0 and hash_of(kept[#kept]) == hash then return {} end\n\
redis.call('XADD', KEYS[1], '*', 'hash', hash, 'meta', meta)\n\
local fell, others = {}, {}\n\
for i = 1, #kept do\n\
  if hash_of(kept[i]) == hash then redis.call('XDEL', KEYS[1], kept[i][1]) else others[#others + 1] = kept[i] end\n\
end\n\
for i = 1, #others - most + 1 do\n\
  redis.call('XDEL', KEYS[1], others[i][1])\n\
  fell[#fell + 1] = hash_of(others[i]) or ''\n\
end\n\
return fell\n\
",
};

/** Keys of `subjects`, in order. */
export type SubjectsKeys = [params: string, bucket: string, owed: string, overrides: string, index: string, shared: string, ...subject: string[]];
/** Arguments of `subjects`, in order. */
export type SubjectsArgs = [nowUs: ScriptArg, chargeByUs: ScriptArg, shadow: ScriptArg, fallback: ScriptArg, ...take: ScriptArg[]];
/**
 * decides n takes as `take` does, by what is known of single subjects too: a person's override, the tier that its outcomes have reached, one bucket shared by all who come past the most live ones. A blocked one is denied; an exempt one has no bucket of its own, and is denied neither by it nor by the total, from which it takes what is there: only an open breaker and the probes of a half-open one bind it. Under `fair` a subject above its max-min share is refused while the total refuses others. A denied take writes nothing, except to bring back a bucket that lies ahead of Redis's clock, to put the index of live subjects in order, and to say that the total refuses.
 * Returns [status, nowUs, inForce, then reason, remaining, retryAfterMs of each take]; status 3: `take` decides, since nothing is known of single subjects; reason 9: blocked; 10: admitted, since it is exempt; 11: above its fair share; 32 is added where the shared bucket stood in. O(n) in the takes; up to 26 steps more for each subject that comes past the most, and under `fair`
  O(log of who owes) for each, and for each debt that is paid off.
 */
export const subjectsScript: Script<SubjectsKeys, SubjectsArgs> = {
  name: 'subjects',
  sha: 'e8389b2398078141f4bb7e35d41f82dac4a8087d',
  lua: "-- flyball subjects\n\
local LARGEST = 9007199254740992\n\
local LEASE_MAX_MS = 315360000000\n\
local function finite(text)\n\
  if type(text) ~= 'string' or #text > 32 then return nil end\n\
  if not string.find(text, '^%-?%d+%.?%d*$')\n\
    and not string.find(text, '^%-?%d+%.?%d*[eE][%+%-]?%d+$') then\n\
    return nil\n\
  end\n\
  local n = tonumber(text)\n\
  if not n or n ~= n or n == math.huge or n == -math.huge then return nil end\n\
  return n\n\
end\n\
local function within(text, least, most)\n\
  local n = finite(text)\n\
  if n and n >= least and n <= most then return n end\n\
end\n\
local function count(text)\n\
  local n = within(text, 0, LARGEST)\n\
  if n and n % 1 == 0 then return n end\n\
end\n\
local function exact(n)\n\
  return string.format('%.17g', n)\n\
end\n\
local function now_us(given)\n\
  if given ~= '' then return within(given, -LARGEST, LARGEST) end\n\
  local time = redis.call('TIME')\n\
  return time[1] * 1000000 + time[2]\n\
end\n\
local MODES = { off = 0, shadow = 1, recommend = 2, auto = 3 }\n\
local STATES = { closed = 0, open = 1, ['half-open'] = 2, recovering = 3 }\n\
local TEXT = {\n\
  mode = true, state = true, heldBy = true, policyHash = true, onRedisError = true, subject = true,\n\
  algorithm = true, terms = true, rollout = true, subjectTerms = true, windows = true,\n\
  byPerson = true, canary = true,\n\
}\n\
local NEEDED = {\n\
  'v', 'mode', 'state', 'epoch', 'revision', 'generation', 'rate', 'capacity', 'inFlightMax', 'subjectRate',\n\
  'subjectCapacity', 'subjectFollow', 'policyRate', 'minRate', 'maxRate', 'minCapacity', 'maxCapacity',\n\
  'minInFlight', 'maxInFlight', 'accrued', 'changedAt', 'subjectAccrued', 'floor', 'subjectFloor',\n\
  'openUntil', 'openForMs', 'probeRate', 'validUntil', 'lostAfterMs', 'lostOverMs', 'safeRate',\n\
  'safeInFlight', 'reserveDefault', 'reserveSheddable', 'frozenUntil', 'pinnedUntil', 'holdBreaker',\n\
  'heldBy', 'fence', 'policyHash',\n\
}\n\
local LATER_NUMBERS = { windowMs = true, cells = true, subjectRules = true }\n\
local COUNTS = { 'epoch', 'revision', 'generation', 'fence' }\n\
local NOT_BELOW_ZERO = {\n\
  'rate', 'capacity', 'inFlightMax', 'subjectCapacity', 'policyRate', 'probeRate', 'safeRate', 'safeInFlight',\n\
  'lostAfterMs', 'lostOverMs',\n\
}\n\
local function readable(p)\n\
  for i = 1, #NEEDED do\n\
    if p[NEEDED[i]] == nil then return false end\n\
  end\n\
  if not MODES[p.mode] or not STATES[p.state] then return false end\n\
  for i = 1, #COUNTS do\n\
    local n = p[COUNTS[i]]\n\
    if n < 0 or n > 9007199254740992 or n % 1 ~= 0 then return false end\n\
  end\n\
  for i = 1, #NOT_BELOW_ZERO do\n\
    if p[NOT_BELOW_ZERO[i]] < 0 then return false end\n\
  end\n\
  return true\n\
end\n\
local function read_params(key)\n\
  local flat = redis.call('HGETALL', key)\n\
  if #flat == 0 then return nil end\n\
  local p = {}\n\
  for i = 1, #flat, 2 do\n\
    local field, value = flat[i], flat[i + 1]\n\
    if TEXT[field] then\n\
      p[field] = value\n\
    elseif field ~= 'hot' then\n\
      value = not string.find(value, '[^%d%.eE%+%-]') and tonumber(value)\n\
      if value and value - value == 0 then\n\
        p[field] = value\n\
      elseif LATER_NUMBERS[field] then\n\
        return nil\n\
      end\n\
    end\n\
  end\n\
  for _, field in ipairs({ 'keptMs', 'subjectKeptMs' }) do\n\
    if not p[field] or p[field] < 0 or p[field] % 1 ~= 0 then p[field] = 315360000000 end\n\
  end\n\
  return readable(p) and p or nil\n\
end\n\
local NEVER = 9007199254740992\n\
local function glide_start(p)\n\
  if p.pinnedUntil == -1 or p.frozenUntil == -1 then return NEVER end\n\
  local start = math.max(p.validUntil, p.pinnedUntil, p.frozenUntil)\n\
  if p.state == 'open' then\n\
    if p.openUntil == -1 then return NEVER end\n\
    start = math.max(start, p.openUntil)\n\
  end\n\
  return (start + p.lostAfterMs) * 1000\n\
end\n\
local function is_open(p, now)\n\
  if p.state ~= 'open' then return false end\n\
  if p.openUntil == -1 then return true end\n\
  local left = p.openUntil * 1000 - now\n\
  return left > 0 and left <= p.openForMs * 1000\n\
end\n\
local function paid(base, safe, from, to, opens, glide, over)\n\
  local sum = 0\n\
  local start = math.max(from, opens)\n\
  local stop = math.min(to, glide)\n\
  if stop > start then sum = base * (stop - start) end\n\
  local finish = glide + over\n\
  local left = math.max(from, glide)\n\
  local right = math.min(to, finish)\n\
  if right > left then\n\
    local first = base + (safe - base) * ((left - glide) / over)\n\
    local last = base + (safe - base) * ((right - glide) / over)\n\
    sum = sum + (first + last) / 2 * (right - left)\n\
  end\n\
  local after = math.max(from, finish)\n\
  if to > after then sum = sum + safe * (to - after) end\n\
  return sum / 1000000\n\
end\n\
local function effective(p, now)\n\
  local open = is_open(p, now)\n\
  local probing = not open and (p.state == 'open' or p.state == 'half-open')\n\
  local glide = glide_start(p)\n\
  local over = p.lostOverMs * 1000\n\
  local gliding = now >= glide\n\
  local share = 0\n\
  if gliding then share = now >= glide + over and 1 or (now - glide) / over end\n\
  local stopped = p.state == 'open' or p.state == 'half-open'\n\
  local base = stopped and p.probeRate or p.rate\n\
  local rate = open and 0 or base + (p.safeRate - base) * share\n\
  local capacity = p.capacity\n\
  if probing then\n\
    local narrow = math.min(capacity, math.max(1, p.probeRate))\n\
    capacity = narrow + (capacity - narrow) * share\n\
  end\n\
  local cap = p.inFlightMax\n\
  if cap > 0 and p.safeInFlight > 0 then\n\
    cap = math.floor(cap + (p.safeInFlight - cap) * share + 0.5)\n\
  end\n\
  local scale, safe_scale = 1, 1\n\
  if p.subjectFollow == 1 then\n\
    scale = p.rate / p.policyRate\n\
    safe_scale = p.safeRate / p.policyRate\n\
  end\n\
  local none = p.subjectRate < 0\n\
  local subject_base = none and 0 or p.subjectRate * scale\n\
  local subject_safe = none and 0 or p.subjectRate * safe_scale\n\
  local subject_rate = subject_base + (subject_safe - subject_base) * share\n\
  local opens = 0\n\
  if open then\n\
    opens = p.openUntil == -1 and NEVER or p.openUntil * 1000\n\
  elseif p.state == 'open' and p.openUntil * 1000 <= now then\n\
    opens = p.openUntil * 1000\n\
  end\n\
  local tokens, subject_tokens\n\
  if now < p.changedAt then\n\
    tokens = p.accrued - rate * (p.changedAt - now) / 1000000\n\
    subject_tokens = p.subjectAccrued - subject_rate * (p.changedAt - now) / 1000000\n\
  else\n\
    tokens = p.accrued + paid(base, p.safeRate, p.changedAt, now, opens, glide, over)\n\
    subject_tokens = p.subjectAccrued\n\
      + paid(subject_base, subject_safe, p.changedAt, now, 0, glide, over)\n\
  end\n\
  local state = p.state\n\
  if probing then state = gliding and 'recovering' or 'half-open' end\n\
  return {\n\
    state = state,\n\
    gliding = gliding,\n\
    rate = rate,\n\
    capacity = capacity,\n\
    inFlightMax = cap,\n\
    subjectRate = none and -1 or subject_rate,\n\
    subjectCapacity = p.subjectCapacity,\n\
    tokens = tokens,\n\
    subjectTokens = subject_tokens,\n\
    opens = opens,\n\
    glide = glide,\n\
  }\n\
end\n\
local TTL_MARGIN_MS = 1000\n\
local TTL_MAX_MS = 315360000000\n\
local function lowest_above_zero(...)\n\
  local lowest = math.huge\n\
  for _, rate in ipairs({ ... }) do\n\
    if rate > 0 and rate < lowest then lowest = rate end\n\
  end\n\
  return lowest\n\
end\n\
local function ttl_ms(capacity, rate)\n\
  if not (rate > 0) or rate == math.huge then return TTL_MAX_MS end\n\
  return math.min(TTL_MAX_MS, math.ceil(capacity / rate * 1000) + TTL_MARGIN_MS)\n\
end\n\
local function bucket_ttl_ms(p)\n\
  return ttl_ms(\n\
    math.max(p.capacity, p.maxCapacity),\n\
    lowest_above_zero(p.minRate, p.probeRate, p.safeRate, p.rate)\n\
  )\n\
end\n\
local function subject_ttl_ms(p)\n\
  if p.subjectRate < 0 then return 0 end\n\
  local rate = p.subjectRate\n\
  if p.subjectFollow == 1 then\n\
    rate = rate * lowest_above_zero(p.minRate, p.safeRate, p.rate) / p.policyRate\n\
  end\n\
  return ttl_ms(p.subjectCapacity, rate)\n\
end\n\
local function kept_ms(kept, needed)\n\
  if needed <= kept and kept <= 4 * needed then return kept, false end\n\
  return math.min(TTL_MAX_MS, 2 * needed), needed > kept\n\
end\n\
local function in_force_text(p, e)\n\
  return string.format(\n\
    '1 %.0f %.0f %.0f %s %s %d %.17g %.17g %.17g %.17g %.17g',\n\
    p.epoch, p.revision, p.generation, p.mode, e.state, e.gliding and 1 or 0,\n\
    e.rate, e.capacity, e.inFlightMax, e.subjectRate, e.subjectCapacity\n\
  )\n\
end\n\
local function view_of(p, now)\n\
  local e = effective(p, now)\n\
  local untl = e.glide\n\
  if e.state == 'open' then untl = math.min(untl, e.opens) end\n\
  local since = p.changedAt\n\
  if e.state ~= 'open' then since = math.max(since, e.opens) end\n\
  local half_open = e.state == 'half-open'\n\
  return {\n\
    code = MODES[p.mode] + 4 * STATES[e.state] + 16 * (p.subjectRules or 0),\n\
    from = since,\n\
    untl = e.gliding and 0 or untl,\n\
    since = since,\n\
    accrued = p.accrued,\n\
    rate = e.rate,\n\
    capacity = e.capacity,\n\
    fullCapacity = p.capacity,\n\
    floor = p.floor,\n\
    reserveDefault = half_open and 0 or p.reserveDefault * e.capacity,\n\
    reserveSheddable = half_open and 0 or p.reserveSheddable * e.capacity,\n\
    ttlMs = p.keptMs,\n\
    subjectSince = p.changedAt,\n\
    subjectAccrued = p.subjectAccrued,\n\
    subjectRate = e.subjectRate,\n\
    subjectLowest = p.subjectFollow == 1 and math.min(e.subjectRate, p.subjectRate * p.rate / p.policyRate)\n\
      or e.subjectRate,\n\
    subjectCapacity = e.subjectCapacity,\n\
    subjectFloor = p.subjectFloor,\n\
    subjectTtlMs = p.subjectKeptMs,\n\
    openUntil = p.openUntil * 1000,\n\
    probeRate = p.probeRate,\n\
    tokens = e.tokens,\n\
    subjectTokens = e.subjectTokens,\n\
    text = in_force_text(p, e),\n\
  }\n\
end\n\
local FIRST, LEADING = 4, 3\n\
local call = redis.call\n\
local takes = #ARGV - FIRST\n\
local rich, shadow = ARGV[3] == '4' or ARGV[3] == '5', ARGV[3] == '1' or ARGV[3] == '5'\n\
local before_subjects = rich and LEADING + 3 or LEADING\n\
if takes < 0 or takes > 512 or #KEYS ~= (rich and takes or 0) + takes + before_subjects then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID one key and one argument for each take, at most 512')\n\
end\n\
local now, charge_by = now_us(ARGV[1]), ARGV[2]\n\
if charge_by ~= '' then charge_by = within(charge_by, -LARGEST, LARGEST) end\n\
if not now or not charge_by then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID nowUs and chargeByUs are µs, or empty')\n\
end\n\
local params_key = KEYS[1]\n\
local NONE = -1e300\n\
local hot = call('HGET', params_key, 'hot')\n\
local managed = hot and #hot > 160\n\
local code, from, untl, since, accrued, rate, capacity, full, floor, reserve_default, reserve_sheddable\n\
local ttl, subject_since, subject_accrued, subject_rate, subject_capacity, subject_floor, subject_ttl\n\
local open_until, probe_rate, text, clock, subject_clock, unmanaged_base\n\
if managed then\n\
  code, from, untl, since, accrued, rate, capacity, full, floor, reserve_default, reserve_sheddable,\n\
    ttl, subject_since, subject_accrued, subject_rate, subject_capacity, subject_floor, subject_ttl,\n\
    open_until, probe_rate = struct.unpack('<dddddddddddddddddddd', hot)\n\
  if now >= from and now < untl then\n\
    text = string.sub(hot, 161)\n\
    clock = accrued + rate * (now - since) / 1000000\n\
    subject_clock = subject_accrued\n\
    if subject_rate > 0 then subject_clock = subject_clock + subject_rate * (now - subject_since) / 1000000 end\n\
  end\n\
end\n\
local subject_lowest = subject_rate\n\
if not text then\n\
  local p = read_params(params_key)\n\
  managed = p and true\n\
  if p then\n\
    local v = view_of(p, now)\n\
    code, rate, capacity, full, text = v.code, v.rate, v.capacity, v.fullCapacity, v.text\n\
    clock, subject_clock, ttl, subject_ttl = v.tokens, v.subjectTokens, v.ttlMs, v.subjectTtlMs\n\
    reserve_default, reserve_sheddable = v.reserveDefault, v.reserveSheddable\n\
    subject_rate, subject_capacity = v.subjectRate, v.subjectCapacity\n\
    open_until, probe_rate = v.openUntil, v.probeRate\n\
    floor, subject_floor = v.floor, v.subjectFloor\n\
    subject_since, subject_lowest = v.subjectSince, v.subjectLowest\n\
  else\n\
    local number = '(%d+%.?%d*[eE]?[%+%-]?%d*)'\n\
    local r, c, f, sr, sc = string.match(\n\
      ARGV[4],\n\
      '^' .. number .. ' ' .. number .. ' ' .. number .. ' (%-?%d+%.?%d*[eE]?[%+%-]?%d*) ' .. number .. '$'\n\
    )\n\
    rate, capacity, subject_rate, subject_capacity = tonumber(r), tonumber(c), tonumber(sr), tonumber(sc)\n\
    local cap = tonumber(f)\n\
    local sum = rate and capacity and cap and subject_rate and subject_capacity\n\
      and rate + capacity + cap + subject_rate + subject_capacity\n\
    if not sum or sum > 9007199254740992 then\n\
      return redis.error_reply('FLYBALL_E_CALL_INVALID fallback is five numbers: ' .. ARGV[4])\n\
    end\n\
    code = (ARGV[3] == '1' or ARGV[3] == '3') and 1 or 2\n\
    full, floor, subject_floor = capacity, NONE, NONE\n\
    clock, subject_clock = 0, 0\n\
    reserve_default, reserve_sheddable, open_until, probe_rate = 0, 0, 0, 0\n\
    local function life(most, per_second)\n\
      if not (per_second > 0) then return 86400000 end\n\
      return math.min(86400000 * 3650, math.ceil(most / per_second * 1000) + 1000)\n\
    end\n\
    ttl, subject_ttl = life(capacity, rate), life(subject_capacity, subject_rate)\n\
    text = string.format(\n\
      '0 0 0 0 %s closed 0 %.17g %.17g %.17g %.17g %.17g',\n\
      code == 1 and 'shadow' or 'recommend', rate, capacity, cap, subject_rate, subject_capacity\n\
    )\n\
    function unmanaged_base(mark, per_second)\n\
      local held, at = string.match(mark, '^u:(%d+%.?%d*[eE]?[%+%-]?%d*):(%d+)$')\n\
      held, at = tonumber(held), tonumber(at)\n\
      if not held or not at then return 0, true end\n\
      return -(held + per_second * math.max(0, now - at) / 1000000), at > now\n\
    end\n\
  end\n\
end\n\
if charge_by ~= '' and now > charge_by then return { 1, now, text } end\n\
if (managed and code >= 16 or false) ~= rich then return { 3, now, text } end\n\
code = code % 16\n\
local mode = code % 4\n\
if managed and mode ~= 0 and (mode == 1) ~= shadow then return { 2, now, text } end\n\
local state = (code - mode) / 4\n\
local open, probing = state == 1, state == 2\n\
local total_key = KEYS[2]\n\
local reply = { 0, now, text }\n\
local costs, reserves\n\
local function whole_ms(us)\n\
  if not us or us > 315360000000000 then return -1 end\n\
  return math.max(1, math.ceil(us / 1000))\n\
end\n\
local overrides_key, index_key, shared_key = KEYS[4], KEYS[5], KEYS[6]\n\
local OWN_LONGEST_MS = 315360000000\n\
local UNKNOWN_LIFE_MS = 86400000\n\
local OWN = '^o:(%-?%d[^:]*):(%d+):(%-?%d[^:]*):([^:]+):(%d[^:]*):(%-?%d+)$'\n\
local function room_of(rule, s)\n\
  return rule and rule.capacity or s.capacity\n\
end\n\
local function whole(rule, s)\n\
  if rule and rule.numbers and s.rate < 0 and not (rule.rate and rule.capacity) then return nil end\n\
  return rule\n\
end\n\
local function after_own(t, at, v, r, c, ends, now, s, tier_rate)\n\
  local stop = math.max(at, ends)\n\
  local edge = math.min(now, math.max(stop, s.since))\n\
  local v_edge = s.clock - math.max(0, s.lowest) * (now - edge) / 1000000\n\
  local first = r and r * (stop - at) / 1000000 or math.max(0, v_edge - v)\n\
  return math.min(c, t + first) + (tier_rate and tier_rate * (now - edge) / 1000000 or s.clock - v_edge)\n\
end\n\
local function held(text, rule, now, s)\n\
  local room = room_of(rule, s)\n\
  if not text then\n\
    if rule and rule.rate then return room, false end\n\
    return math.min(room, s.clock - s.floor), false\n\
  end\n\
  local mark = tonumber(text)\n\
  if mark then\n\
    if not (mark <= s.clock + s.slack) then return 0, true end\n\
    return math.min(room, s.clock - math.max(mark, s.floor)), false\n\
  end\n\
  local t, at, v, r, c, ends = string.match(text, OWN)\n\
  t, at, v, c, ends = tonumber(t or ''), tonumber(at or ''), tonumber(v or ''), tonumber(c or ''), tonumber(ends or '')\n\
  if not (t and at and v and c and ends) then\n\
    return math.min(room, tonumber(string.match(text, '^u:(%d+%.?%d*):') or '') or 0), true\n\
  end\n\
  local ahead = at > now or v > s.clock + s.slack\n\
  t, r, ends = math.max(t, -1), tonumber(r), ends * 1000\n\
  local elapsed = math.max(0, now - at)\n\
  local paid = math.max(0, s.clock - v)\n\
  local by_text = r and r * elapsed / 1000000 or paid\n\
  if ends > 0 and ends <= now then\n\
    local tokens = after_own(t, at, v, r, c, ends, now, s, rule and rule.rate)\n\
    if not rule or s.since > ends then tokens = math.min(tokens, s.clock - s.floor) end\n\
    return math.min(room, tokens), ahead\n\
  end\n\
  if rule then\n\
    local by_rule = rule.rate and rule.rate * elapsed / 1000000 or paid\n\
    return math.min(c, room, t + math.min(by_text, by_rule)), ahead\n\
  end\n\
  return math.min(c, room, t + math.min(by_text, paid)), ahead\n\
end\n\
local function own_text(tokens, rule, now, s)\n\
  return string.format('o:%.17g:%.0f:%.17g:%s:%.17g:%.0f', tokens, now, s.clock,\n\
    rule.rate and string.format('%.17g', rule.rate) or '-', room_of(rule, s), rule.ends)\n\
end\n\
local function own_life(rule, now, s)\n\
  local room, life = room_of(rule, s), s.ttl\n\
  if rule.rate then\n\
    life = math.max(life, math.ceil(room / rule.rate * 1000) + 1000)\n\
  elseif s.capacity > 0 then\n\
    life = life * math.max(1, room / s.capacity)\n\
  end\n\
  if rule.ends == -1 then life = OWN_LONGEST_MS end\n\
  local past = s.rate < 0 and UNKNOWN_LIFE_MS or s.ttl\n\
  if rule.ends > 0 then life = math.max(life, rule.ends - now / 1000 + past + 1000) end\n\
  return string.format('%.0f', math.min(OWN_LONGEST_MS, math.ceil(life)))\n\
end\n\
local MOST_RATE, MOST_CAPACITY = 1000000, 1000000000\n\
local function part_of(text, most)\n\
  return within(text, 1e-9, most)\n\
end\n\
local function override_of(text, now)\n\
  local kind, ends, rate, capacity = string.match(text or '', '^(%l+) (%-?%d+) (%S+) (%S+)')\n\
  ends = within(ends, -1, LARGEST)\n\
  if not ends or ends ~= -1 and ends * 1000 <= now then return nil end\n\
  rate, capacity = part_of(rate, MOST_RATE), part_of(capacity, MOST_CAPACITY)\n\
  if kind == 'limit' and not rate and not capacity or kind ~= 'limit' and kind ~= 'block' and kind ~= 'exempt' then\n\
    return nil\n\
  end\n\
  return { kind = kind, ends = ends, rate = rate, capacity = capacity, numbers = kind == 'limit' }\n\
end\n\
local function steps_of(terms)\n\
  local steps = {}\n\
  for times, capacity, rate in string.gmatch(terms, 'step=(%d+):([^: ]+):([^: ]+)') do\n\
    steps[#steps + 1] = {\n\
      kind = 'tier', times = tonumber(times), ends = 0, rate = part_of(rate, MOST_RATE),\n\
      capacity = part_of(capacity, MOST_CAPACITY),\n\
      numbers = true,\n\
    }\n\
  end\n\
  return steps\n\
end\n\
local function tier_of(steps, streak)\n\
  local tier = 0\n\
  for i = 1, #steps do\n\
    if streak and streak >= steps[i].times then tier = i end\n\
  end\n\
  return tier\n\
end\n\
local terms = rich and call('HGET', KEYS[1], 'subjectTerms') or ''\n\
local most = tonumber(string.match(terms, 'max=(%d+)') or '')\n\
local steps = steps_of(terms)\n\
local rules = {}\n\
local function rule_of(i)\n\
  local key = KEYS[before_subjects + i]\n\
  local rule = rules[key]\n\
  if rule ~= nil then return rule end\n\
  rule = override_of(call('HGET', overrides_key, string.sub(key, #total_key + 2)), now)\n\
  if not rule and steps[1] then\n\
    rule = steps[tier_of(steps, tonumber(call('GET', KEYS[before_subjects + takes + i]) or ''))]\n\
  end\n\
  rules[key] = rule or false\n\
  return rules[key]\n\
end\n\
local live\n\
local function room_for(life_ms, tidy)\n\
  live = live or call('ZCARD', index_key)\n\
  if live < most or not tidy then return live < most end\n\
  local due = call('ZRANGEBYSCORE', index_key, '-inf', string.format('%.0f', now / 1000), 'LIMIT', 0, 8)\n\
  for j = 1, #due do\n\
    if call('EXISTS', total_key .. ':' .. due[j]) == 1 then\n\
      call('ZADD', index_key, string.format('%.0f', now / 1000 + life_ms), due[j])\n\
    else\n\
      call('ZREM', index_key, due[j])\n\
      live = live - 1\n\
    end\n\
  end\n\
  return live < most\n\
end\n\
local function came(key, life_ms)\n\
  live = live or call('ZCARD', index_key)\n\
  live = live + call('ZADD', index_key, string.format('%.0f', now / 1000 + life_ms), string.sub(key, #total_key + 2))\n\
  call('PEXPIRE', index_key, string.format('%.0f', math.min(315360000000, math.max(86400000, 4 * life_ms))))\n\
end\n\
local function slack_at(v)\n\
  return 0.0000005 + (v > 0 and v or 0) * 4.4408920985006262e-16\n\
end\n\
local slack = slack_at(clock)\n\
if floor > clock + slack then floor = NONE end\n\
local s = {\n\
  clock = subject_clock, slack = slack_at(subject_clock), rate = subject_rate, capacity = subject_capacity,\n\
  floor = subject_floor, ttl = subject_ttl, since = subject_since,\n\
  lowest = subject_lowest,\n\
}\n\
if s.floor > s.clock + s.slack then s.floor = NONE end\n\
local total, total_ahead, total_moved = clock - capacity, false, false\n\
if total < floor then total = floor end\n\
local mark = mode > 0 and call('GET', total_key)\n\
if mark then\n\
  local anchor = tonumber(mark)\n\
  if not anchor or not (anchor <= clock + slack) then\n\
    local v, per_second = clock, rate\n\
    local stranded = true\n\
    if not managed then\n\
      anchor, stranded = unmanaged_base(mark, per_second)\n\
    else\n\
      local tokens = tonumber(string.match(mark, '^[uo]:(%d+%.?%d*):') or '')\n\
      anchor = tokens and v - tokens or v\n\
    end\n\
    total_ahead = stranded\n\
  end\n\
  if anchor > total then total = anchor end\n\
end\n\
local MOST_OWING, MOST_PAID_OFF, LONGEST_HOLD = 10000, 512, 60000000\n\
local fair = mode > 0 and not open and not probing and string.find(' ' .. terms .. ' ', ' fair=1 ', 1, true) and KEYS[3]\n\
local hold = math.min(LONGEST_HOLD, math.max(1000000, capacity / rate * 1000000))\n\
local pressing, ends, company, paid, sum, owing = false, 0, 0, 0, 0, 0\n\
local marks, moved, begun, renewed, gone = {}, {}, false, false, false\n\
local function mark_of(member)\n\
  if not marks[member] then\n\
    marks[member] = not begun and tonumber(call('ZSCORE', fair, member) or '') or 0\n\
  end\n\
  return marks[member]\n\
end\n\
local function owed_by(member)\n\
  return math.max(0, mark_of(member) - paid)\n\
end\n\
local function in_company(member)\n\
  if company - now < hold / 2 then\n\
    local others = owing - (owed_by('!') > 0 and member ~= '!' and 1 or 0) - (owed_by(member) > 0 and 1 or 0)\n\
    if others > 0 then company = now + hold end\n\
  end\n\
  return company > now\n\
end\n\
local function owe(member, cost)\n\
  if member ~= '!' then in_company(member) end\n\
  local mark = mark_of(member)\n\
  if mark <= paid then\n\
    mark, owing = paid, owing + 1\n\
  end\n\
  marks[member], moved[member], sum = mark + cost, true, sum + cost\n\
end\n\
local function owing_with(key, shared)\n\
  local member = shared and '#' or string.sub(key, #total_key + 2)\n\
  return owing >= MOST_OWING and owed_by(member) == 0 and '#' or member\n\
end\n\
local function settle(rows, missing)\n\
  local due = math.max(0, sum - missing)\n\
  local amount, at = due, 9\n\
  for paid_off = 0, MOST_PAID_OFF - 1 do\n\
    if amount <= 0 or owing == 0 then break end\n\
    local mark = tonumber(rows[at + 1] or '')\n\
    if not mark then\n\
      rows, at = call('ZRANGE', fair, 4 + paid_off, 67 + paid_off, 'WITHSCORES'), 1\n\
      mark = tonumber(rows[2] or '') or paid\n\
    end\n\
    local need = math.max(0, mark - paid) * owing\n\
    if need > amount + slack then\n\
      paid, amount = paid + amount / owing, 0\n\
    else\n\
      paid, amount, owing, at, gone = math.max(paid, mark), math.max(0, amount - need), owing - 1, at + 2, true\n\
    end\n\
  end\n\
  sum = owing > 0 and sum - due + amount or 0\n\
  if missing - sum > slack then owe('!', missing - sum) end\n\
end\n\
if fair then\n\
  local rows, state = call('ZRANGE', fair, 0, 11, 'WITHSCORES'), {}\n\
  for i = 1, math.min(8, #rows), 2 do state[rows[i]] = -tonumber(rows[i + 1]) end\n\
  ends = state['!t'] or 0\n\
  local function sound(value) return value and value < 1e18 end\n\
  pressing = sound(state['!u']) and sound(state['!s']) and sound(state['!o']) and now < ends\n\
    and ends - now <= LONGEST_HOLD\n\
  if pressing then\n\
    paid, sum, owing = state['!u'] - 1, state['!s'] - 1, call('ZCARD', fair) - 4\n\
    company = state['!o'] - 1\n\
    settle(rows, capacity - (clock - total))\n\
  end\n\
end\n\
local function fair_wait(short)\n\
  return rate > 0 and short / rate / (1 + 1 / owing) * 1000000\n\
end\n\
local function press(missing)\n\
  if pressing and ends - now >= hold / 2 then return end\n\
  ends, renewed = now + hold, true\n\
  if pressing then return end\n\
  pressing, begun, company, paid, sum, owing, marks, moved = true, true, 0, 0, 0, 0, {}, {}\n\
  if missing > 0 then owe('!', missing) end\n\
end\n\
local function keep_fair()\n\
  if next(moved) == nil and not renewed then return end\n\
  local text = '%.17g'\n\
  if begun then\n\
    call('DEL', fair)\n\
  elseif gone then\n\
    call('ZREMRANGEBYSCORE', fair, '0', string.format(text, paid))\n\
  end\n\
  local args = {\n\
    string.format('%.0f', -ends), '!t', string.format(text, -1 - paid), '!u', string.format(text, -1 - sum), '!s',\n\
    string.format('%.0f', -1 - company), '!o',\n\
  }\n\
  for member in pairs(moved) do\n\
    args[#args + 1], args[#args + 2] = string.format(text, marks[member]), member\n\
  end\n\
  call('ZADD', fair, unpack(args))\n\
  if renewed then call('PEXPIRE', fair, string.format('%.0f', hold / 1000 + 1000)) end\n\
end\n\
local buckets, order = {}, {}\n\
local function bucket_of(key, rule)\n\
  local q = buckets[key]\n\
  if q then return q end\n\
  local stored = call('GET', key)\n\
  local tokens, stranded = held(stored, rule, now, s)\n\
  q = { key = key, rule = rule, clock = 0, base = -tokens, rate = s.rate, capacity = room_of(rule, s), slack = s.slack }\n\
  if rule then\n\
    q.rate, q.slack = rule.rate or s.rate, slack_at(0)\n\
  else\n\
    local plain = tonumber(stored or '')\n\
    q.clock, q.base = s.clock, plain and not stranded and math.max(plain, s.clock - s.capacity, s.floor)\n\
      or s.clock - tokens\n\
  end\n\
  q.ahead, q.fresh = stranded, not stored and not rule\n\
  buckets[key] = q\n\
  order[#order + 1] = q\n\
  return q\n\
end\n\
for i = 1, takes do\n\
  local arg, key = ARGV[FIRST + i], KEYS[before_subjects + i]\n\
  local cost, reserve = 1, reserve_default\n\
  if arg ~= '1' then\n\
    cost = costs and costs[arg]\n\
    if not cost then\n\
      costs = costs or {}\n\
      reserves = reserves or {}\n\
      local digits, priority = string.match(arg, '^(%d+%.?%d*) ?(%l*)$')\n\
      cost = -1\n\
      reserves[arg] = 0\n\
      if digits and #digits <= 16 and #arg == #digits + #priority + (priority == '' and 0 or 1)\n\
        and (priority == '' or priority == 'critical' or priority == 'sheddable') then\n\
        if digits == '0' or string.find(digits, '^[1-9]%d*$')\n\
          or (string.find(digits, '^%d+%.%d%d?%d?%d?%d?%d?$') and not string.find(digits, '^0%d')\n\
            and tonumber(digits) > 0) then\n\
          cost = tonumber(digits)\n\
        end\n\
        if priority == '' then\n\
          reserves[arg] = reserve_default\n\
        elseif priority == 'sheddable' then\n\
          reserves[arg] = reserve_sheddable\n\
        end\n\
      end\n\
      costs[arg] = cost\n\
    end\n\
    reserve = reserves[arg]\n\
  end\n\
  local rule = mode > 0 and key ~= total_key and whole(rule_of(i) or nil, s) or nil\n\
  local kind = rule and rule.kind\n\
  local exempt = kind == 'exempt' and not probing\n\
  local q, shared\n\
  if mode > 0 and key ~= total_key and kind ~= 'block' and kind ~= 'exempt' and (rule or s.rate >= 0) then\n\
    q = bucket_of(key, rule)\n\
    if most and q.fresh and not q.came and not room_for(s.ttl, cost > 0) then\n\
      q, shared = bucket_of(shared_key), true\n\
    end\n\
  end\n\
  local reason, retry, left = 0, 0, clock - total\n\
  local subject, subject_clock = q and q.base, q and q.clock\n\
  local subject_rate, subject_capacity, subject_slack = q and q.rate, q and q.capacity, q and q.slack\n\
  if cost < 0 then\n\
    reason, retry = 8, -1\n\
  elseif mode == 0 then\n\
    reason, left = 1, full\n\
  elseif kind == 'block' then\n\
    reason, left = 9, 0\n\
    retry = rule.ends == -1 and -1 or whole_ms(rule.ends * 1000 - now)\n\
  elseif open or not exempt and (cost > full or cost + reserve - left > slack)\n\
    or q and (cost > subject_capacity or cost - (subject_clock - subject) > subject_slack) then\n\
    local never = false\n\
    if cost > full or (subject and cost > subject_capacity) then\n\
      reason, never = 7, true\n\
    else\n\
      local short = cost + reserve - left\n\
      if open then\n\
        reason = 4\n\
        if open_until < 0 then\n\
          never = true\n\
        else\n\
          retry = (open_until - now) / 1000\n\
          if cost > left then retry = retry + (cost - left) / probe_rate * 1000 end\n\
        end\n\
      elseif short > slack then\n\
        reason = cost - left <= slack and 6 or probing and 5 or 2\n\
        if rate > 0 and left + short <= capacity + slack then\n\
          retry = (short - slack / 2) / rate * 1000\n\
        else\n\
          never = true\n\
        end\n\
      end\n\
      short = subject and cost - (subject_clock - subject) or 0\n\
      if subject and short > subject_slack then\n\
        if not open then reason = 3 end\n\
        if subject_rate > 0 then\n\
          retry = math.max(retry, (short - subject_slack / 2) / subject_rate * 1000)\n\
        else\n\
          never = true\n\
        end\n\
      end\n\
    end\n\
    retry = (never or retry > 315360000000) and -1 or math.max(1, math.ceil(retry))\n\
  end\n\
  local ower = pressing and key ~= total_key and kind ~= 'exempt' and owing_with(key, shared)\n\
  local short = ower and reason == 0 and owed_by(ower) + cost - left or 0\n\
  if short > slack then\n\
    reason, retry = in_company(ower) and 11 or 2, whole_ms(fair_wait(short))\n\
  end\n\
  if fair and cost > 0 and (reason == 2 or reason == 6 or reason == 11) then press(capacity - left) end\n\
  if reason == 0 and cost > 0 then\n\
    if exempt then total = math.max(total, math.min(total + cost, clock)) else total = total + cost end\n\
    if pressing then owe(ower or '!', left - (clock - total)) end\n\
    left, total_moved = clock - total, true\n\
    if q then\n\
      q.base, q.moved = q.base + cost, true\n\
      if most and q.fresh and not shared and not q.came then\n\
        q.came = true\n\
        came(key, s.ttl)\n\
      end\n\
    end\n\
  elseif cost > 0 and mode > 0 then\n\
    if total_ahead then total_moved = true end\n\
    if q and q.ahead then q.moved = true end\n\
  end\n\
  if ower then left = math.min(left, (left - owed_by(ower) + 1) / 2) end\n\
  if q and reason ~= 1 and q.clock - q.base < left then left = q.clock - q.base end\n\
  left = left + slack\n\
  if exempt and reason == 0 then reason = 10 end\n\
  local at = 3 * i + 1\n\
  reply[at], reply[at + 1], reply[at + 2] = reason + (shared and 32 or 0), left >= 1 and left - left % 1 or 0, retry\n\
end\n\
if fair then keep_fair() end\n\
if total_moved then call('SET', total_key, string.format('%.17g', total), 'PX', ttl) end\n\
for i = 1, #order do\n\
  local q = order[i]\n\
  if q.moved and q.rule then\n\
    call('SET', q.key, own_text(-q.base, q.rule, now, s), 'PX', own_life(q.rule, now, s))\n\
  elseif q.moved then\n\
    call('SET', q.key, string.format('%.17g', q.base), 'PX', s.ttl)\n\
  end\n\
end\n\
return reply\n\
",
};

/** Keys of `take`, in order. */
export type TakeKeys = [params: string, bucket: string, ...subject: string[]];
/** Arguments of `take`, in order. */
export type TakeArgs = [nowUs: ScriptArg, chargeByUs: ScriptArg, shadow: ScriptArg, fallback: ScriptArg, ...take: ScriptArg[]];
/**
 * decides n takes in order, each against the total's bucket and its subject's, all or none of the two. A denied take writes nothing, except to re-anchor a bucket that lies ahead of Redis's clock.
 * Returns [status, nowUs, inForce, then reason, remaining, retryAfterMs of each take]; see docs/contract.md. Packed: those three as little-endian doubles, all in one string, which costs Redis and its client less than numbers. O(n) in the takes; two reads, and two writes for an admitted take
A lone take is most of the traffic, so nothing is made for it that it does not need: functions and tables come
with the branch that uses them, and includes stand inside branches..
 */
export const takeScript: Script<TakeKeys, TakeArgs> = {
  name: 'take',
  sha: '89f64cdba72aef80e21bf43770dcc861a12fe4a8',
  lua: "-- flyball take\n\
local call = redis.call\n\
local takes = #KEYS - 2\n\
local same = takes > 1 and #ARGV == 5 and ARGV[5]\n\
if takes < 0 or not same and #ARGV ~= takes + 4 then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID one key and one argument for each take')\n\
end\n\
local shadow, packed = ARGV[3] == '1', false\n\
if ARGV[3] == '2' or ARGV[3] == '3' then shadow, packed = ARGV[3] == '3', true end\n\
local now, charge_by = ARGV[1], ARGV[2]\n\
if now == '' then\n\
  local time = call('TIME')\n\
  now = time[1] * 1000000 + time[2]\n\
else\n\
  local LARGEST = 9007199254740992\n\
  local LEASE_MAX_MS = 315360000000\n\
  local function finite(text)\n\
    if type(text) ~= 'string' or #text > 32 then return nil end\n\
    if not string.find(text, '^%-?%d+%.?%d*$')\n\
      and not string.find(text, '^%-?%d+%.?%d*[eE][%+%-]?%d+$') then\n\
      return nil\n\
    end\n\
    local n = tonumber(text)\n\
    if not n or n ~= n or n == math.huge or n == -math.huge then return nil end\n\
    return n\n\
  end\n\
  local function within(text, least, most)\n\
    local n = finite(text)\n\
    if n and n >= least and n <= most then return n end\n\
  end\n\
  local function count(text)\n\
    local n = within(text, 0, LARGEST)\n\
    if n and n % 1 == 0 then return n end\n\
  end\n\
  local function exact(n)\n\
    return string.format('%.17g', n)\n\
  end\n\
  now = within(now, -LARGEST, LARGEST)\n\
end\n\
if charge_by ~= '' then\n\
  charge_by = tonumber(charge_by)\n\
  if charge_by and charge_by - charge_by ~= 0 then charge_by = nil end\n\
end\n\
if not now or not charge_by then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID nowUs and chargeByUs are µs, or empty')\n\
end\n\
local params_key = KEYS[1]\n\
local NONE = -1e300\n\
local hot = call('HGET', params_key, 'hot')\n\
local managed = hot and #hot > 160\n\
local code, from, untl, since, accrued, rate, capacity, full, floor, reserve_default, reserve_sheddable\n\
local ttl, subject_since, subject_accrued, subject_rate, subject_capacity, subject_floor, subject_ttl\n\
local open_until, probe_rate, text, clock, subject_clock, unmanaged_base\n\
if managed then\n\
  code, from, untl, since, accrued, rate, capacity, full, floor, reserve_default, reserve_sheddable,\n\
    ttl, subject_since, subject_accrued, subject_rate, subject_capacity, subject_floor, subject_ttl,\n\
    open_until, probe_rate = struct.unpack('<dddddddddddddddddddd', hot)\n\
  if now >= from and now < untl then\n\
    text = string.sub(hot, 161)\n\
    clock = accrued + rate * (now - since) / 1000000\n\
    subject_clock = subject_accrued\n\
    if subject_rate > 0 then subject_clock = subject_clock + subject_rate * (now - subject_since) / 1000000 end\n\
  end\n\
end\n\
if not text then\n\
  local MODES = { off = 0, shadow = 1, recommend = 2, auto = 3 }\n\
  local STATES = { closed = 0, open = 1, ['half-open'] = 2, recovering = 3 }\n\
  local TEXT = {\n\
    mode = true, state = true, heldBy = true, policyHash = true, onRedisError = true, subject = true,\n\
    algorithm = true, terms = true, rollout = true, subjectTerms = true, windows = true,\n\
    byPerson = true, canary = true,\n\
  }\n\
  local NEEDED = {\n\
    'v', 'mode', 'state', 'epoch', 'revision', 'generation', 'rate', 'capacity', 'inFlightMax', 'subjectRate',\n\
    'subjectCapacity', 'subjectFollow', 'policyRate', 'minRate', 'maxRate', 'minCapacity', 'maxCapacity',\n\
    'minInFlight', 'maxInFlight', 'accrued', 'changedAt', 'subjectAccrued', 'floor', 'subjectFloor',\n\
    'openUntil', 'openForMs', 'probeRate', 'validUntil', 'lostAfterMs', 'lostOverMs', 'safeRate',\n\
    'safeInFlight', 'reserveDefault', 'reserveSheddable', 'frozenUntil', 'pinnedUntil', 'holdBreaker',\n\
    'heldBy', 'fence', 'policyHash',\n\
  }\n\
  local LATER_NUMBERS = { windowMs = true, cells = true, subjectRules = true }\n\
  local COUNTS = { 'epoch', 'revision', 'generation', 'fence' }\n\
  local NOT_BELOW_ZERO = {\n\
    'rate', 'capacity', 'inFlightMax', 'subjectCapacity', 'policyRate', 'probeRate', 'safeRate', 'safeInFlight',\n\
    'lostAfterMs', 'lostOverMs',\n\
  }\n\
  local function readable(p)\n\
    for i = 1, #NEEDED do\n\
      if p[NEEDED[i]] == nil then return false end\n\
    end\n\
    if not MODES[p.mode] or not STATES[p.state] then return false end\n\
    for i = 1, #COUNTS do\n\
      local n = p[COUNTS[i]]\n\
      if n < 0 or n > 9007199254740992 or n % 1 ~= 0 then return false end\n\
    end\n\
    for i = 1, #NOT_BELOW_ZERO do\n\
      if p[NOT_BELOW_ZERO[i]] < 0 then return false end\n\
    end\n\
    return true\n\
  end\n\
  local function read_params(key)\n\
    local flat = redis.call('HGETALL', key)\n\
    if #flat == 0 then return nil end\n\
    local p = {}\n\
    for i = 1, #flat, 2 do\n\
      local field, value = flat[i], flat[i + 1]\n\
      if TEXT[field] then\n\
        p[field] = value\n\
      elseif field ~= 'hot' then\n\
        value = not string.find(value, '[^%d%.eE%+%-]') and tonumber(value)\n\
        if value and value - value == 0 then\n\
          p[field] = value\n\
        elseif LATER_NUMBERS[field] then\n\
          return nil\n\
        end\n\
      end\n\
    end\n\
    for _, field in ipairs({ 'keptMs', 'subjectKeptMs' }) do\n\
      if not p[field] or p[field] < 0 or p[field] % 1 ~= 0 then p[field] = 315360000000 end\n\
    end\n\
    return readable(p) and p or nil\n\
  end\n\
  local p = read_params(params_key)\n\
  managed = p and true\n\
  if p then\n\
    local NEVER = 9007199254740992\n\
    local function glide_start(p)\n\
      if p.pinnedUntil == -1 or p.frozenUntil == -1 then return NEVER end\n\
      local start = math.max(p.validUntil, p.pinnedUntil, p.frozenUntil)\n\
      if p.state == 'open' then\n\
        if p.openUntil == -1 then return NEVER end\n\
        start = math.max(start, p.openUntil)\n\
      end\n\
      return (start + p.lostAfterMs) * 1000\n\
    end\n\
    local function is_open(p, now)\n\
      if p.state ~= 'open' then return false end\n\
      if p.openUntil == -1 then return true end\n\
      local left = p.openUntil * 1000 - now\n\
      return left > 0 and left <= p.openForMs * 1000\n\
    end\n\
    local function paid(base, safe, from, to, opens, glide, over)\n\
      local sum = 0\n\
      local start = math.max(from, opens)\n\
      local stop = math.min(to, glide)\n\
      if stop > start then sum = base * (stop - start) end\n\
      local finish = glide + over\n\
      local left = math.max(from, glide)\n\
      local right = math.min(to, finish)\n\
      if right > left then\n\
        local first = base + (safe - base) * ((left - glide) / over)\n\
        local last = base + (safe - base) * ((right - glide) / over)\n\
        sum = sum + (first + last) / 2 * (right - left)\n\
      end\n\
      local after = math.max(from, finish)\n\
      if to > after then sum = sum + safe * (to - after) end\n\
      return sum / 1000000\n\
    end\n\
    local function effective(p, now)\n\
      local open = is_open(p, now)\n\
      local probing = not open and (p.state == 'open' or p.state == 'half-open')\n\
      local glide = glide_start(p)\n\
      local over = p.lostOverMs * 1000\n\
      local gliding = now >= glide\n\
      local share = 0\n\
      if gliding then share = now >= glide + over and 1 or (now - glide) / over end\n\
      local stopped = p.state == 'open' or p.state == 'half-open'\n\
      local base = stopped and p.probeRate or p.rate\n\
      local rate = open and 0 or base + (p.safeRate - base) * share\n\
      local capacity = p.capacity\n\
      if probing then\n\
        local narrow = math.min(capacity, math.max(1, p.probeRate))\n\
        capacity = narrow + (capacity - narrow) * share\n\
      end\n\
      local cap = p.inFlightMax\n\
      if cap > 0 and p.safeInFlight > 0 then\n\
        cap = math.floor(cap + (p.safeInFlight - cap) * share + 0.5)\n\
      end\n\
      local scale, safe_scale = 1, 1\n\
      if p.subjectFollow == 1 then\n\
        scale = p.rate / p.policyRate\n\
        safe_scale = p.safeRate / p.policyRate\n\
      end\n\
      local none = p.subjectRate < 0\n\
      local subject_base = none and 0 or p.subjectRate * scale\n\
      local subject_safe = none and 0 or p.subjectRate * safe_scale\n\
      local subject_rate = subject_base + (subject_safe - subject_base) * share\n\
      local opens = 0\n\
      if open then\n\
        opens = p.openUntil == -1 and NEVER or p.openUntil * 1000\n\
      elseif p.state == 'open' and p.openUntil * 1000 <= now then\n\
        opens = p.openUntil * 1000\n\
      end\n\
      local tokens, subject_tokens\n\
      if now < p.changedAt then\n\
        tokens = p.accrued - rate * (p.changedAt - now) / 1000000\n\
        subject_tokens = p.subjectAccrued - subject_rate * (p.changedAt - now) / 1000000\n\
      else\n\
        tokens = p.accrued + paid(base, p.safeRate, p.changedAt, now, opens, glide, over)\n\
        subject_tokens = p.subjectAccrued\n\
          + paid(subject_base, subject_safe, p.changedAt, now, 0, glide, over)\n\
      end\n\
      local state = p.state\n\
      if probing then state = gliding and 'recovering' or 'half-open' end\n\
      return {\n\
        state = state,\n\
        gliding = gliding,\n\
        rate = rate,\n\
        capacity = capacity,\n\
        inFlightMax = cap,\n\
        subjectRate = none and -1 or subject_rate,\n\
        subjectCapacity = p.subjectCapacity,\n\
        tokens = tokens,\n\
        subjectTokens = subject_tokens,\n\
        opens = opens,\n\
        glide = glide,\n\
      }\n\
    end\n\
    local TTL_MARGIN_MS = 1000\n\
    local TTL_MAX_MS = 315360000000\n\
    local function lowest_above_zero(...)\n\
      local lowest = math.huge\n\
      for _, rate in ipairs({ ... }) do\n\
        if rate > 0 and rate < lowest then lowest = rate end\n\
      end\n\
      return lowest\n\
    end\n\
    local function ttl_ms(capacity, rate)\n\
      if not (rate > 0) or rate == math.huge then return TTL_MAX_MS end\n\
      return math.min(TTL_MAX_MS, math.ceil(capacity / rate * 1000) + TTL_MARGIN_MS)\n\
    end\n\
    local function bucket_ttl_ms(p)\n\
      return ttl_ms(\n\
        math.max(p.capacity, p.maxCapacity),\n\
        lowest_above_zero(p.minRate, p.probeRate, p.safeRate, p.rate)\n\
      )\n\
    end\n\
    local function subject_ttl_ms(p)\n\
      if p.subjectRate < 0 then return 0 end\n\
      local rate = p.subjectRate\n\
      if p.subjectFollow == 1 then\n\
        rate = rate * lowest_above_zero(p.minRate, p.safeRate, p.rate) / p.policyRate\n\
      end\n\
      return ttl_ms(p.subjectCapacity, rate)\n\
    end\n\
    local function kept_ms(kept, needed)\n\
      if needed <= kept and kept <= 4 * needed then return kept, false end\n\
      return math.min(TTL_MAX_MS, 2 * needed), needed > kept\n\
    end\n\
    local function in_force_text(p, e)\n\
      return string.format(\n\
        '1 %.0f %.0f %.0f %s %s %d %.17g %.17g %.17g %.17g %.17g',\n\
        p.epoch, p.revision, p.generation, p.mode, e.state, e.gliding and 1 or 0,\n\
        e.rate, e.capacity, e.inFlightMax, e.subjectRate, e.subjectCapacity\n\
      )\n\
    end\n\
    local function view_of(p, now)\n\
      local e = effective(p, now)\n\
      local untl = e.glide\n\
      if e.state == 'open' then untl = math.min(untl, e.opens) end\n\
      local since = p.changedAt\n\
      if e.state ~= 'open' then since = math.max(since, e.opens) end\n\
      local half_open = e.state == 'half-open'\n\
      return {\n\
        code = MODES[p.mode] + 4 * STATES[e.state] + 16 * (p.subjectRules or 0),\n\
        from = since,\n\
        untl = e.gliding and 0 or untl,\n\
        since = since,\n\
        accrued = p.accrued,\n\
        rate = e.rate,\n\
        capacity = e.capacity,\n\
        fullCapacity = p.capacity,\n\
        floor = p.floor,\n\
        reserveDefault = half_open and 0 or p.reserveDefault * e.capacity,\n\
        reserveSheddable = half_open and 0 or p.reserveSheddable * e.capacity,\n\
        ttlMs = p.keptMs,\n\
        subjectSince = p.changedAt,\n\
        subjectAccrued = p.subjectAccrued,\n\
        subjectRate = e.subjectRate,\n\
        subjectLowest = p.subjectFollow == 1 and math.min(e.subjectRate, p.subjectRate * p.rate / p.policyRate)\n\
          or e.subjectRate,\n\
        subjectCapacity = e.subjectCapacity,\n\
        subjectFloor = p.subjectFloor,\n\
        subjectTtlMs = p.subjectKeptMs,\n\
        openUntil = p.openUntil * 1000,\n\
        probeRate = p.probeRate,\n\
        tokens = e.tokens,\n\
        subjectTokens = e.subjectTokens,\n\
        text = in_force_text(p, e),\n\
      }\n\
    end\n\
    local v = view_of(p, now)\n\
    code, rate, capacity, full, text = v.code, v.rate, v.capacity, v.fullCapacity, v.text\n\
    clock, subject_clock, ttl, subject_ttl = v.tokens, v.subjectTokens, v.ttlMs, v.subjectTtlMs\n\
    reserve_default, reserve_sheddable = v.reserveDefault, v.reserveSheddable\n\
    subject_rate, subject_capacity = v.subjectRate, v.subjectCapacity\n\
    open_until, probe_rate = v.openUntil, v.probeRate\n\
    floor, subject_floor = v.floor, v.subjectFloor\n\
  else\n\
    local number = '(%d+%.?%d*[eE]?[%+%-]?%d*)'\n\
    local r, c, f, sr, sc = string.match(\n\
      ARGV[4],\n\
      '^' .. number .. ' ' .. number .. ' ' .. number .. ' (%-?%d+%.?%d*[eE]?[%+%-]?%d*) ' .. number .. '$'\n\
    )\n\
    rate, capacity, subject_rate, subject_capacity = tonumber(r), tonumber(c), tonumber(sr), tonumber(sc)\n\
    local cap = tonumber(f)\n\
    local sum = rate and capacity and cap and subject_rate and subject_capacity\n\
      and rate + capacity + cap + subject_rate + subject_capacity\n\
    if not sum or sum > 9007199254740992 then\n\
      return redis.error_reply('FLYBALL_E_CALL_INVALID fallback is five numbers: ' .. ARGV[4])\n\
    end\n\
    code = (ARGV[3] == '1' or ARGV[3] == '3') and 1 or 2\n\
    full, floor, subject_floor = capacity, NONE, NONE\n\
    clock, subject_clock = 0, 0\n\
    reserve_default, reserve_sheddable, open_until, probe_rate = 0, 0, 0, 0\n\
    local function life(most, per_second)\n\
      if not (per_second > 0) then return 86400000 end\n\
      return math.min(86400000 * 3650, math.ceil(most / per_second * 1000) + 1000)\n\
    end\n\
    ttl, subject_ttl = life(capacity, rate), life(subject_capacity, subject_rate)\n\
    text = string.format(\n\
      '0 0 0 0 %s closed 0 %.17g %.17g %.17g %.17g %.17g',\n\
      code == 1 and 'shadow' or 'recommend', rate, capacity, cap, subject_rate, subject_capacity\n\
    )\n\
    function unmanaged_base(mark, per_second)\n\
      local held, at = string.match(mark, '^u:(%d+%.?%d*[eE]?[%+%-]?%d*):(%d+)$')\n\
      held, at = tonumber(held), tonumber(at)\n\
      if not held or not at then return 0, true end\n\
      return -(held + per_second * math.max(0, now - at) / 1000000), at > now\n\
    end\n\
  end\n\
end\n\
if charge_by ~= '' and now > charge_by then return { 1, now, text } end\n\
if code >= 16 then return { 3, now, text } end\n\
local mode = code % 4\n\
if managed and mode ~= 0 and (mode == 1) ~= shadow then return { 2, now, text } end\n\
local reply = { 0, now, text }\n\
local state = (code - mode) / 4\n\
local slack = 0.0000005 + (clock > 0 and clock or 0) * 4.4408920985006262e-16\n\
local subject_slack = 0.0000005 + (subject_clock > 0 and subject_clock or 0) * 4.4408920985006262e-16\n\
if floor > clock + slack then floor = NONE end\n\
if subject_floor > subject_clock + subject_slack then subject_floor = NONE end\n\
local total_key = KEYS[2]\n\
local by_subject = subject_rate >= 0\n\
local open, probing = state == 1, state == 2\n\
local stored, bases, ahead, costs, reserves, total_moved, lone, lone_base\n\
local moved = 0\n\
if takes > 1 then\n\
  if takes > 512 then return redis.error_reply('FLYBALL_E_CALL_INVALID at most 512 takes') end\n\
  stored, bases = call('MGET', unpack(KEYS, 2)), {}\n\
end\n\
local mark = stored and stored[1] or not stored and mode > 0 and call('GET', total_key)\n\
local total = clock - capacity\n\
if total < floor then total = floor end\n\
if mark then\n\
  local anchor = managed and tonumber(mark)\n\
  if not anchor or not (anchor <= clock + slack) then\n\
    local v, per_second = clock, rate\n\
    local stranded = true\n\
    if not managed then\n\
      anchor, stranded = unmanaged_base(mark, per_second)\n\
    else\n\
      local tokens = tonumber(string.match(mark, '^[uo]:(%d+%.?%d*):') or '')\n\
      anchor = tokens and v - tokens or v\n\
    end\n\
    if stranded then ahead = { [total_key] = true } end\n\
  end\n\
  if anchor > total then total = anchor end\n\
end\n\
local at = 3\n\
for i = 1, takes do\n\
  local arg, key = same or ARGV[4 + i], KEYS[2 + i]\n\
  local cost, reserve = 1, reserve_default\n\
  if arg ~= '1' then\n\
    cost = costs and costs[arg]\n\
    if not cost then\n\
      costs = costs or {}\n\
      reserves = reserves or {}\n\
      local digits, priority = string.match(arg, '^(%d+%.?%d*) ?(%l*)$')\n\
      cost = -1\n\
      reserves[arg] = 0\n\
      if digits and #digits <= 16 and #arg == #digits + #priority + (priority == '' and 0 or 1)\n\
        and (priority == '' or priority == 'critical' or priority == 'sheddable') then\n\
        if digits == '0' or string.find(digits, '^[1-9]%d*$')\n\
          or (string.find(digits, '^%d+%.%d%d?%d?%d?%d?%d?$') and not string.find(digits, '^0%d')\n\
            and tonumber(digits) > 0) then\n\
          cost = tonumber(digits)\n\
        end\n\
        if priority == '' then\n\
          reserves[arg] = reserve_default\n\
        elseif priority == 'sheddable' then\n\
          reserves[arg] = reserve_sheddable\n\
        end\n\
      end\n\
      costs[arg] = cost\n\
    end\n\
    reserve = reserves[arg]\n\
  end\n\
  local subject\n\
  if by_subject and key ~= total_key and mode > 0 then\n\
    subject = bases and bases[key]\n\
    if not subject then\n\
      subject = subject_clock - subject_capacity\n\
      if subject < subject_floor then subject = subject_floor end\n\
      if stored then mark = stored[1 + i] else mark = call('GET', key) end\n\
      if mark then\n\
        local anchor = managed and tonumber(mark)\n\
        if not anchor or not (anchor <= subject_clock + subject_slack) then\n\
          local v, per_second = subject_clock, subject_rate\n\
          local stranded = true\n\
          if not managed then\n\
            anchor, stranded = unmanaged_base(mark, per_second)\n\
          else\n\
            local tokens = tonumber(string.match(mark, '^[uo]:(%d+%.?%d*):') or '')\n\
            anchor = tokens and v - tokens or v\n\
          end\n\
          if stranded then\n\
            ahead = ahead or {}\n\
            ahead[key] = true\n\
          end\n\
        end\n\
        if anchor > subject then subject = anchor end\n\
      end\n\
      if bases then bases[key] = subject end\n\
    end\n\
  end\n\
  local reason, retry = 0, 0\n\
  local left = clock - total\n\
  if cost < 0 then\n\
    reason, retry = 8, -1\n\
  elseif mode == 0 then\n\
    reason, left = 1, full\n\
  elseif open or cost > full or cost + reserve - left > slack\n\
    or subject and (cost > subject_capacity or cost - (subject_clock - subject) > subject_slack) then\n\
    local never = false\n\
    if cost > full or (subject and cost > subject_capacity) then\n\
      reason, never = 7, true\n\
    else\n\
      local short = cost + reserve - left\n\
      if open then\n\
        reason = 4\n\
        if open_until < 0 then\n\
          never = true\n\
        else\n\
          retry = (open_until - now) / 1000\n\
          if cost > left then retry = retry + (cost - left) / probe_rate * 1000 end\n\
        end\n\
      elseif short > slack then\n\
        reason = cost - left <= slack and 6 or probing and 5 or 2\n\
        if rate > 0 and left + short <= capacity + slack then\n\
          retry = (short - slack / 2) / rate * 1000\n\
        else\n\
          never = true\n\
        end\n\
      end\n\
      short = subject and cost - (subject_clock - subject) or 0\n\
      if subject and short > subject_slack then\n\
        if not open then reason = 3 end\n\
        if subject_rate > 0 then\n\
          retry = math.max(retry, (short - subject_slack / 2) / subject_rate * 1000)\n\
        else\n\
          never = true\n\
        end\n\
      end\n\
    end\n\
    retry = (never or retry > 315360000000) and -1 or math.max(1, math.ceil(retry))\n\
  end\n\
  local granted = reason == 0 and cost > 0\n\
  if granted then\n\
    total, left, total_moved = total + cost, left - cost, true\n\
    if subject then subject = subject + cost end\n\
  elseif ahead and cost > 0 and ahead[total_key] then\n\
    total_moved = true\n\
  end\n\
  if subject and (granted or ahead and cost > 0 and ahead[key]) then\n\
    if bases then\n\
      moved = moved + 1\n\
      bases[key], stored[moved] = subject, key\n\
    else\n\
      lone, lone_base = key, subject\n\
    end\n\
  end\n\
  if subject and subject_clock - subject < left then left = subject_clock - subject end\n\
  left = left + slack\n\
  reply[at + 1], reply[at + 2], reply[at + 3] = reason, left >= 1 and left - left % 1 or 0, retry\n\
  at = at + 3\n\
end\n\
if total_moved then\n\
  if managed then\n\
    call('SET', total_key, total, 'PX', ttl)\n\
  else\n\
    call('SET', total_key, string.format('u:%.17g:%.0f', total < 0 and -total or 0, now), 'PX', ttl)\n\
  end\n\
end\n\
if lone then\n\
  if not managed then\n\
    lone_base = string.format('u:%.17g:%.0f', lone_base < 0 and -lone_base or 0, now)\n\
  end\n\
  call('SET', lone, lone_base, 'PX', subject_ttl)\n\
elseif moved > 0 then\n\
  local life = string.format('%.0f', subject_ttl)\n\
  for i = 1, moved do\n\
    local key = stored[i]\n\
    local base = bases[key]\n\
    if base then\n\
      bases[key] = nil\n\
      if managed then\n\
        call('SET', key, base, 'PX', life)\n\
      else\n\
        call('SET', key, string.format('u:%.17g:%.0f', base < 0 and -base or 0, now), 'PX', life)\n\
      end\n\
    end\n\
  end\n\
end\n\
if packed and takes > 0 then\n\
  return { 0, now, text, struct.pack('<' .. string.rep('d', 3 * takes), unpack(reply, 4)) }\n\
end\n\
return reply\n\
",
};

/** Keys of `together`, in order. */
export type TogetherKeys = [...keys: string[]];
/** Arguments of `together`, in order. */
export type TogetherArgs = [nowUs: ScriptArg, chargeByUs: ScriptArg, limiters: ScriptArg, ...terms: ScriptArg[]];
/**
 * decides takes of several limiters at once, all or none: every limiter is asked first, then all are charged. A limiter in shadow denies nobody: it is charged if it would have admitted and the others do. Token buckets only. Of what is known of single subjects it heeds blocks alone.
 * Returns [status, nowUs, inForce of each limiter, then reason, remaining, retryAfterMs of each take]. O(n) in the takes; at most two reads and two writes for each.
 */
export const togetherScript: Script<TogetherKeys, TogetherArgs> = {
  name: 'together',
  sha: '5ac0eca132e66d1aa89512a345e0a503261261d3',
  lua: "-- flyball together\n\
local LARGEST = 9007199254740992\n\
local LEASE_MAX_MS = 315360000000\n\
local function finite(text)\n\
  if type(text) ~= 'string' or #text > 32 then return nil end\n\
  if not string.find(text, '^%-?%d+%.?%d*$')\n\
    and not string.find(text, '^%-?%d+%.?%d*[eE][%+%-]?%d+$') then\n\
    return nil\n\
  end\n\
  local n = tonumber(text)\n\
  if not n or n ~= n or n == math.huge or n == -math.huge then return nil end\n\
  return n\n\
end\n\
local function within(text, least, most)\n\
  local n = finite(text)\n\
  if n and n >= least and n <= most then return n end\n\
end\n\
local function count(text)\n\
  local n = within(text, 0, LARGEST)\n\
  if n and n % 1 == 0 then return n end\n\
end\n\
local function exact(n)\n\
  return string.format('%.17g', n)\n\
end\n\
local MODES = { off = 0, shadow = 1, recommend = 2, auto = 3 }\n\
local STATES = { closed = 0, open = 1, ['half-open'] = 2, recovering = 3 }\n\
local TEXT = {\n\
  mode = true, state = true, heldBy = true, policyHash = true, onRedisError = true, subject = true,\n\
  algorithm = true, terms = true, rollout = true, subjectTerms = true, windows = true,\n\
  byPerson = true, canary = true,\n\
}\n\
local NEEDED = {\n\
  'v', 'mode', 'state', 'epoch', 'revision', 'generation', 'rate', 'capacity', 'inFlightMax', 'subjectRate',\n\
  'subjectCapacity', 'subjectFollow', 'policyRate', 'minRate', 'maxRate', 'minCapacity', 'maxCapacity',\n\
  'minInFlight', 'maxInFlight', 'accrued', 'changedAt', 'subjectAccrued', 'floor', 'subjectFloor',\n\
  'openUntil', 'openForMs', 'probeRate', 'validUntil', 'lostAfterMs', 'lostOverMs', 'safeRate',\n\
  'safeInFlight', 'reserveDefault', 'reserveSheddable', 'frozenUntil', 'pinnedUntil', 'holdBreaker',\n\
  'heldBy', 'fence', 'policyHash',\n\
}\n\
local LATER_NUMBERS = { windowMs = true, cells = true, subjectRules = true }\n\
local COUNTS = { 'epoch', 'revision', 'generation', 'fence' }\n\
local NOT_BELOW_ZERO = {\n\
  'rate', 'capacity', 'inFlightMax', 'subjectCapacity', 'policyRate', 'probeRate', 'safeRate', 'safeInFlight',\n\
  'lostAfterMs', 'lostOverMs',\n\
}\n\
local function readable(p)\n\
  for i = 1, #NEEDED do\n\
    if p[NEEDED[i]] == nil then return false end\n\
  end\n\
  if not MODES[p.mode] or not STATES[p.state] then return false end\n\
  for i = 1, #COUNTS do\n\
    local n = p[COUNTS[i]]\n\
    if n < 0 or n > 9007199254740992 or n % 1 ~= 0 then return false end\n\
  end\n\
  for i = 1, #NOT_BELOW_ZERO do\n\
    if p[NOT_BELOW_ZERO[i]] < 0 then return false end\n\
  end\n\
  return true\n\
end\n\
local function read_params(key)\n\
  local flat = redis.call('HGETALL', key)\n\
  if #flat == 0 then return nil end\n\
  local p = {}\n\
  for i = 1, #flat, 2 do\n\
    local field, value = flat[i], flat[i + 1]\n\
    if TEXT[field] then\n\
      p[field] = value\n\
    elseif field ~= 'hot' then\n\
      value = not string.find(value, '[^%d%.eE%+%-]') and tonumber(value)\n\
      if value and value - value == 0 then\n\
        p[field] = value\n\
      elseif LATER_NUMBERS[field] then\n\
        return nil\n\
      end\n\
    end\n\
  end\n\
  for _, field in ipairs({ 'keptMs', 'subjectKeptMs' }) do\n\
    if not p[field] or p[field] < 0 or p[field] % 1 ~= 0 then p[field] = 315360000000 end\n\
  end\n\
  return readable(p) and p or nil\n\
end\n\
local NEVER = 9007199254740992\n\
local function glide_start(p)\n\
  if p.pinnedUntil == -1 or p.frozenUntil == -1 then return NEVER end\n\
  local start = math.max(p.validUntil, p.pinnedUntil, p.frozenUntil)\n\
  if p.state == 'open' then\n\
    if p.openUntil == -1 then return NEVER end\n\
    start = math.max(start, p.openUntil)\n\
  end\n\
  return (start + p.lostAfterMs) * 1000\n\
end\n\
local function is_open(p, now)\n\
  if p.state ~= 'open' then return false end\n\
  if p.openUntil == -1 then return true end\n\
  local left = p.openUntil * 1000 - now\n\
  return left > 0 and left <= p.openForMs * 1000\n\
end\n\
local function paid(base, safe, from, to, opens, glide, over)\n\
  local sum = 0\n\
  local start = math.max(from, opens)\n\
  local stop = math.min(to, glide)\n\
  if stop > start then sum = base * (stop - start) end\n\
  local finish = glide + over\n\
  local left = math.max(from, glide)\n\
  local right = math.min(to, finish)\n\
  if right > left then\n\
    local first = base + (safe - base) * ((left - glide) / over)\n\
    local last = base + (safe - base) * ((right - glide) / over)\n\
    sum = sum + (first + last) / 2 * (right - left)\n\
  end\n\
  local after = math.max(from, finish)\n\
  if to > after then sum = sum + safe * (to - after) end\n\
  return sum / 1000000\n\
end\n\
local function effective(p, now)\n\
  local open = is_open(p, now)\n\
  local probing = not open and (p.state == 'open' or p.state == 'half-open')\n\
  local glide = glide_start(p)\n\
  local over = p.lostOverMs * 1000\n\
  local gliding = now >= glide\n\
  local share = 0\n\
  if gliding then share = now >= glide + over and 1 or (now - glide) / over end\n\
  local stopped = p.state == 'open' or p.state == 'half-open'\n\
  local base = stopped and p.probeRate or p.rate\n\
  local rate = open and 0 or base + (p.safeRate - base) * share\n\
  local capacity = p.capacity\n\
  if probing then\n\
    local narrow = math.min(capacity, math.max(1, p.probeRate))\n\
    capacity = narrow + (capacity - narrow) * share\n\
  end\n\
  local cap = p.inFlightMax\n\
  if cap > 0 and p.safeInFlight > 0 then\n\
    cap = math.floor(cap + (p.safeInFlight - cap) * share + 0.5)\n\
  end\n\
  local scale, safe_scale = 1, 1\n\
  if p.subjectFollow == 1 then\n\
    scale = p.rate / p.policyRate\n\
    safe_scale = p.safeRate / p.policyRate\n\
  end\n\
  local none = p.subjectRate < 0\n\
  local subject_base = none and 0 or p.subjectRate * scale\n\
  local subject_safe = none and 0 or p.subjectRate * safe_scale\n\
  local subject_rate = subject_base + (subject_safe - subject_base) * share\n\
  local opens = 0\n\
  if open then\n\
    opens = p.openUntil == -1 and NEVER or p.openUntil * 1000\n\
  elseif p.state == 'open' and p.openUntil * 1000 <= now then\n\
    opens = p.openUntil * 1000\n\
  end\n\
  local tokens, subject_tokens\n\
  if now < p.changedAt then\n\
    tokens = p.accrued - rate * (p.changedAt - now) / 1000000\n\
    subject_tokens = p.subjectAccrued - subject_rate * (p.changedAt - now) / 1000000\n\
  else\n\
    tokens = p.accrued + paid(base, p.safeRate, p.changedAt, now, opens, glide, over)\n\
    subject_tokens = p.subjectAccrued\n\
      + paid(subject_base, subject_safe, p.changedAt, now, 0, glide, over)\n\
  end\n\
  local state = p.state\n\
  if probing then state = gliding and 'recovering' or 'half-open' end\n\
  return {\n\
    state = state,\n\
    gliding = gliding,\n\
    rate = rate,\n\
    capacity = capacity,\n\
    inFlightMax = cap,\n\
    subjectRate = none and -1 or subject_rate,\n\
    subjectCapacity = p.subjectCapacity,\n\
    tokens = tokens,\n\
    subjectTokens = subject_tokens,\n\
    opens = opens,\n\
    glide = glide,\n\
  }\n\
end\n\
local TTL_MARGIN_MS = 1000\n\
local TTL_MAX_MS = 315360000000\n\
local function lowest_above_zero(...)\n\
  local lowest = math.huge\n\
  for _, rate in ipairs({ ... }) do\n\
    if rate > 0 and rate < lowest then lowest = rate end\n\
  end\n\
  return lowest\n\
end\n\
local function ttl_ms(capacity, rate)\n\
  if not (rate > 0) or rate == math.huge then return TTL_MAX_MS end\n\
  return math.min(TTL_MAX_MS, math.ceil(capacity / rate * 1000) + TTL_MARGIN_MS)\n\
end\n\
local function bucket_ttl_ms(p)\n\
  return ttl_ms(\n\
    math.max(p.capacity, p.maxCapacity),\n\
    lowest_above_zero(p.minRate, p.probeRate, p.safeRate, p.rate)\n\
  )\n\
end\n\
local function subject_ttl_ms(p)\n\
  if p.subjectRate < 0 then return 0 end\n\
  local rate = p.subjectRate\n\
  if p.subjectFollow == 1 then\n\
    rate = rate * lowest_above_zero(p.minRate, p.safeRate, p.rate) / p.policyRate\n\
  end\n\
  return ttl_ms(p.subjectCapacity, rate)\n\
end\n\
local function kept_ms(kept, needed)\n\
  if needed <= kept and kept <= 4 * needed then return kept, false end\n\
  return math.min(TTL_MAX_MS, 2 * needed), needed > kept\n\
end\n\
local function in_force_text(p, e)\n\
  return string.format(\n\
    '1 %.0f %.0f %.0f %s %s %d %.17g %.17g %.17g %.17g %.17g',\n\
    p.epoch, p.revision, p.generation, p.mode, e.state, e.gliding and 1 or 0,\n\
    e.rate, e.capacity, e.inFlightMax, e.subjectRate, e.subjectCapacity\n\
  )\n\
end\n\
local function view_of(p, now)\n\
  local e = effective(p, now)\n\
  local untl = e.glide\n\
  if e.state == 'open' then untl = math.min(untl, e.opens) end\n\
  local since = p.changedAt\n\
  if e.state ~= 'open' then since = math.max(since, e.opens) end\n\
  local half_open = e.state == 'half-open'\n\
  return {\n\
    code = MODES[p.mode] + 4 * STATES[e.state] + 16 * (p.subjectRules or 0),\n\
    from = since,\n\
    untl = e.gliding and 0 or untl,\n\
    since = since,\n\
    accrued = p.accrued,\n\
    rate = e.rate,\n\
    capacity = e.capacity,\n\
    fullCapacity = p.capacity,\n\
    floor = p.floor,\n\
    reserveDefault = half_open and 0 or p.reserveDefault * e.capacity,\n\
    reserveSheddable = half_open and 0 or p.reserveSheddable * e.capacity,\n\
    ttlMs = p.keptMs,\n\
    subjectSince = p.changedAt,\n\
    subjectAccrued = p.subjectAccrued,\n\
    subjectRate = e.subjectRate,\n\
    subjectLowest = p.subjectFollow == 1 and math.min(e.subjectRate, p.subjectRate * p.rate / p.policyRate)\n\
      or e.subjectRate,\n\
    subjectCapacity = e.subjectCapacity,\n\
    subjectFloor = p.subjectFloor,\n\
    subjectTtlMs = p.subjectKeptMs,\n\
    openUntil = p.openUntil * 1000,\n\
    probeRate = p.probeRate,\n\
    tokens = e.tokens,\n\
    subjectTokens = e.subjectTokens,\n\
    text = in_force_text(p, e),\n\
  }\n\
end\n\
local function now_us(given)\n\
  if given ~= '' then return within(given, -LARGEST, LARGEST) end\n\
  local time = redis.call('TIME')\n\
  return time[1] * 1000000 + time[2]\n\
end\n\
local MOST_RATE, MOST_CAPACITY = 1000000, 1000000000\n\
local function part_of(text, most)\n\
  return within(text, 1e-9, most)\n\
end\n\
local function override_of(text, now)\n\
  local kind, ends, rate, capacity = string.match(text or '', '^(%l+) (%-?%d+) (%S+) (%S+)')\n\
  ends = within(ends, -1, LARGEST)\n\
  if not ends or ends ~= -1 and ends * 1000 <= now then return nil end\n\
  rate, capacity = part_of(rate, MOST_RATE), part_of(capacity, MOST_CAPACITY)\n\
  if kind == 'limit' and not rate and not capacity or kind ~= 'limit' and kind ~= 'block' and kind ~= 'exempt' then\n\
    return nil\n\
  end\n\
  return { kind = kind, ends = ends, rate = rate, capacity = capacity, numbers = kind == 'limit' }\n\
end\n\
local function steps_of(terms)\n\
  local steps = {}\n\
  for times, capacity, rate in string.gmatch(terms, 'step=(%d+):([^: ]+):([^: ]+)') do\n\
    steps[#steps + 1] = {\n\
      kind = 'tier', times = tonumber(times), ends = 0, rate = part_of(rate, MOST_RATE),\n\
      capacity = part_of(capacity, MOST_CAPACITY),\n\
      numbers = true,\n\
    }\n\
  end\n\
  return steps\n\
end\n\
local function tier_of(steps, streak)\n\
  local tier = 0\n\
  for i = 1, #steps do\n\
    if streak and streak >= steps[i].times then tier = i end\n\
  end\n\
  return tier\n\
end\n\
local call = redis.call\n\
local size = within(ARGV[3], 1, 16)\n\
local sets = size and (#ARGV - 3) / size - 2\n\
if not size or size % 1 ~= 0 or sets < 0 or sets % 1 ~= 0 or sets * size > 512 or #KEYS ~= size * (sets + 2) then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID two keys and two terms a limiter, then one of each a take')\n\
end\n\
local now, charge_by = now_us(ARGV[1]), ARGV[2]\n\
if charge_by ~= '' then charge_by = within(charge_by, -LARGEST, LARGEST) end\n\
if not now or not charge_by then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID nowUs and chargeByUs are µs, or empty')\n\
end\n\
local NONE = -1e300\n\
local marks\n\
if sets > 1 then\n\
  local buckets = {}\n\
  for i = 1, size do buckets[i] = KEYS[2 * i] end\n\
  for i = 2 * size + 1, #KEYS do buckets[i - size] = KEYS[i] end\n\
  local read = call('MGET', unpack(buckets))\n\
  marks = {}\n\
  for i = 1, #buckets do marks[buckets[i]] = read[i] end\n\
end\n\
local function slack_at(v)\n\
  return 0.0000005 + (v > 0 and v or 0) * 4.4408920985006262e-16\n\
end\n\
local function limiter_of(params, bucket, ARGV)\n\
  local params_key = params\n\
  local hot = call('HGET', params_key, 'hot')\n\
  local managed = hot and #hot > 160\n\
  local code, from, untl, since, accrued, rate, capacity, full, floor, reserve_default, reserve_sheddable\n\
  local ttl, subject_since, subject_accrued, subject_rate, subject_capacity, subject_floor, subject_ttl\n\
  local open_until, probe_rate, text, clock, subject_clock, unmanaged_base\n\
  if managed then\n\
    code, from, untl, since, accrued, rate, capacity, full, floor, reserve_default, reserve_sheddable,\n\
      ttl, subject_since, subject_accrued, subject_rate, subject_capacity, subject_floor, subject_ttl,\n\
      open_until, probe_rate = struct.unpack('<dddddddddddddddddddd', hot)\n\
    if now >= from and now < untl then\n\
      text = string.sub(hot, 161)\n\
      clock = accrued + rate * (now - since) / 1000000\n\
      subject_clock = subject_accrued\n\
      if subject_rate > 0 then subject_clock = subject_clock + subject_rate * (now - subject_since) / 1000000 end\n\
    end\n\
  end\n\
  if not text then\n\
    local p = read_params(params)\n\
    managed = p and true\n\
    if p then\n\
      local v = view_of(p, now)\n\
      code, rate, capacity, full, text = v.code, v.rate, v.capacity, v.fullCapacity, v.text\n\
      clock, subject_clock, ttl, subject_ttl = v.tokens, v.subjectTokens, v.ttlMs, v.subjectTtlMs\n\
      reserve_default, reserve_sheddable = v.reserveDefault, v.reserveSheddable\n\
      subject_rate, subject_capacity = v.subjectRate, v.subjectCapacity\n\
      open_until, probe_rate = v.openUntil, v.probeRate\n\
      floor, subject_floor = v.floor, v.subjectFloor\n\
    else\n\
      local number = '(%d+%.?%d*[eE]?[%+%-]?%d*)'\n\
      local r, c, f, sr, sc = string.match(\n\
        ARGV[4],\n\
        '^' .. number .. ' ' .. number .. ' ' .. number .. ' (%-?%d+%.?%d*[eE]?[%+%-]?%d*) ' .. number .. '$'\n\
      )\n\
      rate, capacity, subject_rate, subject_capacity = tonumber(r), tonumber(c), tonumber(sr), tonumber(sc)\n\
      local cap = tonumber(f)\n\
      local sum = rate and capacity and cap and subject_rate and subject_capacity\n\
        and rate + capacity + cap + subject_rate + subject_capacity\n\
      if not sum or sum > 9007199254740992 then\n\
        return redis.error_reply('FLYBALL_E_CALL_INVALID fallback is five numbers: ' .. ARGV[4])\n\
      end\n\
      code = (ARGV[3] == '1' or ARGV[3] == '3') and 1 or 2\n\
      full, floor, subject_floor = capacity, NONE, NONE\n\
      clock, subject_clock = 0, 0\n\
      reserve_default, reserve_sheddable, open_until, probe_rate = 0, 0, 0, 0\n\
      local function life(most, per_second)\n\
        if not (per_second > 0) then return 86400000 end\n\
        return math.min(86400000 * 3650, math.ceil(most / per_second * 1000) + 1000)\n\
      end\n\
      ttl, subject_ttl = life(capacity, rate), life(subject_capacity, subject_rate)\n\
      text = string.format(\n\
        '0 0 0 0 %s closed 0 %.17g %.17g %.17g %.17g %.17g',\n\
        code == 1 and 'shadow' or 'recommend', rate, capacity, cap, subject_rate, subject_capacity\n\
      )\n\
      function unmanaged_base(mark, per_second)\n\
        local held, at = string.match(mark, '^u:(%d+%.?%d*[eE]?[%+%-]?%d*):(%d+)$')\n\
        held, at = tonumber(held), tonumber(at)\n\
        if not held or not at then return 0, true end\n\
        return -(held + per_second * math.max(0, now - at) / 1000000), at > now\n\
      end\n\
    end\n\
  end\n\
  local slack, subject_slack = slack_at(clock), slack_at(subject_clock)\n\
  if floor > clock + slack then floor = NONE end\n\
  if subject_floor > subject_clock + subject_slack then subject_floor = NONE end\n\
  local overrides = code >= 16 and string.sub(params, 1, -7) .. 'o'\n\
  code = code % 16\n\
  local mode = code % 4\n\
  local state = (code - mode) / 4\n\
  return {\n\
    managed = managed, mode = mode, open = state == 1, probing = state == 2, text = text,\n\
    rate = rate, capacity = capacity, full = full, floor = floor, clock = clock, slack = slack, ttl = ttl,\n\
    subject_rate = subject_rate, subject_capacity = subject_capacity, subject_floor = subject_floor,\n\
    subject_clock = subject_clock, subject_slack = subject_slack, subject_ttl = subject_ttl,\n\
    reserve_default = reserve_default, reserve_sheddable = reserve_sheddable,\n\
    open_until = open_until, probe_rate = probe_rate, unmanaged_base = unmanaged_base,\n\
    bucket = bucket, overrides = overrides, bases = {}, ahead = {}, moved = {}, costs = {}, reserves = {},\n\
  }\n\
end\n\
local function base_of(l, key, v, per_second, room, floor, slack)\n\
  local base = l.bases[key]\n\
  if base then return base end\n\
  base = v - room\n\
  if floor > base then base = floor end\n\
  local mark\n\
  if marks then mark = marks[key] else mark = call('GET', key) end\n\
  if mark then\n\
    local managed, unmanaged_base = l.managed, l.unmanaged_base\n\
    local anchor = managed and tonumber(mark)\n\
    if not anchor or not (anchor <= v + slack) then\n\
      local stranded = true\n\
      if not managed then\n\
        anchor, stranded = unmanaged_base(mark, per_second)\n\
      else\n\
        local tokens = tonumber(string.match(mark, '^[uo]:(%d+%.?%d*):') or '')\n\
        anchor = tokens and v - tokens or v\n\
      end\n\
      if stranded then l.ahead[key] = true end\n\
    end\n\
    if anchor > base then base = anchor end\n\
  end\n\
  l.bases[key] = base\n\
  return base\n\
end\n\
local function check(l, arg, key)\n\
  local costs, reserves = l.costs, l.reserves\n\
  local reserve_default, reserve_sheddable = l.reserve_default, l.reserve_sheddable\n\
  local cost = costs[arg]\n\
  if not cost then\n\
    costs = costs or {}\n\
    reserves = reserves or {}\n\
    local digits, priority = string.match(arg, '^(%d+%.?%d*) ?(%l*)$')\n\
    cost = -1\n\
    reserves[arg] = 0\n\
    if digits and #digits <= 16 and #arg == #digits + #priority + (priority == '' and 0 or 1)\n\
      and (priority == '' or priority == 'critical' or priority == 'sheddable') then\n\
      if digits == '0' or string.find(digits, '^[1-9]%d*$')\n\
        or (string.find(digits, '^%d+%.%d%d?%d?%d?%d?%d?$') and not string.find(digits, '^0%d')\n\
          and tonumber(digits) > 0) then\n\
        cost = tonumber(digits)\n\
      end\n\
      if priority == '' then\n\
        reserves[arg] = reserve_default\n\
      elseif priority == 'sheddable' then\n\
        reserves[arg] = reserve_sheddable\n\
      end\n\
    end\n\
    costs[arg] = cost\n\
  end\n\
  local reserve, reason, retry = reserves[arg], 0, 0\n\
  local rate, capacity, full, slack = l.rate, l.capacity, l.full, l.slack\n\
  local open, probing, open_until, probe_rate = l.open, l.probing, l.open_until, l.probe_rate\n\
  local subject_rate, subject_capacity = l.subject_rate, l.subject_capacity\n\
  local subject_clock, subject_slack = l.subject_clock, l.subject_slack\n\
  local left, subject = capacity, false\n\
  if l.mode > 0 then\n\
    left = l.clock - base_of(l, l.bucket, l.clock, rate, capacity, l.floor, slack)\n\
    subject = subject_rate >= 0 and key ~= l.bucket\n\
      and base_of(l, key, subject_clock, subject_rate, subject_capacity, l.subject_floor, subject_slack)\n\
  end\n\
  local blocked = l.overrides and key ~= l.bucket\n\
    and override_of(call('HGET', l.overrides, string.sub(key, #l.bucket + 2)), now)\n\
  if cost < 0 then\n\
    reason, retry = 8, -1\n\
  elseif l.mode == 0 then\n\
    reason, left = 1, full\n\
  elseif blocked and blocked.kind == 'block' then\n\
    reason, left = 9, 0\n\
    retry = blocked.ends == -1 and -1 or math.max(1, math.ceil((blocked.ends * 1000 - now) / 1000))\n\
  elseif open or cost > full or cost + reserve - left > slack\n\
    or subject and (cost > subject_capacity or cost - (subject_clock - subject) > subject_slack) then\n\
    local never = false\n\
    if cost > full or (subject and cost > subject_capacity) then\n\
      reason, never = 7, true\n\
    else\n\
      local short = cost + reserve - left\n\
      if open then\n\
        reason = 4\n\
        if open_until < 0 then\n\
          never = true\n\
        else\n\
          retry = (open_until - now) / 1000\n\
          if cost > left then retry = retry + (cost - left) / probe_rate * 1000 end\n\
        end\n\
      elseif short > slack then\n\
        reason = cost - left <= slack and 6 or probing and 5 or 2\n\
        if rate > 0 and left + short <= capacity + slack then\n\
          retry = (short - slack / 2) / rate * 1000\n\
        else\n\
          never = true\n\
        end\n\
      end\n\
      short = subject and cost - (subject_clock - subject) or 0\n\
      if subject and short > subject_slack then\n\
        if not open then reason = 3 end\n\
        if subject_rate > 0 then\n\
          retry = math.max(retry, (short - subject_slack / 2) / subject_rate * 1000)\n\
        else\n\
          never = true\n\
        end\n\
      end\n\
    end\n\
    retry = (never or retry > 315360000000) and -1 or math.max(1, math.ceil(retry))\n\
  end\n\
  return cost, reason, retry, left, subject and key\n\
end\n\
local limiters, texts, fits = {}, {}, true\n\
for i = 1, size do\n\
  local terms = { '', '', ARGV[2 + 2 * i], ARGV[3 + 2 * i] }\n\
  local l = limiter_of(KEYS[2 * i - 1], KEYS[2 * i], terms)\n\
  if l.err then return l end\n\
  if l.managed and l.mode ~= 0 and (l.mode == 1) ~= (terms[3] == '1') then fits = false end\n\
  l.apart = terms[3] == '2'\n\
  limiters[i], texts[i] = l, l.text\n\
end\n\
local reply = { 0, now, unpack(texts) }\n\
if charge_by ~= '' and now > charge_by then\n\
  reply[1] = 1\n\
  return reply\n\
end\n\
if not fits then\n\
  reply[1] = 2\n\
  return reply\n\
end\n\
local cost_of, reason_of, retry_of, left_of, key_of = {}, {}, {}, {}, {}\n\
local filled = #reply\n\
for set = 1, sets do\n\
  local all = true\n\
  for i = 1, size do\n\
    local l, at = limiters[i], size * (set + 1) + i\n\
    local cost, reason, retry, left, key = check(l, ARGV[3 + at], KEYS[at])\n\
    cost_of[i], reason_of[i], retry_of[i], left_of[i], key_of[i] = cost, reason, retry, left, key\n\
    if reason > 1 and l.mode ~= 1 and (not l.apart or reason == 9) or reason == 8 then all = false end\n\
  end\n\
  for i = 1, size do\n\
    local l, cost, left, key = limiters[i], cost_of[i], left_of[i], key_of[i]\n\
    if all and reason_of[i] == 0 and cost > 0 then\n\
      l.bases[l.bucket] = l.bases[l.bucket] + cost\n\
      l.moved[l.bucket] = true\n\
      left = left - cost\n\
      if key then\n\
        l.bases[key] = l.bases[key] + cost\n\
        l.moved[key] = true\n\
      end\n\
    elseif cost > 0 and l.mode > 0 then\n\
      if l.ahead[l.bucket] then l.moved[l.bucket] = true end\n\
      if key and l.ahead[key] then l.moved[key] = true end\n\
    end\n\
    if key then left = math.min(left, l.subject_clock - l.bases[key]) end\n\
    left = left + l.slack\n\
    reply[filled + 1] = reason_of[i]\n\
    reply[filled + 2] = left >= 1 and left - left % 1 or 0\n\
    reply[filled + 3] = retry_of[i]\n\
    filled = filled + 3\n\
  end\n\
end\n\
for i = 1, size do\n\
  local l = limiters[i]\n\
  for key in pairs(l.moved) do\n\
    local base = l.bases[key]\n\
    local life = string.format('%.0f', key == l.bucket and l.ttl or l.subject_ttl)\n\
    if l.managed then\n\
      call('SET', key, string.format('%.17g', base), 'PX', life)\n\
    else\n\
      call('SET', key, string.format('u:%.17g:%.0f', base < 0 and -base or 0, now), 'PX', life)\n\
    end\n\
  end\n\
end\n\
return reply\n\
",
};

/** Keys of `top`, in order. */
export type TopKeys = [minute: string];
/** Arguments of `top`, in order. */
export type TopArgs = [ttlMs: ScriptArg, most: ScriptArg, grown: ScriptArg, ...pairs: ScriptArg[]];
/**
 * adds what one process counted of its heaviest subjects to a minute, and keeps the minute small. The hash holds `t:<subject>` (tokens admitted) and `d:<subject>` (takes denied), each a lower bound; `te` and `de` say by how much each may be too low; `t`, `d` are the totals; `n` the takes seen, `r` those of them that were read.
 * Returns fields in the hash. O(p) in the pairs; when grown O(f log f) in the fields, which are at most grown + p.
 */
export const topScript: Script<TopKeys, TopArgs> = {
  name: 'top',
  sha: 'eebc755a075904fbc2e642a1f86922a9b0adc87a',
  lua: "-- flyball top\n\
local LARGEST = 9007199254740992\n\
local LEASE_MAX_MS = 315360000000\n\
local function finite(text)\n\
  if type(text) ~= 'string' or #text > 32 then return nil end\n\
  if not string.find(text, '^%-?%d+%.?%d*$')\n\
    and not string.find(text, '^%-?%d+%.?%d*[eE][%+%-]?%d+$') then\n\
    return nil\n\
  end\n\
  local n = tonumber(text)\n\
  if not n or n ~= n or n == math.huge or n == -math.huge then return nil end\n\
  return n\n\
end\n\
local function within(text, least, most)\n\
  local n = finite(text)\n\
  if n and n >= least and n <= most then return n end\n\
end\n\
local function count(text)\n\
  local n = within(text, 0, LARGEST)\n\
  if n and n % 1 == 0 then return n end\n\
end\n\
local function exact(n)\n\
  return string.format('%.17g', n)\n\
end\n\
local call = redis.call\n\
local ttl, most, grown = within(ARGV[1], 1, LEASE_MAX_MS), count(ARGV[2]), count(ARGV[3])\n\
if not (ttl and most and most >= 1 and grown) or #ARGV % 2 == 0 or not KEYS[1] then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID top wants ttlMs, most, grown, then pairs')\n\
end\n\
for i = 4, #ARGV, 2 do\n\
  if not within(ARGV[i + 1], 0, LARGEST) then\n\
    return redis.error_reply('FLYBALL_E_CALL_INVALID top wants amounts >= 0')\n\
  end\n\
end\n\
local function add(field, amount)\n\
  local held = call('HGET', KEYS[1], field)\n\
  if held and not within(held, 0, LARGEST) then call('HDEL', KEYS[1], field) end\n\
  call('HINCRBYFLOAT', KEYS[1], field, amount)\n\
end\n\
for i = 4, #ARGV, 2 do add(ARGV[i], ARGV[i + 1]) end\n\
local function trim(all, kind)\n\
  local list = {}\n\
  for i = 1, #all, 2 do\n\
    local n = within(all[i + 1], 0, LARGEST)\n\
    if string.sub(all[i], 1, 2) == kind .. ':' then\n\
      if n then list[#list + 1] = { all[i], n } else call('HDEL', KEYS[1], all[i]) end\n\
    end\n\
  end\n\
  if #list <= most then return end\n\
  table.sort(list, function(a, b) return a[2] > b[2] end)\n\
  local cut = list[most + 1][2]\n\
  for i = 1, #list do\n\
    local left = list[i][2] - cut\n\
    if left > 0 then\n\
      call('HSET', KEYS[1], list[i][1], string.format('%.17g', left))\n\
    else\n\
      call('HDEL', KEYS[1], list[i][1])\n\
    end\n\
  end\n\
  add(kind .. 'e', string.format('%.17g', cut))\n\
end\n\
if call('HLEN', KEYS[1]) > grown then\n\
  local all = call('HGETALL', KEYS[1])\n\
  trim(all, 't')\n\
  trim(all, 'd')\n\
end\n\
call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil(ttl)))\n\
return call('HLEN', KEYS[1])\n\
",
};

/** Keys of `window`, in order. */
export type WindowKeys = [params: string, total: string, bucket: string, ...subject: string[]];
/** Arguments of `window`, in order. */
export type WindowArgs = [nowUs: ScriptArg, chargeByUs: ScriptArg, shadow: ScriptArg, fallback: ScriptArg, window: ScriptArg, ...take: ScriptArg[]];
/**
 * fixed window: n takes, each only if with it no more than rate × window was taken since the window began. Windows begin at multiples of their length since 1970. Round a boundary up to two limits can pass within one length: one at the end of a window, one at the start of the next. After a clock step or a new length the window in force ends at most one length later, and the next is no shorter than one. A key is one string: the end of its window, and the millionths of a token taken in it.
 * Returns [status, nowUs, inForce, then reason, remaining, retryAfterMs of each take]; see docs/contract.md. O(n) in the takes.
 */
export const windowScript: Script<WindowKeys, WindowArgs> = {
  name: 'window',
  sha: '42204dd73ff155b2b6b3e46a74b8a2f041a9fa67',
  lua: "-- flyball window\n\
local LARGEST = 9007199254740992\n\
local LEASE_MAX_MS = 315360000000\n\
local function finite(text)\n\
  if type(text) ~= 'string' or #text > 32 then return nil end\n\
  if not string.find(text, '^%-?%d+%.?%d*$')\n\
    and not string.find(text, '^%-?%d+%.?%d*[eE][%+%-]?%d+$') then\n\
    return nil\n\
  end\n\
  local n = tonumber(text)\n\
  if not n or n ~= n or n == math.huge or n == -math.huge then return nil end\n\
  return n\n\
end\n\
local function within(text, least, most)\n\
  local n = finite(text)\n\
  if n and n >= least and n <= most then return n end\n\
end\n\
local function count(text)\n\
  local n = within(text, 0, LARGEST)\n\
  if n and n % 1 == 0 then return n end\n\
end\n\
local function exact(n)\n\
  return string.format('%.17g', n)\n\
end\n\
local function now_us(given)\n\
  if given ~= '' then return within(given, -LARGEST, LARGEST) end\n\
  local time = redis.call('TIME')\n\
  return time[1] * 1000000 + time[2]\n\
end\n\
local MODES = { off = 0, shadow = 1, recommend = 2, auto = 3 }\n\
local STATES = { closed = 0, open = 1, ['half-open'] = 2, recovering = 3 }\n\
local TEXT = {\n\
  mode = true, state = true, heldBy = true, policyHash = true, onRedisError = true, subject = true,\n\
  algorithm = true, terms = true, rollout = true, subjectTerms = true, windows = true,\n\
  byPerson = true, canary = true,\n\
}\n\
local NEEDED = {\n\
  'v', 'mode', 'state', 'epoch', 'revision', 'generation', 'rate', 'capacity', 'inFlightMax', 'subjectRate',\n\
  'subjectCapacity', 'subjectFollow', 'policyRate', 'minRate', 'maxRate', 'minCapacity', 'maxCapacity',\n\
  'minInFlight', 'maxInFlight', 'accrued', 'changedAt', 'subjectAccrued', 'floor', 'subjectFloor',\n\
  'openUntil', 'openForMs', 'probeRate', 'validUntil', 'lostAfterMs', 'lostOverMs', 'safeRate',\n\
  'safeInFlight', 'reserveDefault', 'reserveSheddable', 'frozenUntil', 'pinnedUntil', 'holdBreaker',\n\
  'heldBy', 'fence', 'policyHash',\n\
}\n\
local LATER_NUMBERS = { windowMs = true, cells = true, subjectRules = true }\n\
local COUNTS = { 'epoch', 'revision', 'generation', 'fence' }\n\
local NOT_BELOW_ZERO = {\n\
  'rate', 'capacity', 'inFlightMax', 'subjectCapacity', 'policyRate', 'probeRate', 'safeRate', 'safeInFlight',\n\
  'lostAfterMs', 'lostOverMs',\n\
}\n\
local function readable(p)\n\
  for i = 1, #NEEDED do\n\
    if p[NEEDED[i]] == nil then return false end\n\
  end\n\
  if not MODES[p.mode] or not STATES[p.state] then return false end\n\
  for i = 1, #COUNTS do\n\
    local n = p[COUNTS[i]]\n\
    if n < 0 or n > 9007199254740992 or n % 1 ~= 0 then return false end\n\
  end\n\
  for i = 1, #NOT_BELOW_ZERO do\n\
    if p[NOT_BELOW_ZERO[i]] < 0 then return false end\n\
  end\n\
  return true\n\
end\n\
local function read_params(key)\n\
  local flat = redis.call('HGETALL', key)\n\
  if #flat == 0 then return nil end\n\
  local p = {}\n\
  for i = 1, #flat, 2 do\n\
    local field, value = flat[i], flat[i + 1]\n\
    if TEXT[field] then\n\
      p[field] = value\n\
    elseif field ~= 'hot' then\n\
      value = not string.find(value, '[^%d%.eE%+%-]') and tonumber(value)\n\
      if value and value - value == 0 then\n\
        p[field] = value\n\
      elseif LATER_NUMBERS[field] then\n\
        return nil\n\
      end\n\
    end\n\
  end\n\
  for _, field in ipairs({ 'keptMs', 'subjectKeptMs' }) do\n\
    if not p[field] or p[field] < 0 or p[field] % 1 ~= 0 then p[field] = 315360000000 end\n\
  end\n\
  return readable(p) and p or nil\n\
end\n\
local NEVER = 9007199254740992\n\
local function glide_start(p)\n\
  if p.pinnedUntil == -1 or p.frozenUntil == -1 then return NEVER end\n\
  local start = math.max(p.validUntil, p.pinnedUntil, p.frozenUntil)\n\
  if p.state == 'open' then\n\
    if p.openUntil == -1 then return NEVER end\n\
    start = math.max(start, p.openUntil)\n\
  end\n\
  return (start + p.lostAfterMs) * 1000\n\
end\n\
local function is_open(p, now)\n\
  if p.state ~= 'open' then return false end\n\
  if p.openUntil == -1 then return true end\n\
  local left = p.openUntil * 1000 - now\n\
  return left > 0 and left <= p.openForMs * 1000\n\
end\n\
local function paid(base, safe, from, to, opens, glide, over)\n\
  local sum = 0\n\
  local start = math.max(from, opens)\n\
  local stop = math.min(to, glide)\n\
  if stop > start then sum = base * (stop - start) end\n\
  local finish = glide + over\n\
  local left = math.max(from, glide)\n\
  local right = math.min(to, finish)\n\
  if right > left then\n\
    local first = base + (safe - base) * ((left - glide) / over)\n\
    local last = base + (safe - base) * ((right - glide) / over)\n\
    sum = sum + (first + last) / 2 * (right - left)\n\
  end\n\
  local after = math.max(from, finish)\n\
  if to > after then sum = sum + safe * (to - after) end\n\
  return sum / 1000000\n\
end\n\
local function effective(p, now)\n\
  local open = is_open(p, now)\n\
  local probing = not open and (p.state == 'open' or p.state == 'half-open')\n\
  local glide = glide_start(p)\n\
  local over = p.lostOverMs * 1000\n\
  local gliding = now >= glide\n\
  local share = 0\n\
  if gliding then share = now >= glide + over and 1 or (now - glide) / over end\n\
  local stopped = p.state == 'open' or p.state == 'half-open'\n\
  local base = stopped and p.probeRate or p.rate\n\
  local rate = open and 0 or base + (p.safeRate - base) * share\n\
  local capacity = p.capacity\n\
  if probing then\n\
    local narrow = math.min(capacity, math.max(1, p.probeRate))\n\
    capacity = narrow + (capacity - narrow) * share\n\
  end\n\
  local cap = p.inFlightMax\n\
  if cap > 0 and p.safeInFlight > 0 then\n\
    cap = math.floor(cap + (p.safeInFlight - cap) * share + 0.5)\n\
  end\n\
  local scale, safe_scale = 1, 1\n\
  if p.subjectFollow == 1 then\n\
    scale = p.rate / p.policyRate\n\
    safe_scale = p.safeRate / p.policyRate\n\
  end\n\
  local none = p.subjectRate < 0\n\
  local subject_base = none and 0 or p.subjectRate * scale\n\
  local subject_safe = none and 0 or p.subjectRate * safe_scale\n\
  local subject_rate = subject_base + (subject_safe - subject_base) * share\n\
  local opens = 0\n\
  if open then\n\
    opens = p.openUntil == -1 and NEVER or p.openUntil * 1000\n\
  elseif p.state == 'open' and p.openUntil * 1000 <= now then\n\
    opens = p.openUntil * 1000\n\
  end\n\
  local tokens, subject_tokens\n\
  if now < p.changedAt then\n\
    tokens = p.accrued - rate * (p.changedAt - now) / 1000000\n\
    subject_tokens = p.subjectAccrued - subject_rate * (p.changedAt - now) / 1000000\n\
  else\n\
    tokens = p.accrued + paid(base, p.safeRate, p.changedAt, now, opens, glide, over)\n\
    subject_tokens = p.subjectAccrued\n\
      + paid(subject_base, subject_safe, p.changedAt, now, 0, glide, over)\n\
  end\n\
  local state = p.state\n\
  if probing then state = gliding and 'recovering' or 'half-open' end\n\
  return {\n\
    state = state,\n\
    gliding = gliding,\n\
    rate = rate,\n\
    capacity = capacity,\n\
    inFlightMax = cap,\n\
    subjectRate = none and -1 or subject_rate,\n\
    subjectCapacity = p.subjectCapacity,\n\
    tokens = tokens,\n\
    subjectTokens = subject_tokens,\n\
    opens = opens,\n\
    glide = glide,\n\
  }\n\
end\n\
local TTL_MARGIN_MS = 1000\n\
local TTL_MAX_MS = 315360000000\n\
local function lowest_above_zero(...)\n\
  local lowest = math.huge\n\
  for _, rate in ipairs({ ... }) do\n\
    if rate > 0 and rate < lowest then lowest = rate end\n\
  end\n\
  return lowest\n\
end\n\
local function ttl_ms(capacity, rate)\n\
  if not (rate > 0) or rate == math.huge then return TTL_MAX_MS end\n\
  return math.min(TTL_MAX_MS, math.ceil(capacity / rate * 1000) + TTL_MARGIN_MS)\n\
end\n\
local function bucket_ttl_ms(p)\n\
  return ttl_ms(\n\
    math.max(p.capacity, p.maxCapacity),\n\
    lowest_above_zero(p.minRate, p.probeRate, p.safeRate, p.rate)\n\
  )\n\
end\n\
local function subject_ttl_ms(p)\n\
  if p.subjectRate < 0 then return 0 end\n\
  local rate = p.subjectRate\n\
  if p.subjectFollow == 1 then\n\
    rate = rate * lowest_above_zero(p.minRate, p.safeRate, p.rate) / p.policyRate\n\
  end\n\
  return ttl_ms(p.subjectCapacity, rate)\n\
end\n\
local function kept_ms(kept, needed)\n\
  if needed <= kept and kept <= 4 * needed then return kept, false end\n\
  return math.min(TTL_MAX_MS, 2 * needed), needed > kept\n\
end\n\
local function in_force_text(p, e)\n\
  return string.format(\n\
    '1 %.0f %.0f %.0f %s %s %d %.17g %.17g %.17g %.17g %.17g',\n\
    p.epoch, p.revision, p.generation, p.mode, e.state, e.gliding and 1 or 0,\n\
    e.rate, e.capacity, e.inFlightMax, e.subjectRate, e.subjectCapacity\n\
  )\n\
end\n\
local function view_of(p, now)\n\
  local e = effective(p, now)\n\
  local untl = e.glide\n\
  if e.state == 'open' then untl = math.min(untl, e.opens) end\n\
  local since = p.changedAt\n\
  if e.state ~= 'open' then since = math.max(since, e.opens) end\n\
  local half_open = e.state == 'half-open'\n\
  return {\n\
    code = MODES[p.mode] + 4 * STATES[e.state] + 16 * (p.subjectRules or 0),\n\
    from = since,\n\
    untl = e.gliding and 0 or untl,\n\
    since = since,\n\
    accrued = p.accrued,\n\
    rate = e.rate,\n\
    capacity = e.capacity,\n\
    fullCapacity = p.capacity,\n\
    floor = p.floor,\n\
    reserveDefault = half_open and 0 or p.reserveDefault * e.capacity,\n\
    reserveSheddable = half_open and 0 or p.reserveSheddable * e.capacity,\n\
    ttlMs = p.keptMs,\n\
    subjectSince = p.changedAt,\n\
    subjectAccrued = p.subjectAccrued,\n\
    subjectRate = e.subjectRate,\n\
    subjectLowest = p.subjectFollow == 1 and math.min(e.subjectRate, p.subjectRate * p.rate / p.policyRate)\n\
      or e.subjectRate,\n\
    subjectCapacity = e.subjectCapacity,\n\
    subjectFloor = p.subjectFloor,\n\
    subjectTtlMs = p.subjectKeptMs,\n\
    openUntil = p.openUntil * 1000,\n\
    probeRate = p.probeRate,\n\
    tokens = e.tokens,\n\
    subjectTokens = e.subjectTokens,\n\
    text = in_force_text(p, e),\n\
  }\n\
end\n\
local FIRST, LEADING = 5, 3\n\
local call = redis.call\n\
local takes = #ARGV - FIRST\n\
local rich, shadow = ARGV[3] == '4' or ARGV[3] == '5', ARGV[3] == '1' or ARGV[3] == '5'\n\
local before_subjects = rich and LEADING + 3 or LEADING\n\
if takes < 0 or takes > 512 or #KEYS ~= (rich and takes or 0) + takes + before_subjects then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID one key and one argument for each take, at most 512')\n\
end\n\
local now, charge_by = now_us(ARGV[1]), ARGV[2]\n\
if charge_by ~= '' then charge_by = within(charge_by, -LARGEST, LARGEST) end\n\
if not now or not charge_by then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID nowUs and chargeByUs are µs, or empty')\n\
end\n\
local params_key = KEYS[1]\n\
local NONE = -1e300\n\
local hot = call('HGET', params_key, 'hot')\n\
local managed = hot and #hot > 160\n\
local code, from, untl, since, accrued, rate, capacity, full, floor, reserve_default, reserve_sheddable\n\
local ttl, subject_since, subject_accrued, subject_rate, subject_capacity, subject_floor, subject_ttl\n\
local open_until, probe_rate, text, clock, subject_clock, unmanaged_base\n\
if managed then\n\
  code, from, untl, since, accrued, rate, capacity, full, floor, reserve_default, reserve_sheddable,\n\
    ttl, subject_since, subject_accrued, subject_rate, subject_capacity, subject_floor, subject_ttl,\n\
    open_until, probe_rate = struct.unpack('<dddddddddddddddddddd', hot)\n\
  if now >= from and now < untl then\n\
    text = string.sub(hot, 161)\n\
    clock = accrued + rate * (now - since) / 1000000\n\
    subject_clock = subject_accrued\n\
    if subject_rate > 0 then subject_clock = subject_clock + subject_rate * (now - subject_since) / 1000000 end\n\
  end\n\
end\n\
local subject_lowest = subject_rate\n\
if not text then\n\
  local p = read_params(params_key)\n\
  managed = p and true\n\
  if p then\n\
    local v = view_of(p, now)\n\
    code, rate, capacity, full, text = v.code, v.rate, v.capacity, v.fullCapacity, v.text\n\
    clock, subject_clock, ttl, subject_ttl = v.tokens, v.subjectTokens, v.ttlMs, v.subjectTtlMs\n\
    reserve_default, reserve_sheddable = v.reserveDefault, v.reserveSheddable\n\
    subject_rate, subject_capacity = v.subjectRate, v.subjectCapacity\n\
    open_until, probe_rate = v.openUntil, v.probeRate\n\
    floor, subject_floor = v.floor, v.subjectFloor\n\
    subject_since, subject_lowest = v.subjectSince, v.subjectLowest\n\
  else\n\
    local number = '(%d+%.?%d*[eE]?[%+%-]?%d*)'\n\
    local r, c, f, sr, sc = string.match(\n\
      ARGV[4],\n\
      '^' .. number .. ' ' .. number .. ' ' .. number .. ' (%-?%d+%.?%d*[eE]?[%+%-]?%d*) ' .. number .. '$'\n\
    )\n\
    rate, capacity, subject_rate, subject_capacity = tonumber(r), tonumber(c), tonumber(sr), tonumber(sc)\n\
    local cap = tonumber(f)\n\
    local sum = rate and capacity and cap and subject_rate and subject_capacity\n\
      and rate + capacity + cap + subject_rate + subject_capacity\n\
    if not sum or sum > 9007199254740992 then\n\
      return redis.error_reply('FLYBALL_E_CALL_INVALID fallback is five numbers: ' .. ARGV[4])\n\
    end\n\
    code = (ARGV[3] == '1' or ARGV[3] == '3') and 1 or 2\n\
    full, floor, subject_floor = capacity, NONE, NONE\n\
    clock, subject_clock = 0, 0\n\
    reserve_default, reserve_sheddable, open_until, probe_rate = 0, 0, 0, 0\n\
    local function life(most, per_second)\n\
      if not (per_second > 0) then return 86400000 end\n\
      return math.min(86400000 * 3650, math.ceil(most / per_second * 1000) + 1000)\n\
    end\n\
    ttl, subject_ttl = life(capacity, rate), life(subject_capacity, subject_rate)\n\
    text = string.format(\n\
      '0 0 0 0 %s closed 0 %.17g %.17g %.17g %.17g %.17g',\n\
      code == 1 and 'shadow' or 'recommend', rate, capacity, cap, subject_rate, subject_capacity\n\
    )\n\
    function unmanaged_base(mark, per_second)\n\
      local held, at = string.match(mark, '^u:(%d+%.?%d*[eE]?[%+%-]?%d*):(%d+)$')\n\
      held, at = tonumber(held), tonumber(at)\n\
      if not held or not at then return 0, true end\n\
      return -(held + per_second * math.max(0, now - at) / 1000000), at > now\n\
    end\n\
  end\n\
end\n\
if charge_by ~= '' and now > charge_by then return { 1, now, text } end\n\
if (managed and code >= 16 or false) ~= rich then return { 3, now, text } end\n\
code = code % 16\n\
local mode = code % 4\n\
if managed and mode ~= 0 and (mode == 1) ~= shadow then return { 2, now, text } end\n\
local state = (code - mode) / 4\n\
local open, probing = state == 1, state == 2\n\
local total_key = KEYS[2]\n\
local reply = { 0, now, text }\n\
local costs, reserves\n\
local function whole_ms(us)\n\
  if not us or us > 315360000000000 then return -1 end\n\
  return math.max(1, math.ceil(us / 1000))\n\
end\n\
local LONGEST_MS = 31622400000\n\
local window_text, cells_text = string.match(ARGV[5], '^(%d+) ?(%d*)$')\n\
local window_us, cells = tonumber(window_text or ''), tonumber(cells_text or '') or 0\n\
if not window_us or window_us < 1 or window_us > LONGEST_MS or cells > 1000 then\n\
  return redis.error_reply('FLYBALL_E_CALL_INVALID window is `windowMs` or `windowMs cells`: ' .. ARGV[5])\n\
end\n\
window_us = window_us * 1000\n\
local aligned = now - now % window_us + window_us\n\
local function open_window(key)\n\
  local w = { key = key, used = 0, stop = aligned }\n\
  local stop, used = string.match(call('GET', key) or '', '^(%d+) (%d+)$')\n\
  stop = tonumber(stop)\n\
  if not stop then\n\
    w.fresh = true\n\
    return w\n\
  end\n\
  if stop > now then\n\
    w.used, w.stop = math.min(LARGEST, tonumber(used)), math.min(stop, now + window_us)\n\
    w.ahead = w.stop < stop\n\
  elseif stop % window_us ~= 0 and aligned < stop + window_us then\n\
    w.stop = aligned + window_us\n\
  end\n\
  return w\n\
end\n\
local function charge(w, micros)\n\
  w.used, w.changed = w.used + micros, true\n\
end\n\
local function wait_us(w, micros)\n\
  if micros > w.used then return nil end\n\
  return w.stop - now\n\
end\n\
local function save(w)\n\
  local life = w.stop - now\n\
  if w.stop % window_us ~= 0 then life = life + window_us end\n\
  call('SET', w.key, string.format('%.0f %.0f', w.stop, w.used), 'PX', math.ceil(life / 1000) + 1000)\n\
end\n\
local MOST_RATE, MOST_CAPACITY = 1000000, 1000000000\n\
local function part_of(text, most)\n\
  return within(text, 1e-9, most)\n\
end\n\
local function override_of(text, now)\n\
  local kind, ends, rate, capacity = string.match(text or '', '^(%l+) (%-?%d+) (%S+) (%S+)')\n\
  ends = within(ends, -1, LARGEST)\n\
  if not ends or ends ~= -1 and ends * 1000 <= now then return nil end\n\
  rate, capacity = part_of(rate, MOST_RATE), part_of(capacity, MOST_CAPACITY)\n\
  if kind == 'limit' and not rate and not capacity or kind ~= 'limit' and kind ~= 'block' and kind ~= 'exempt' then\n\
    return nil\n\
  end\n\
  return { kind = kind, ends = ends, rate = rate, capacity = capacity, numbers = kind == 'limit' }\n\
end\n\
local function steps_of(terms)\n\
  local steps = {}\n\
  for times, capacity, rate in string.gmatch(terms, 'step=(%d+):([^: ]+):([^: ]+)') do\n\
    steps[#steps + 1] = {\n\
      kind = 'tier', times = tonumber(times), ends = 0, rate = part_of(rate, MOST_RATE),\n\
      capacity = part_of(capacity, MOST_CAPACITY),\n\
      numbers = true,\n\
    }\n\
  end\n\
  return steps\n\
end\n\
local function tier_of(steps, streak)\n\
  local tier = 0\n\
  for i = 1, #steps do\n\
    if streak and streak >= steps[i].times then tier = i end\n\
  end\n\
  return tier\n\
end\n\
local overrides_key, index_key, shared_key = KEYS[LEADING + 1], KEYS[LEADING + 2], KEYS[LEADING + 3]\n\
local terms = rich and call('HGET', KEYS[1], 'subjectTerms') or ''\n\
local most = tonumber(string.match(terms, 'max=(%d+)') or '')\n\
local steps = steps_of(terms)\n\
local rules = {}\n\
local function rule_of(i)\n\
  local key = KEYS[before_subjects + i]\n\
  local rule = rules[key]\n\
  if rule ~= nil then return rule end\n\
  rule = override_of(call('HGET', overrides_key, string.sub(key, #total_key + 2)), now)\n\
  if not rule and steps[1] then\n\
    rule = steps[tier_of(steps, tonumber(call('GET', KEYS[before_subjects + takes + i]) or ''))]\n\
  end\n\
  rules[key] = rule or false\n\
  return rules[key]\n\
end\n\
local live\n\
local function room_for(life_ms, tidy)\n\
  live = live or call('ZCARD', index_key)\n\
  if live < most or not tidy then return live < most end\n\
  local due = call('ZRANGEBYSCORE', index_key, '-inf', string.format('%.0f', now / 1000), 'LIMIT', 0, 8)\n\
  for j = 1, #due do\n\
    if call('EXISTS', total_key .. ':' .. due[j]) == 1 then\n\
      call('ZADD', index_key, string.format('%.0f', now / 1000 + life_ms), due[j])\n\
    else\n\
      call('ZREM', index_key, due[j])\n\
      live = live - 1\n\
    end\n\
  end\n\
  return live < most\n\
end\n\
local function came(key, life_ms)\n\
  live = live or call('ZCARD', index_key)\n\
  live = live + call('ZADD', index_key, string.format('%.0f', now / 1000 + life_ms), string.sub(key, #total_key + 2))\n\
  call('PEXPIRE', index_key, string.format('%.0f', math.min(315360000000, math.max(86400000, 4 * life_ms))))\n\
end\n\
local window_life_ms = window_us / 500 + 1000\n\
local LARGEST_LIMIT = 2251799813685248\n\
local function micros(tokens)\n\
  return math.min(LARGEST_LIMIT, math.floor(tokens * 1000000 + 0.5))\n\
end\n\
local window_s = window_us / 1000000\n\
local limit = micros(rate * window_s)\n\
local subject_limit = subject_rate >= 0 and micros(subject_rate * window_s)\n\
local opened, order = {}, {}\n\
local function window_of(key)\n\
  local w = opened[key]\n\
  if not w then\n\
    w = open_window(key)\n\
    opened[key] = w\n\
    order[#order + 1] = w\n\
  end\n\
  return w\n\
end\n\
local probe_base, probed\n\
local slack = 0.0000005 + (clock > 0 and clock or 0) * 4.4408920985006262e-16\n\
if probing then\n\
  probe_base = clock - capacity\n\
  if floor > probe_base and floor <= clock + slack then probe_base = floor end\n\
  local mark = call('GET', KEYS[3])\n\
  if mark then\n\
    mark = tonumber(mark)\n\
    probe_base = mark and mark <= clock + slack and math.max(mark, probe_base) or clock\n\
  end\n\
end\n\
for i = 1, takes do\n\
  local arg, key = ARGV[FIRST + i], KEYS[before_subjects + i]\n\
  local cost, reserve = 1, reserve_default\n\
  if arg ~= '1' then\n\
    cost = costs and costs[arg]\n\
    if not cost then\n\
      costs = costs or {}\n\
      reserves = reserves or {}\n\
      local digits, priority = string.match(arg, '^(%d+%.?%d*) ?(%l*)$')\n\
      cost = -1\n\
      reserves[arg] = 0\n\
      if digits and #digits <= 16 and #arg == #digits + #priority + (priority == '' and 0 or 1)\n\
        and (priority == '' or priority == 'critical' or priority == 'sheddable') then\n\
        if digits == '0' or string.find(digits, '^[1-9]%d*$')\n\
          or (string.find(digits, '^%d+%.%d%d?%d?%d?%d?%d?$') and not string.find(digits, '^0%d')\n\
            and tonumber(digits) > 0) then\n\
          cost = tonumber(digits)\n\
        end\n\
        if priority == '' then\n\
          reserves[arg] = reserve_default\n\
        elseif priority == 'sheddable' then\n\
          reserves[arg] = reserve_sheddable\n\
        end\n\
      end\n\
      costs[arg] = cost\n\
    end\n\
    reserve = reserves[arg]\n\
  end\n\
  local rule = rich and mode > 0 and key ~= total_key and rule_of(i) or nil\n\
  local kind, own_limit, shared = rule and rule.kind, subject_limit, false\n\
  if rule and rule.rate then own_limit = micros(rule.rate * window_s) end\n\
  local exempt = kind == 'exempt' and not probing\n\
  local reason, retry, left = 0, 0, limit\n\
  if cost < 0 then\n\
    reason, retry, left = 8, -1, 0\n\
  elseif mode == 0 then\n\
    reason = 1\n\
  elseif kind == 'block' then\n\
    reason, left = 9, 0\n\
    retry = rule.ends == -1 and -1 or whole_ms(rule.ends * 1000 - now)\n\
  elseif open then\n\
    reason, left = 4, 0\n\
    retry = open_until < 0 and -1 or whole_ms(open_until - now)\n\
  else\n\
    local need = cost * 1000000 < LARGEST_LIMIT and micros(cost) or math.huge\n\
    local total = window_of(total_key)\n\
    local own = own_limit and kind ~= 'exempt' and key ~= total_key and window_of(key)\n\
    if own and most and not rule and own.fresh and not own.came and not room_for(window_life_ms, cost > 0) then\n\
      own, shared = window_of(shared_key), true\n\
    end\n\
    local keep = capacity > 0 and micros(limit / 1000000 * reserve / capacity) or 0\n\
    if probing then\n\
      left = math.max(0, math.floor((clock - probe_base + slack) * 1000000))\n\
    else\n\
      left = limit - total.used\n\
    end\n\
    if cost > 0 then\n\
      total.touched = true\n\
      if own then own.touched = true end\n\
    end\n\
    if not exempt and need > (probing and micros(full) or limit) or own and need > own_limit then\n\
      reason, retry = not probing and limit == 0 and 2 or own and own_limit == 0 and 3 or 7, -1\n\
    else\n\
      local us = 0\n\
      if probing and cost - (clock - probe_base) > slack then\n\
        reason = 5\n\
        us = rate > 0 and cost <= capacity and (cost - (clock - probe_base)) / rate * 1000000\n\
      elseif not probing and not exempt and need + keep > left then\n\
        reason = need <= left and 6 or 2\n\
        us = wait_us(total, need + keep - left)\n\
      end\n\
      if own and need > own_limit - own.used then\n\
        local more = wait_us(own, need - (own_limit - own.used))\n\
        reason, us = 3, us and more and math.max(us, more)\n\
      end\n\
      if reason > 0 then retry = whole_ms(us) end\n\
    end\n\
    if reason == 0 and cost > 0 then\n\
      charge(total, exempt and math.max(0, math.min(need, limit - total.used)) or need)\n\
      if own then charge(own, need) end\n\
      if own and most and not rule and own.fresh and not shared and not own.came then\n\
        own.came = true\n\
        came(key, window_life_ms)\n\
      end\n\
      if probing then probe_base, probed = probe_base + cost, true end\n\
      left = left - need\n\
    end\n\
    if own then left = math.min(left, own_limit - own.used) end\n\
  end\n\
  if exempt and reason == 0 then reason = 10 end\n\
  local at = 3 * i + 1\n\
  reply[at], reply[at + 1] = reason + (shared and 32 or 0), math.max(0, math.floor(left / 1000000))\n\
  reply[at + 2] = retry\n\
end\n\
for i = 1, #order do\n\
  local w = order[i]\n\
  if w.changed or w.ahead and w.touched then save(w) end\n\
end\n\
if probed then call('SET', KEYS[3], string.format('%.17g', probe_base), 'PX', ttl) end\n\
return reply\n\
",
};
