-- windows: decides the takes of a call, each in the window of the total and of its subject, all or none of the two.
-- The source gives open_window(key), charge(w, micros), wait_us(w, micros) and save(w). Amounts are whole millionths
-- of a token, so that sums are exact. A denial writes nothing, except to bring back what lies ahead of Redis's clock.
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
  local arg, key = ARGV[FIRST + i], KEYS[LEADING + i]
  local cost, reserve = 1, reserve_default
  if arg ~= '1' then
    cost = costs and costs[arg]
    if not cost then
      --- @include lib/cost.lua
    end
    reserve = reserves[arg]
  end
  local reason, retry, left = 0, 0, limit
  if cost < 0 then
    reason, retry, left = 8, -1, 0
  elseif mode == 0 then
    reason = 1
  elseif open then
    reason, left = 4, 0
    retry = open_until < 0 and -1 or whole_ms(open_until - now)
  else
    local need = micros(cost)
    local total = window_of(total_key)
    local own = subject_limit and key ~= total_key and window_of(key)
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
    if need > (probing and micros(full) or limit) or own and need > subject_limit then
      reason, retry = 7, -1
    else
      local us = 0
      if probing and cost - (clock - probe_base) > slack then
        reason = 5
        us = rate > 0 and cost <= capacity and (cost - (clock - probe_base)) / rate * 1000000
      elseif not probing and need + keep > left then
        reason = need <= left and 6 or 2
        us = wait_us(total, need + keep - left)
      end
      if own and need > subject_limit - own.used then
        local more = wait_us(own, need - (subject_limit - own.used))
        reason, us = 3, us and more and math.max(us, more)
      end
      if reason > 0 then retry = whole_ms(us) end
    end
    if reason == 0 and cost > 0 then
      charge(total, need)
      if own then charge(own, need) end
      if probing then probe_base, probed = probe_base + cost, true end
      left = left - need
    end
    if own then left = math.min(left, subject_limit - own.used) end
  end
  local at = 3 * i + 1
  reply[at], reply[at + 1], reply[at + 2] = reason, math.max(0, math.floor(left / 1000000)), retry
end

for i = 1, #order do
  local w = order[i]
  if w.changed or w.ahead and w.touched then save(w) end
end
if probed then call('SET', KEYS[3], string.format('%.17g', probe_base), 'PX', ttl) end
return reply
