-- denial: why a take is denied, and how long until it could pass. Reads the take's numbers; sets reason and retry.
local never = false
if cost > full or (subject and cost > subject_capacity) then
  reason, never = 7, true
else
  local short = cost + reserve - left
  if open then
    reason = 4
    if open_until < 0 then
      never = true
    else
      retry = (open_until - now) / 1000
      if cost > left then retry = retry + (cost - left) / probe_rate * 1000 end
    end
  elseif short > slack then
    reason = cost - left <= slack and 6 or probing and 5 or 2
    if rate > 0 and left + short <= capacity + slack then
      retry = (short - slack / 2) / rate * 1000
    else
      never = true
    end
  end
  short = subject and cost - (subject_clock - subject) or 0
  if subject and short > subject_slack then
    if not open then reason = 3 end
    if subject_rate > 0 then
      retry = math.max(retry, (short - subject_slack / 2) / subject_rate * 1000)
    else
      never = true
    end
  end
end
-- Beyond ten years there is no time to tell.
retry = (never or retry > 315360000000) and -1 or math.max(1, math.ceil(retry))
