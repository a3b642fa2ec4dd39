-- rule: what is known of one subject: a person's override (`<kind> <untilMs> <rate> <capacity> …`), or the tier that its
-- outcomes have reached. A rule with numbers has a rate, a capacity or both; `ends` is when (ms), -1: a person ends it,
-- 0: not known.
local MOST_RATE, MOST_CAPACITY = 1000000, 1000000000

-- A rate or a capacity; nil: it says none. What no writer of ours says is none either: it could not be held.
local function part_of(text, most)
  return within(text, 1e-9, most)
end

local function override_of(text, now)
  local kind, ends, rate, capacity = string.match(text or '', '^(%l+) (%-?%d+) (%S+) (%S+)')
  ends = within(ends, -1, LARGEST)
  if not ends or ends ~= -1 and ends * 1000 <= now then return nil end
  rate, capacity = part_of(rate, MOST_RATE), part_of(capacity, MOST_CAPACITY)
  if kind == 'limit' and not rate and not capacity or kind ~= 'limit' and kind ~= 'block' and kind ~= 'exempt' then
    return nil
  end
  return { kind = kind, ends = ends, rate = rate, capacity = capacity, numbers = kind == 'limit' }
end

-- `step=<times>:<capacity>:<rate>`, in order of times.
local function steps_of(terms)
  local steps = {}
  for times, capacity, rate in string.gmatch(terms, 'step=(%d+):([^: ]+):([^: ]+)') do
    steps[#steps + 1] = {
      kind = 'tier', times = tonumber(times), ends = 0, rate = part_of(rate, MOST_RATE),
      capacity = part_of(capacity, MOST_CAPACITY),
      numbers = true,
    }
  end
  return steps
end

local function tier_of(steps, streak)
  local tier = 0
  for i = 1, #steps do
    if streak and streak >= steps[i].times then tier = i end
  end
  return tier
end
