-- look: what a status shows of limiters beside their params: who leads, what they told, what came to the log, traffic.
-- KEYS:
--   looked...  of each limiter, all on this slot: lease, status, f, audit, and its last five telemetry seconds
-- ARGV:
--   mark...    of each of these: of status the lease whose status is known, of audit the newest entry known, else all
--              or none (empty) is told; of a second its mark as last read; the others have none
-- RETURNS: [nowUs, then of each key: lease and status (nil: none, or known), fields and values of f, at most a hundred
--   entries after the one known, of a second nil as last read, empty: not there, else a line each: its mark, off, adm,
--   n, inf, processes and those that report completions (tabs between), fields and counts of what was denied]
-- TIME: once, after the reads
-- COMPLEXITY: O(fields of seconds that are returned)
--- @include lib/second.lua
local EACH = 9
local MOST_ENTRIES = 100
-- First letters of what traffic needs: most of a second is bins, which are passed over without a look.
local FIRST = { [97] = true, [100] = true, [105] = true, [110] = true, [111] = true, [112] = true, [115] = true }

local function traffic_of(key)
  local all = redis.call('HGETALL', key)
  local plain = { off = '0', adm = '0', n = '0', inf = '0' }
  local named = { ['p:'] = {}, ['pr:'] = {} }
  local denied = {}
  for i = 1, #all, 2 do
    local field = all[i]
    if plain[field] then
      plain[field] = all[i + 1]
    elseif FIRST[string.byte(field)] then
      local kind = string.match(field, '^%a+:')
      local names = named[kind or '']
      if names then
        names[#names + 1] = string.sub(field, #kind + 1)
      elseif kind == 'd:' or kind == 'sd:' then
        denied[#denied + 1] = '\n' .. field .. '\n' .. all[i + 1]
      end
    end
  end
  local lines = {
    plain.off, plain.adm, plain.n, plain.inf,
    table.concat(named['p:'], '\t'), table.concat(named['pr:'], '\t'),
  }
  return table.concat(lines, '\n') .. table.concat(denied)
end

local out = {}
for i = 1, #KEYS, EACH do
  local told = redis.call('MGET', KEYS[i], KEYS[i + 1])
  local lease, status = told[1], told[2]
  if lease and lease == ARGV[i + 1] then status = false end
  out[i + 1] = lease
  out[i + 2] = status
  out[i + 3] = redis.call('HGETALL', KEYS[i + 2])
  out[i + 4] = false
  local newest = ARGV[i + 3]
  -- Without its log a limiter is still to be looked at.
  if newest ~= '' and redis.call('TYPE', KEYS[i + 3]).ok == 'stream' then
    out[i + 4] = redis.call('XRANGE', KEYS[i + 3], '(' .. newest, '+', 'COUNT', MOST_ENTRIES)
  end
  for at = i + 4, i + EACH - 1 do
    local mark = second_mark(KEYS[at])
    if mark == ARGV[at] then
      out[at + 1] = false
    elseif mark == '' then
      out[at + 1] = ''
    else
      out[at + 1] = mark .. '\n' .. traffic_of(KEYS[at])
    end
  end
end
local time = redis.call('TIME')
out[1] = string.format('%.0f', time[1] * 1000000 + time[2])
return out
