-- windows: decides the takes of a call, each in the window of the total and of its subject, all or none of the two.
-- The source gives open_window(key), charge(w, micros), wait_us(w, micros) and save(w). Amounts are whole millionths
-- of a token, so that sums are exact. A denial writes nothing, except to bring back what lies ahead of Redis's clock.
-- What is known of single subjects holds as in `subjects`; of numbers of their own, the rate: limit = rate × window.
--- @include lib/rule.lua
local overrides_key, index_key, shared_key = KEYS[LEADING + 1], KEYS[LEADING + 2], KEYS[LEADING + 3]
--- @include lib/rules.lua
local window_life_ms = window_us / 500 + 1000
local LARGEST_LIMIT = 2251799813685248 -- 2^51
local function micros(tokens)
  return math.min(LARGEST_LIMIT, math.floor(tokens * 1000000 + 0.5))
end
local window_s = window_us / 1000000
local limit = micros(rate * window_s)
local subject_limit = subject_rate >= 0 and micros(subject_rate * window_s)

local opened, order = {}, {}
local function window_of(key)
  local w = opened[key]
  if not w then
    w = open_window(key)
    opened[key] = w
    order[#order + 1] = w
  end
  return w
end

-- Half-open: a bucket at the probe rate stands in for the total's window, which may be full of what came before.
local probe_base, probed
local slack = 0.0000005 + (clock > 0 and clock or 0) * 4.4408920985006262e-16
if probing then
  probe_base = clock - capacity
  if floor > probe_base and floor <= clock + slack then probe_base = floor end
  local mark = call('GET', KEYS[3])
  if mark then
    mark = tonumber(mark)
    probe_base = mark and mark <= clock + slack and math.max(mark, probe_base) or clock
  end
end

for i = 1, takes do
  local arg, key = ARGV[FIRST + i], KEYS[before_subjects + i]
  --- @include lib/asked.lua
  local rule = rich and mode > 0 and key ~= total_key and rule_of(i) or nil
  local kind, own_limit, shared = rule and rule.kind, subject_limit, false
  if rule and rule.rate then own_limit = micros(rule.rate * window_s) end
  local exempt = kind == 'exempt' and not probing
  local reason, retry, left = 0, 0, limit
  if cost < 0 then
    reason, retry, left = 8, -1, 0
  elseif mode == 0 then
    reason = 1
  elseif kind == 'block' then
    reason, left = 9, 0
    retry = rule.ends == -1 and -1 or whole_ms(rule.ends * 1000 - now)
  elseif open then
    reason, left = 4, 0
    retry = open_until < 0 and -1 or whole_ms(open_until - now)
  else
    -- What no window can count fits into none.
    local need = cost * 1000000 < LARGEST_LIMIT and micros(cost) or math.huge
    local total = window_of(total_key)
    local own = own_limit and kind ~= 'exempt' and key ~= total_key and window_of(key)
    if own and most and not rule and own.fresh and not own.came and not room_for(window_life_ms, cost > 0) then
      own, shared = window_of(shared_key), true
    end
    local keep = capacity > 0 and micros(limit / 1000000 * reserve / capacity) or 0
    if probing then
      left = math.max(0, math.floor((clock - probe_base + slack) * 1000000))
    else
      left = limit - total.used
    end
    if cost > 0 then
      total.touched = true
      if own then own.touched = true end
    end
    if not exempt and need > (probing and micros(full) or limit) or own and need > own_limit then
      -- At rate 0 nothing is too large: nothing passes, until the rate is another.
      reason, retry = not probing and limit == 0 and 2 or own and own_limit == 0 and 3 or 7, -1
    else
      local us = 0
      if probing and cost - (clock - probe_base) > slack then
        reason = 5
        us = rate > 0 and cost <= capacity and (cost - (clock - probe_base)) / rate * 1000000
      elseif not probing and not exempt and need + keep > left then
        reason = need <= left and 6 or 2
        us = wait_us(total, need + keep - left)
      end
      if own and need > own_limit - own.used then
        local more = wait_us(own, need - (own_limit - own.used))
        reason, us = 3, us and more and math.max(us, more)
      end
      if reason > 0 then retry = whole_ms(us) end
    end
    if reason == 0 and cost > 0 then
      -- Nobody waits for what an exempt subject took beyond the limit.
      charge(total, exempt and math.max(0, math.min(need, limit - total.used)) or need)
      if own then charge(own, need) end
      if own and most and not rule and own.fresh and not shared and not own.came then
        own.came = true
        came(key, window_life_ms)
      end
      if probing then probe_base, probed = probe_base + cost, true end
      left = left - need
    end
    if own then left = math.min(left, own_limit - own.used) end
  end
  if exempt and reason == 0 then reason = 10 end
  local at = 3 * i + 1
  reply[at], reply[at + 1] = reason + (shared and 32 or 0), math.max(0, math.floor(left / 1000000))
  reply[at + 2] = retry
end

for i = 1, #order do
  local w = order[i]
  if w.changed or w.ahead and w.touched then save(w) end
end
if probed then call('SET', KEYS[3], string.format('%.17g', probe_base), 'PX', ttl) end
return reply
