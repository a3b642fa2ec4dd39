-- own: buckets of subjects with numbers of their own. Such a bucket is a text, since the subjects' token clock pays
-- the policy's rate: `o:<tokens>:<timeUs>:<V>:<rate>:<capacity>:<untilMs>`, what it held at that time, and by which
-- numbers it fills. A rate of `-` is the policy's: then V tells what it has paid since. An end of 0 is not known.
-- A bucket changes its form at the moment its numbers change, so nothing is paid twice, or by a rate that came later.
local OWN_LONGEST_MS = 315360000000 -- ten years
local UNKNOWN_LIFE_MS = 86400000 -- a day
local OWN = '^o:(%-?%d[^:]*):(%d+):(%-?%d[^:]*):([^:]+):(%d[^:]*):(%-?%d+)$'

-- `s` is what the policy says of every subject: clock, slack, rate (-1: none), capacity, floor, ttl, and the `lowest`
-- that its rate has been `since` its last change.
local function room_of(rule, s)
  return rule and rule.capacity or s.capacity
end

-- Numbers that say only one of the two, where the policy gives subjects none, are no bucket.
local function whole(rule, s)
  if rule and rule.numbers and s.rate < 0 and not (rule.rate and rule.capacity) then return nil end
  return rule
end

-- An override that is over: it filled by its own numbers to its end, then by the policy's or those of a tier. What was
-- paid between its end and the last change of the policy's numbers is not known here, and not given.
local function after_own(t, at, v, r, c, ends, now, s, tier_rate)
  local stop = math.max(at, ends)
  local edge = math.min(now, math.max(stop, s.since))
  -- Without a rate of the policy (-1) the clock stood still.
  local v_edge = s.clock - math.max(0, s.lowest) * (now - edge) / 1000000
  local first = r and r * (stop - at) / 1000000 or math.max(0, v_edge - v)
  return math.min(c, t + first) + (tier_rate and tier_rate * (now - edge) / 1000000 or s.clock - v_edge)
end

-- Tokens that a bucket holds now under `rule` (nil: the policy's numbers), and whether its text lies ahead of the clock
-- or cannot be read, so that it could not refill where it is.
local function held(text, rule, now, s)
  local room = room_of(rule, s)
  if not text then
    if rule and rule.rate then return room, false end
    return math.min(room, s.clock - s.floor), false
  end
  local mark = tonumber(text)
  if mark then
    if not (mark <= s.clock + s.slack) then return 0, true end
    return math.min(room, s.clock - math.max(mark, s.floor)), false
  end
  local t, at, v, r, c, ends = string.match(text, OWN)
  t, at, v, c, ends = tonumber(t or ''), tonumber(at or ''), tonumber(v or ''), tonumber(c or ''), tonumber(ends or '')
  if not (t and at and v and c and ends) then
    -- Calls without params left it, or nothing is known.
    return math.min(room, tonumber(string.match(text, '^u:(%d+%.?%d*):') or '') or 0), true
  end
  -- One that began anew, or ran back with Redis's, is behind the text, which then could not fill.
  local ahead = at > now or v > s.clock + s.slack
  t, r, ends = math.max(t, -1), tonumber(r), ends * 1000
  local elapsed = math.max(0, now - at)
  local paid = math.max(0, s.clock - v)
  local by_text = r and r * elapsed / 1000000 or paid
  if ends > 0 and ends <= now then
    local tokens = after_own(t, at, v, r, c, ends, now, s, rule and rule.rate)
    -- How much room there was before the last change is not known either: a raise since then left it in the floor.
    if not rule or s.since > ends then tokens = math.min(tokens, s.clock - s.floor) end
    return math.min(room, tokens), ahead
  end
  if rule then
    local by_rule = rule.rate and rule.rate * elapsed / 1000000 or paid
    return math.min(c, room, t + math.min(by_text, by_rule)), ahead
  end
  return math.min(c, room, t + math.min(by_text, paid)), ahead
end

local function own_text(tokens, rule, now, s)
  return string.format('o:%.17g:%.0f:%.17g:%s:%.17g:%.0f', tokens, now, s.clock,
    rule.rate and string.format('%.17g', rule.rate) or '-', room_of(rule, s), rule.ends)
end

-- How long such a bucket is kept (ms): until it would be full, and past the end of an override, since what fills it
-- then is another rate: where the policy has none yet, one that comes before the end.
local function own_life(rule, now, s)
  local room, life = room_of(rule, s), s.ttl
  if rule.rate then
    life = math.max(life, math.ceil(room / rule.rate * 1000) + 1000)
  elseif s.capacity > 0 then
    life = life * math.max(1, room / s.capacity)
  end
  if rule.ends == -1 then life = OWN_LONGEST_MS end
  local past = s.rate < 0 and UNKNOWN_LIFE_MS or s.ttl
  if rule.ends > 0 then life = math.max(life, rule.ends - now / 1000 + past + 1000) end
  return string.format('%.0f', math.min(OWN_LONGEST_MS, math.ceil(life)))
end
