-- fair: while the total refuses somebody, what each subject owes of what the bucket lacks: all that it took, less its
-- part of what was paid since. What is paid is divided evenly among those who owe (processor sharing), so who takes
-- more than its max-min share owes ever more, and who takes less soon owes nothing. A take must leave in the bucket as
-- much as its subject owes: a reserve that grows by taking. It begins with the first refusal, and ends when there was
-- none for as long as the bucket takes to fill, 1 to 60 s.
-- One sorted set holds who owes, each at its mark: as far ahead of `paid`, what was paid to each so far, as it owes.
-- `#` stands for those past the most, `!` for what is missing and nobody is known to owe: what was taken before, a
-- trip, takes without a subject. Below 0 lies the state: `!t` the end, `!u` what is paid, `!s` the sum that is owed,
-- `!o` until when one who owes is held to be beside others.
-- Reads KEYS, terms, mode, open, probing, capacity, rate, clock, total, total_key, now, slack, call; gives fair,
-- pressing, owing_with, owed_by, in_company, owe, press, fair_wait, keep_fair.
local MOST_OWING, MOST_PAID_OFF, LONGEST_HOLD = 10000, 512, 60000000
local fair = mode > 0 and not open and not probing and string.find(' ' .. terms .. ' ', ' fair=1 ', 1, true) and KEYS[3]
local hold = math.min(LONGEST_HOLD, math.max(1000000, capacity / rate * 1000000))
local pressing, ends, company, paid, sum, owing = false, 0, 0, 0, 0, 0
local marks, moved, begun, renewed, gone = {}, {}, false, false, false

local function mark_of(member)
  if not marks[member] then
    marks[member] = not begun and tonumber(call('ZSCORE', fair, member) or '') or 0
  end
  return marks[member]
end

local function owed_by(member)
  return math.max(0, mark_of(member) - paid)
end

-- Others owe beside this one, or did lately.
local function in_company(member)
  if company - now < hold / 2 then
    local others = owing - (owed_by('!') > 0 and member ~= '!' and 1 or 0) - (owed_by(member) > 0 and 1 or 0)
    if others > 0 then company = now + hold end
  end
  return company > now
end

local function owe(member, cost)
  if member ~= '!' then in_company(member) end
  local mark = mark_of(member)
  if mark <= paid then
    mark, owing = paid, owing + 1
  end
  marks[member], moved[member], sum = mark + cost, true, sum + cost
end

-- Under which name a subject owes.
local function owing_with(key, shared)
  local member = shared and '#' or string.sub(key, #total_key + 2)
  return owing >= MOST_OWING and owed_by(member) == 0 and '#' or member
end

-- What the bucket no longer lacks has been paid; what it lacks beyond the sum, nobody is known to owe.
local function settle(rows, missing)
  local due = math.max(0, sum - missing)
  local amount, at = due, 9
  for paid_off = 0, MOST_PAID_OFF - 1 do
    if amount <= 0 or owing == 0 then break end
    local mark = tonumber(rows[at + 1] or '')
    if not mark then
      rows, at = call('ZRANGE', fair, 4 + paid_off, 67 + paid_off, 'WITHSCORES'), 1
      mark = tonumber(rows[2] or '') or paid
    end
    local need = math.max(0, mark - paid) * owing
    -- Dust is no debt.
    if need > amount + slack then
      paid, amount = paid + amount / owing, 0
    else
      paid, amount, owing, at, gone = math.max(paid, mark), math.max(0, amount - need), owing - 1, at + 2, true
    end
  end
  sum = owing > 0 and sum - due + amount or 0
  if missing - sum > slack then owe('!', missing - sum) end
end

if fair then
  local rows, state = call('ZRANGE', fair, 0, 11, 'WITHSCORES'), {}
  for i = 1, math.min(8, #rows), 2 do state[rows[i]] = -tonumber(rows[i + 1]) end
  ends = state['!t'] or 0
  -- One that lies further ahead than it was ever set is of a clock that was set back; what no writer of ours says is
  -- none.
  local function sound(value) return value and value < 1e18 end
  pressing = sound(state['!u']) and sound(state['!s']) and sound(state['!o']) and now < ends
    and ends - now <= LONGEST_HOLD
  if pressing then
    paid, sum, owing = state['!u'] - 1, state['!s'] - 1, call('ZCARD', fair) - 4
    company = state['!o'] - 1
    settle(rows, capacity - (clock - total))
  end
end

-- How long (µs) until a take that falls short of that would pass, if nobody else took: the bucket fills, and its
-- subject pays its part.
local function fair_wait(short)
  return rate > 0 and short / rate / (1 + 1 / owing) * 1000000
end

-- The total has refused a take.
local function press(missing)
  if pressing and ends - now >= hold / 2 then return end
  ends, renewed = now + hold, true
  if pressing then return end
  pressing, begun, company, paid, sum, owing, marks, moved = true, true, 0, 0, 0, 0, {}, {}
  if missing > 0 then owe('!', missing) end
end

local function keep_fair()
  if next(moved) == nil and not renewed then return end
  local text = '%.17g'
  if begun then
    call('DEL', fair)
  elseif gone then
    call('ZREMRANGEBYSCORE', fair, '0', string.format(text, paid))
  end
  local args = {
    string.format('%.0f', -ends), '!t', string.format(text, -1 - paid), '!u', string.format(text, -1 - sum), '!s',
    string.format('%.0f', -1 - company), '!o',
  }
  for member in pairs(moved) do
    args[#args + 1], args[#args + 2] = string.format(text, marks[member]), member
  end
  call('ZADD', fair, unpack(args))
  if renewed then call('PEXPIRE', fair, string.format('%.0f', hold / 1000 + 1000)) end
end
