-- cost: reads an argument that is not the plain `1`, once a call; -1: it is no cost. Sets cost, costs, reserves.
costs = costs or {}
reserves = reserves or {}
local digits, priority = string.match(arg, '^(%d+%.?%d*) ?(%l*)$')
cost = -1
reserves[arg] = 0
if digits and #digits <= 16 and #arg == #digits + #priority + (priority == '' and 0 or 1)
  and (priority == '' or priority == 'critical' or priority == 'sheddable') then
  if digits == '0' or string.find(digits, '^[1-9]%d*$')
    or (string.find(digits, '^%d+%.%d%d?%d?%d?%d?%d?$') and not string.find(digits, '^0%d')
      and tonumber(digits) > 0) then
    cost = tonumber(digits)
  end
  if priority == '' then
    reserves[arg] = reserve_default
  elseif priority == 'sheddable' then
    reserves[arg] = reserve_sheddable
  end
end
costs[arg] = cost
