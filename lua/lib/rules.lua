-- rules: what is known of the subjects of a call, and room for new ones. The layout of such a call: after the leading
-- keys the overrides, the index of live subjects and the bucket that is shared past the most of them; then the takes'
-- subjects, then what stands of each of them. Reads rich,
-- overrides_key, index_key, before_subjects, takes, total_key, now; gives rule_of, room_for, came.
local terms = rich and call('HGET', KEYS[1], 'subjectTerms') or ''
local most = tonumber(string.match(terms, 'max=(%d+)') or '')
local steps = steps_of(terms)
local rules = {}

local function rule_of(i)
  local key = KEYS[before_subjects + i]
  local rule = rules[key]
  if rule ~= nil then return rule end
  rule = override_of(call('HGET', overrides_key, string.sub(key, #total_key + 2)), now)
  if not rule and steps[1] then
    rule = steps[tier_of(steps, tonumber(call('GET', KEYS[before_subjects + takes + i]) or ''))]
  end
  rules[key] = rule or false
  return rules[key]
end

-- Live subjects, by the index: each is put there when its bucket is made, with the time at which it is gone if nobody
-- takes from it. Past the most, up to eight whose time has come are looked at: gone, or still there.
local live
local function room_for(life_ms, tidy)
  live = live or call('ZCARD', index_key)
  if live < most or not tidy then return live < most end
  local due = call('ZRANGEBYSCORE', index_key, '-inf', string.format('%.0f', now / 1000), 'LIMIT', 0, 8)
  for j = 1, #due do
    if call('EXISTS', total_key .. ':' .. due[j]) == 1 then
      call('ZADD', index_key, string.format('%.0f', now / 1000 + life_ms), due[j])
    else
      call('ZREM', index_key, due[j])
      live = live - 1
    end
  end
  return live < most
end

-- A bucket was made.
local function came(key, life_ms)
  live = live or call('ZCARD', index_key)
  live = live + call('ZADD', index_key, string.format('%.0f', now / 1000 + life_ms), string.sub(key, #total_key + 2))
  call('PEXPIRE', index_key, string.format('%.0f', math.min(315360000000, math.max(86400000, 4 * life_ms))))
end
